# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Biases, depths and scales at the limits: sums that leave their accumulators have the same results."""

from __future__ import annotations

import numpy as np
import pytest

from tests.depth import some
from tests.support.interpret import interpret
from tinyml.emit.model import Provenance
from tinyml.harness import Options as harness_options
from tinyml.harness import run_files
from tinyml.ir import Array, DType, Graph, Node, Quant, Tensor
from tinyml.ops.dense.dense import Dense
from tinyml.passes.bound_sums import bound_sums
from tinyml.pipeline import Options, compile_graph

SEEDS = range(200)
BIASES = (0, 1000, 1 << 20, 1 << 29, (1 << 31) - 1)


def draw(rng: np.random.Generator) -> Graph:
    """A dense layer; half of the weights come in pairs that cancel each other."""
    wide, once = bool(rng.random() < 0.3), bool(rng.random() < 0.5)
    outputs, inputs = int(rng.integers(1, 5)), int(rng.choice([2, 8, 64, 600, 20_000]))
    dtype = DType.INT16 if wide else DType.INT8
    zero = 0 if wide else int(rng.integers(-128, 128))
    channels = outputs if rng.random() < 0.5 else 1
    scales = tuple(float(np.float32(10.0 ** rng.uniform(-9, 0))) for _ in range(channels))
    w = rng.integers(-127, 128, (outputs, inputs)).astype(np.int8)
    if rng.random() < 0.5:
        w[:, 1::2] = -w[:, ::2]
    most = int(rng.choice(BIASES))
    bias = rng.integers(-most, most + 1, outputs)
    x_scale = float(np.float32(10.0 ** rng.uniform(-6, 0)))
    y_scale = float(np.float32(10.0 ** rng.uniform(-12, 6)))
    tensors = [
        Tensor("x", (1, inputs), dtype, Quant.per_tensor(x_scale, zero)),
        Tensor("w", w.shape, DType.INT8, Quant(scales, (0,) * channels, 0 if channels > 1 else None), data=w),
        Tensor(
            "y", (1, outputs), dtype, Quant.per_tensor(y_scale, 0 if wide else int(rng.integers(-128, 128)))
        ),
        Tensor(
            "b",
            (outputs,),
            DType.INT64 if wide else DType.INT32,
            data=bias.astype("int64" if wide else "int32"),
        ),
    ]
    node = Node("dense", Dense(round_once=once), ("x", "w", "b"), ("y",))
    return Graph("g", {t.name: t for t in tensors}, (node,), ("x",), ("y",))


def inputs(graph: Graph, rng: np.random.Generator) -> list[Array]:
    """Random, at both ends of the range, and equal in pairs, so that many sums are the bias alone."""
    x = graph.tensors["x"]
    low, high = x.dtype.limits
    drawn = [rng.integers(low, high + 1, x.shape) for _ in range(3)]
    pairs = rng.integers(low, high + 1, (1, x.shape[1] // 2)).repeat(2, axis=1)
    zero = x.quant.zero_point if x.quant is not None else 0
    return [
        array.astype(x.dtype.numpy)
        for array in (*drawn, pairs, np.full(x.shape, low), np.full(x.shape, high), np.full(x.shape, zero))
    ]


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_zero_points_are_added_within_32_bits(sign: int, once: bool) -> None:
    """The largest sum, a factor just below one half, and a zero point that pushes it over the edge."""
    w = np.ones((1, 4), np.int8)
    bias = np.array([sign * ((1 << 31) - 513)], np.int32)
    zero = 127 if sign > 0 else -128
    tensors = [
        Tensor("x", (1, 4), DType.INT8, Quant.per_tensor(1.0, 0)),
        Tensor("w", w.shape, DType.INT8, Quant.per_tensor(1.0, 0), data=w),
        Tensor("y", (1, 1), DType.INT8, Quant.per_tensor(2.0 * (1 + 2.0**-30), zero)),
        Tensor("b", (1,), DType.INT32, data=bias),
    ]
    node = Node("dense", Dense(round_once=once), ("x", "w", "b"), ("y",))
    graph = Graph("g", {t.name: t for t in tensors}, (node,), ("x",), ("y",))
    x = np.full((1, 4), 127 if sign > 0 else -128, np.int8)
    compiled = compile_graph(graph, "g", Provenance("g", "0" * 64, ""), Options(target="host"))
    found = run_files(compiled.files, "host", [{"x": x}], options=harness_options(sanitize=True))
    assert found.outputs[0]["y"].tolist() == interpret(graph, {"x": x})["y"].tolist() == [[zero]]


@pytest.mark.parametrize("seed", some(SEEDS))
def test_layers_with_extreme_sums(seed: int) -> None:
    rng = np.random.default_rng([33, seed])
    graph = draw(rng)
    after = bound_sums(graph)
    in_float = any(
        isinstance(node.op, Dense) and after.tensors[node.inputs[0]].dtype.is_float for node in after.nodes
    )
    for x in inputs(graph, rng):
        wanted, found = interpret(graph, {"x": x})["y"], interpret(after, {"x": x})["y"]
        steps = np.abs(found.astype(np.int64) - wanted)
        assert steps.max() <= (1 if in_float else 0), (graph.nodes[0].op, found, wanted)
