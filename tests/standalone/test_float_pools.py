# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Pools of floats of random geometry: with vectors as in the loops of other cores, in every bit, also where
elements are not numbers, infinite, or zeros of either sign."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import Array, DType, Layer
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.pipeline import Options, compile_graph

LAYERS = 40
SPECIAL = np.array(
    [0x7FC00000, 0xFFC12345, 0x7F800000, 0xFF800000, 0, 0x80000000, 0x80000000, 0], np.uint32
).view(np.float32)


def drawn(rng: np.random.Generator) -> tuple[MaxPool | AveragePool, tuple[int, int, int, int]]:
    """A pool, and the shape of its input."""
    rows, columns, channels, batches = (int(rng.integers(1, n)) for n in (12, 12, 20, 3))
    kernel = (int(rng.integers(1, min(rows, 5) + 1)), int(rng.integers(1, min(columns, 5) + 1)))
    if rng.random() < 0.2:
        kernel = (kernel[0], columns)  # rows that follow each other
    dilations = tuple(
        2 if 2 * (k - 1) < size and rng.random() < 0.2 else 1
        for k, size in zip(kernel, (rows, columns), strict=True)
    )
    strides = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    pads = tuple(int(rng.integers(0, k)) for k in (*kernel, *kernel)) if rng.random() < 0.5 else (0, 0, 0, 0)
    clamp = ((-np.inf, np.inf), (0.0, np.inf), (-0.5, 0.75))[int(rng.integers(3))]
    shape = (batches, rows, columns, channels)
    if rng.random() < 0.5:
        return MaxPool(kernel, strides, dilations, pads, clamp=clamp), shape
    counts = bool(rng.random() < 0.3)
    return AveragePool(kernel, strides, dilations, pads, clamp=clamp, include_pad=counts), shape


def values(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers, of which some are equal, with some special ones."""
    x = (rng.integers(-8, 9, shape) / 8).astype(np.float32)
    return np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), x)


def expected(layer: Layer, x: Array) -> Array:
    """What the loops compute, element by element of a window, for all channels."""
    op = layer.op
    assert isinstance(op, MaxPool | AveragePool)
    low, high = (np.float32(limit) for limit in op.clamp)
    taps = np.moveaxis(op.windows(x, 0), -1, 3).reshape(*layer.output.shape, -1)
    inside = np.moveaxis(op.windows(np.ones(x.shape, bool), False), -1, 3).reshape(taps.shape)
    largest = isinstance(op, MaxPool)
    found: Array = np.full(layer.output.shape, low if largest else 0, np.float32)
    with np.errstate(invalid="ignore"):
        for tap in range(taps.shape[-1]):
            v, counts = taps[..., tap], inside[..., tap]
            new = np.where((v > found) | np.isnan(v), v, found) if largest else found + v
            found = np.where(counts, new, found)
        if isinstance(op, AveragePool):
            found = found / op.counts(x.shape).astype(np.float32)
            found = np.where(found < low, low, found)
        return np.where(found > high, high, found).astype(np.float32)


@pytest.mark.parametrize("machine", ["host", "qemu-cortex-m4", "qemu-cortex-m55", "qemu-riscv32-zve32f"])
def test_pools_of_random_geometry(machine: str) -> None:
    rng, sketch = np.random.default_rng(11), Sketch()
    inputs, outputs = {}, []
    for _ in range(LAYERS):
        op, shape = drawn(rng)
        x = sketch.input(shape, DType.FLOAT32)
        inputs[x.name] = values(rng, shape)
        outputs.append(sketch.add(op, x))
    graph = sketch.graph(*outputs)
    target = harness.find_machine(machine).target
    compiled = compile_graph(graph, "pools", Provenance("pools", "0" * 64, ""), Options(target=target.name))
    vectors = sum(chosen.kernel.name.endswith(("mve_f32", "rvv_f32")) for chosen in compiled.selected)
    assert vectors > LAYERS // 2 if target.mve or target.rvv else not vectors
    (found,) = harness.run_files(
        compiled.files, machine, [inputs], options=harness.Options(check_arena=True)
    ).outputs
    for layer in graph.layers():
        wanted, output = expected(layer, inputs[layer.input(0).name]), found[layer.output.name]
        if isinstance(layer.op, MaxPool):  # elements are not changed, so neither are the bits of a NaN
            np.testing.assert_array_equal(output.view(np.uint32), wanted.view(np.uint32), str(layer.op))
        else:
            np.testing.assert_array_equal(output, wanted, str(layer.op))
            zeros = wanted == 0
            np.testing.assert_array_equal(np.signbit(output[zeros]), np.signbit(wanted[zeros]))
