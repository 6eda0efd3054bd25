# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sparse constants of TFLite files, which converters write for pruned models.

The values are stored in the order of a tree. Each level is an axis of the tensor, or of the blocks that an
axis is divided into. A dense level has every index; a sparse one lists, for each parent, the indices it has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tflite

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Shape

_VECTORS = {
    tflite.SparseIndexVector.Int32Vector: tflite.Int32Vector,
    tflite.SparseIndexVector.Uint16Vector: tflite.Uint16Vector,
    tflite.SparseIndexVector.Uint8Vector: tflite.Uint8Vector,
}


@dataclass(frozen=True)
class Level:
    """Dense, with ``size`` indices; or sparse: parent p has ``indices[segments[p]:segments[p + 1]]``."""

    size: int = 0
    segments: Array | None = None
    indices: Array | None = None


@dataclass(frozen=True)
class Sparsity:
    """``order``: the axis of each level. Axis rank + i is inside the blocks of axis ``blocks[i]``."""

    order: tuple[int, ...]
    blocks: tuple[int, ...]
    levels: tuple[Level, ...]

    def dense(self, values: Array, shape: Shape) -> Array:
        """The whole tensor, with zeros where nothing is stored."""
        rank, axes = len(shape), len(shape) + len(self.blocks)
        if sorted(self.order) != list(range(axes)) or len(self.levels) != axes:
            raise ValueError("its sparse axes are not those of the tensor")
        if len(set(self.blocks)) != len(self.blocks) or any(not 0 <= axis < rank for axis in self.blocks):
            raise ValueError("the blocks of a sparse tensor belong to no axis of it")
        block_sizes = {
            self.blocks[axis - rank]: level.size
            for axis, level in zip(self.order, self.levels, strict=True)
            if axis >= rank
        }
        parents = np.zeros(1, np.int64)  # the number of each node of the level before
        places: list[Array] = [np.zeros(1, np.int64)] * rank
        for axis, level in zip(self.order, self.levels, strict=True):
            origin, index, parents = _children(level, parents, values.size)
            places = [place[origin] for place in places]
            target = axis if axis < rank else self.blocks[axis - rank]
            places[target] = places[target] + index * (block_sizes.get(axis, 1) if axis < rank else 1)
        if any(
            (place < 0).any() or (place >= extent).any() for place, extent in zip(places, shape, strict=True)
        ):
            raise ValueError("a sparse tensor has values outside its shape")
        if parents.size > values.size:
            raise ValueError(f"a sparse tensor has {values.size} of its {parents.size} values")
        found = np.zeros(shape, values.dtype)
        found[tuple(places)] = values[parents]
        return found


def _children(level: Level, parents: Array, most: int) -> tuple[Array, Array, Array]:
    """The nodes of a level: the place of each one's parent, its index along the axis, and its number."""
    if level.segments is None or level.indices is None:
        if level.size < 1 or parents.size * level.size > most:
            raise ValueError(f"a sparse tensor with a dense axis of {level.size} has {most} values")
        index = np.tile(np.arange(level.size), parents.size)
        origin = np.repeat(np.arange(parents.size), level.size)
        return origin, index, parents[origin] * level.size + index
    segments, indices = level.segments.astype(np.int64), level.indices.astype(np.int64)
    if parents.max(initial=-1) + 1 >= segments.size or (np.diff(segments) < 0).any() or segments[0] < 0:
        raise ValueError("the segments of a sparse tensor do not fit")
    if segments[-1] > indices.size:
        raise ValueError("a sparse tensor lacks indices")
    counts = segments[parents + 1] - segments[parents]
    origin = np.repeat(np.arange(parents.size), counts)
    starts = np.repeat(segments[parents] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    numbers = np.arange(int(counts.sum())) + starts
    return origin, indices[numbers], numbers


def read(table: Any) -> Sparsity | None:
    """From the tables of the schema package."""
    if table is None:
        return None
    levels = []
    for i in range(table.DimMetadataLength()):
        entry = table.DimMetadata(i)
        if entry.Format() == tflite.DimensionType.DENSE:
            levels.append(Level(entry.DenseSize()))
            continue
        segments = _vector(entry.ArraySegments(), entry.ArraySegmentsType())
        levels.append(Level(0, segments, _vector(entry.ArrayIndices(), entry.ArrayIndicesType())))
    order = tuple(int(table.TraversalOrder(i)) for i in range(table.TraversalOrderLength()))
    blocks = tuple(int(table.BlockMap(i)) for i in range(table.BlockMapLength()))
    return Sparsity(order, blocks, tuple(levels))


def _vector(table: Any, kind: int) -> Array:
    if table is None or kind not in _VECTORS:
        raise ValueError("a sparse axis lists no indices")
    vector = _VECTORS[kind]()
    vector.Init(table.Bytes, table.Pos)
    return np.asarray(vector.ValuesAsNumpy() if vector.ValuesLength() else [], np.int64)
