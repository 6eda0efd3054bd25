# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Rows written into a cache by ScatterElements, whose indices are one position, repeated and counted on.

PyTorch's exporter writes a static cache so. As TensorScatter, a row is one copy, and no index is stored for
each of its elements.
"""

from __future__ import annotations

import numpy as np

from tinyml.ir import Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.expand import Tile
from tinyml.ops.framework.reading import Builder
from tinyml.ops.reshape import Reshape


def first_row(build: Builder, cache: Tensor, indices: Tensor, update: Tensor, axis: int) -> Tensor | None:
    """(1,): the place of the first row; None if the indices are not those of rows, one after the other."""
    rows = update.shape[axis] if len(update.shape) == len(cache.shape) else 0
    whole = (*cache.shape[:axis], rows, *cache.shape[axis + 1 :])
    if axis == 0 or not 0 < rows <= cache.shape[axis] or cache.shape[0] != 1:
        return None
    if indices.shape != whole or update.shape != whole:
        return None
    place = _unrepeated(build, indices, axis, rows)
    if place is not None and rows > 1:
        place = _counted_on(build, place, rows)
    if place is None or place.elements != 1:
        return None
    return place if place.shape == (1,) else build.add1(Reshape((1,)), [place])


def _unrepeated(build: Builder, indices: Tensor, axis: int, rows: int) -> Tensor | None:
    """A number for each row, from which indices are repeated."""
    while indices.elements != rows:
        node = build.producer(indices)
        if node is None or not isinstance(node.op, Tile) or node.op.repeats[axis] != 1:
            return None
        indices = build.tensors[node.inputs[0]]
    return indices


def _counted_on(build: Builder, places: Tensor, rows: int) -> Tensor | None:
    """What 0, 1, 2 … is added to."""
    node = build.producer(places)
    while node is not None and isinstance(node.op, Reshape):
        node = build.producer(build.tensors[node.inputs[0]])
    if node is None or not isinstance(node.op, Binary) or node.op.function != "add":
        return None
    for index in (0, 1):
        data = build.tensors[node.inputs[index]].data
        if data is not None and np.array_equal(data.reshape(-1), np.arange(rows)):
            return build.tensors[node.inputs[1 - index]]
    return None
