# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float layers whose weights are small integers times scales, in blocks: for tests of their kernels."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from tests.support.sketch import Sketch
from tinyml.ir import Array, DType, Graph, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.indexing.gather import Gather


def blocked(
    rng: Generator, rows: int, columns: int, block: int, bits: int = 4, zero_points: bool = False
) -> Array:
    """A matrix with a scale, and perhaps a zero point, for each block of a row."""
    half, blocks = 1 << (bits - 1), -(-columns // block)
    steps = rng.integers(-half, half, (rows, columns))
    if zero_points:
        zeros = rng.integers(-half, half, (rows, blocks))
        steps = steps - np.repeat(zeros, block, axis=1)[:, :columns]
    scales = rng.uniform(0.01, 0.1, (rows, blocks)).astype(np.float32)
    return steps.astype(np.float32) * np.repeat(scales, block, axis=1)[:, :columns]


def dense(weights: Array, rows: int = 1) -> Graph:
    sketch = Sketch(seed=weights.size)
    return sketch.graph(_dense(sketch, weights, rows))


def _dense(sketch: Sketch, weights: Array, rows: int = 1) -> Tensor:
    x = sketch.input((rows, weights.shape[1]), DType.FLOAT32)
    return sketch.add(Dense(), x, sketch.constant(weights), sketch.real(len(weights)))


def _pointwise(sketch: Sketch, weights: Array) -> Tensor:
    x = sketch.input((1, 3, 5, weights.shape[1]), DType.FLOAT32)
    filters = sketch.constant(weights.reshape(len(weights), 1, 1, -1))
    return sketch.add(Conv(), x, filters, sketch.real(len(weights)))


def _rows_of(sketch: Sketch, table: Array) -> Tensor:
    """Rows of a table, chosen at run time."""
    return sketch.add(Gather(), sketch.constant(table), sketch.input((6,), DType.INT32))


KERNELS = {
    "tinyml_dense_f32_s4": 7,
    "tinyml_dense_blocks_f32_s8": 2,
    "tinyml_row_f32_s4": 2,
    "tinyml_row_f32_s8": 1,
}
"""The kernels of ``layers()``, and how many layers each computes."""


def layers() -> Graph:
    """Layers for each of these kernels: blocks of all kinds, rows of odd length, zero points."""
    sketch = Sketch(seed=3)
    rng = sketch.rng
    return sketch.graph(
        _dense(sketch, blocked(rng, 9, 64, 64)),
        _dense(sketch, blocked(rng, 9, 256, 32), rows=2),
        _dense(sketch, blocked(rng, 9, 256, 32, zero_points=True)),
        _dense(sketch, blocked(rng, 5, 100, 32)),
        _dense(sketch, blocked(rng, 5, 77, 77)),
        _dense(sketch, blocked(rng, 6, 57, 19)),
        _pointwise(sketch, blocked(rng, 7, 48, 16)),
        _dense(sketch, blocked(rng, 6, 96, 32, bits=8)),
        _dense(sketch, blocked(rng, 6, 80, 32, bits=8, zero_points=True), rows=2),
        _rows_of(sketch, blocked(rng, 20, 64, 32)),
        _rows_of(sketch, blocked(rng, 20, 72, 32, zero_points=True)),
        _rows_of(sketch, blocked(rng, 20, 72, 32, bits=8)),
    )


def sample(graph: Graph, seed: int = 4) -> dict[str, Array]:
    """Values for the inputs; indices are in range or negative."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        real = tensor.dtype is DType.FLOAT32
        values = rng.normal(0, 1, tensor.shape) if real else rng.integers(-20, 20, tensor.shape)
        found[name] = values.astype(tensor.dtype.numpy)
    return found
