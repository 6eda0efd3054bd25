# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Masks that depend on one number, a position: exporters of decoders write them in many ways.

What computes the mask is evaluated for each position instead of being recognised, so the way does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tinyml.ir import Array, DType, Node
from tinyml.ir.interpreter import evaluate
from tinyml.passes.editor import Editor

MOST_NODES = 64
MOST_ELEMENTS = 1 << 22
"""Of a mask, for all positions."""


def position_of(
    edit: Editor, masks: Mapping[str, bool], shape: tuple[int, int], hides: float
) -> tuple[str, int] | None:
    """The tensor that holds the position, and how many keys further than that the first query sees.

    Query i sees keys up to i + position + this number, for every position at which all queries see their own
    key. Where as many queries as keys leave one such position, which proves nothing, it is for all up to the
    one at which every query sees all keys. The masks can be broadcast to ``shape``, (queries, keys); what one
    of them hides is hidden; ``hides`` or less added to a score does, and so does a truth that is false, or
    true where ``masks`` says so.
    """
    queries, keys = shape
    found = _sources(edit, tuple(masks))
    if found is None or queries * keys * keys > MOST_ELEMENTS or keys < 2:
        return None
    source, nodes = found
    places = np.arange(keys)[None, :] - np.arange(queries)[:, None]

    def visible(position: int) -> Array | None:
        values = _values(edit, source, nodes, position)
        seen = np.ones(shape, np.bool_)
        for name, flipped in masks.items():
            data = edit.tensors[name].data
            mask = values[name] if data is None else data
            mask = mask.reshape(mask.shape[-2:])  # the same for all heads
            if mask.dtype != np.bool_:
                if not np.all((mask == 0) | (mask <= hides)):
                    return None
                seen = seen & (mask == 0)
            else:
                seen = seen & (mask != flipped)
        return seen

    past: int | None = None
    for position in (0, 1, queries):  # the last for a length, which counts all queries
        seen = visible(position)
        if seen is None:
            return None
        if past is None and 0 < seen[0].sum() < keys:
            past = int(seen[0].sum()) - 1 - position
    if past is None:
        return None
    last = keys - queries if keys > queries else keys - 1
    for position in range(-past, last - past + 1):
        seen = visible(position)
        if seen is None or not np.array_equal(seen, places <= position + past):
            return None
    return source, past


def _sources(edit: Editor, names: Sequence[str]) -> tuple[str, list[Node]] | None:
    """The one integer that tensors are computed from, and the nodes between them, in their order."""
    nodes: dict[int, Node] = {}
    ends = {name for name in names if not edit.tensors[name].is_constant}
    while len(nodes) <= MOST_NODES:
        inner = [n for end in ends if (n := edit.producer(end)) is not None and id(n) not in nodes]
        alone = len(ends) == 1 and _is_position(edit, next(iter(ends)))
        if alone or not inner:
            break
        last = max(inner, key=edit.order)  # the others cannot depend on it
        nodes[id(last)] = last
        ends -= set(last.outputs)
        ends |= {operand for operand in last.inputs if operand and not edit.tensors[operand].is_constant}
    if len(ends) != 1 or not _is_position(edit, next(iter(ends))):
        return None
    return next(iter(ends)), sorted(nodes.values(), key=edit.order)


def _is_position(edit: Editor, name: str) -> bool:
    tensor = edit.tensors[name]
    return tensor.elements == 1 and tensor.quant is None and tensor.dtype in (DType.INT32, DType.INT64)


def _values(edit: Editor, source: str, nodes: list[Node], position: int) -> dict[str, Array]:
    tensor = edit.tensors[source]
    values: dict[str, Array] = {source: np.full(tensor.shape, position, tensor.dtype.numpy)}
    for node in nodes:
        layer = edit.layer(node)
        for output, array in zip(layer.outputs, evaluate(layer, values), strict=True):
            values[output.name] = array
    return values
