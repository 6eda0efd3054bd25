# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``arithmetic: float16``: Helium and a computer add up the same float16 sums as numpy, bit for bit, and
these are within the bound that docs/floats.md states."""

from __future__ import annotations

from functools import cache
from unittest.mock import patch

import numpy as np
import pytest

from tests.standalone.test_float16_weights import EXTREMES
from tests.standalone.test_float_kernels import CASES
from tests.support.any_plan import any_plan
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import Array, DType, Graph, Node, Shape, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.dense.dense import Dense
from tinyml.ops.shared.window import windows
from tinyml.ops.weighted import float16_sums
from tinyml.ops.weighted.float16_sums import BLOCK, summed
from tinyml.pipeline import Compiled, Options, compile_graph

# Operator, input, weights, bias: more than a block, and all tiles of filters.
MORE: dict[str, tuple[Conv | Dense, Shape, Shape, bool]] = {
    "blocks": (Dense(), (3, 131), (45, 131), True),
    "one_row": (Dense(clamp=(-1.0, np.inf)), (1, 64), (24, 64), True),
    "large_window": (Conv((1, 2), pads=(1, 1, 1, 1)), (1, 5, 7, 9), (31, 3, 3, 9), True),
    "backwards": (Conv(), (1, 3, 3, 4), (16, 1, 1, 4), False),
}
KINDS = {name: case for name, case in CASES.items() if isinstance(case[0], Conv | Dense)} | MORE
MACHINES = ["host", "qemu-cortex-m55"]
ROUNDING = 2.0**-11
SMALLEST = 2.0**-24


@cache
def layers() -> Graph:
    rng = np.random.default_rng(7)
    tensors: dict[str, Tensor] = {}
    nodes = []
    for name, (op, x_shape, w_shape, bias) in KINDS.items():
        x = Tensor(f"{name}_x", x_shape, DType.FLOAT32)
        weights = rng.standard_normal(w_shape).astype(np.float16).astype(np.float32)
        some = rng.random(w_shape) < 0.1
        weights[some] = rng.choice(EXTREMES[:-1], some.sum())
        found = [x, Tensor.constant(f"{name}_w", weights)]
        if bias:
            outputs = w_shape[op.channel_axis]
            found.append(Tensor.constant(f"{name}_b", rng.standard_normal(outputs).astype(np.float32)))
        y = Tensor(f"{name}_y", op.infer(found)[0].shape, DType.FLOAT32)
        tensors |= {tensor.name: tensor for tensor in (*found, y)}
        nodes.append(Node(name, op, tuple(tensor.name for tensor in found), (y.name,)))
    return Graph("f16", tensors, tuple(nodes), tuple(f"{n}_x" for n in KINDS), tuple(f"{n}_y" for n in KINDS))


def inputs(kind: str) -> dict[str, Array]:
    """``small``: most are below the smallest normal number; ``large``: sums become infinite."""
    graph, rng = layers(), np.random.default_rng(6)
    scale = {"usual": 1.0, "small": 2.0**-18, "large": 30000.0}[kind]
    return {
        name: (scale * rng.standard_normal(graph.tensors[name].shape)).astype(np.float32)
        for name in graph.inputs
    }


@cache
def compiled(machine: str) -> Compiled:
    target = harness.find_machine(machine).target.name
    options = Options(target=target, kernels="portable", arithmetic="float16")
    with any_plan(), patch.object(float16_sums, "FEW_WEIGHTS", 0):
        return compile_graph(layers(), "f16", Provenance("f16", "0" * 64, ""), options)


@cache
def outputs(machine: str, kind: str) -> dict[str, Array]:
    build = harness.Options(strict=True, sanitize=machine == "host")
    return dict(harness.run_files(compiled(machine).files, machine, [inputs(kind)], options=build).outputs[0])


def window_rows(op: Conv | Dense, x: Array, weights: Array) -> list[tuple[Array, Array, slice]]:
    """The windows of each group, its filters, and the outputs that they give."""
    if isinstance(op, Dense):
        return [(x, weights, slice(None))]
    columns = windows(x, weights.shape[1:3], op.strides, op.dilations, op.pads, 0)
    parts = []
    for i in range(op.groups):
        ins, outs = weights.shape[3], weights.shape[0] // op.groups
        chosen = slice(i * outs, (i + 1) * outs)
        group = columns[..., i * ins : (i + 1) * ins]
        parts.append((group.reshape(*group.shape[:3], -1), weights[chosen].reshape(outs, -1), chosen))
    return parts


def by_numpy(node: Node, x: Array) -> Array:
    graph, op = layers(), node.op
    assert isinstance(op, Conv | Dense)
    weights = graph.tensors[node.inputs[1]].value
    bias = graph.tensors[node.inputs[2]].value if len(node.inputs) > 2 else None
    parts = [
        summed(rows, filters, None if bias is None else bias[chosen])
        for rows, filters, chosen in window_rows(op, x, weights)
    ]
    return np.clip(np.concatenate(parts, axis=-1), *map(np.float32, op.clamp))


def test_every_layer_adds_in_float16() -> None:
    for machine in MACHINES:
        names = {one.kernel.name for one in compiled(machine).selected}
        assert names == {"tinyml_conv_f16", "tinyml_dense_f16"}


@pytest.mark.parametrize("kind", ["usual", "small", "large"])
@pytest.mark.parametrize("machine", MACHINES)
def test_results_are_those_of_numpy(machine: str, kind: str) -> None:
    found, fed = outputs(machine, kind), inputs(kind)
    infinite = False
    for node in layers().nodes:
        wanted = by_numpy(node, fed[node.inputs[0]])
        infinite = infinite or not np.isfinite(wanted).all()
        np.testing.assert_array_equal(found[node.outputs[0]], wanted, node.name)
    assert infinite == (kind == "large")


@pytest.mark.parametrize("kind", ["usual", "small"])
def test_sums_are_within_the_stated_bound(kind: str) -> None:
    graph, found, fed = layers(), outputs("qemu-cortex-m55", kind), inputs(kind)
    for node in graph.nodes:
        op, x = node.op, fed[node.inputs[0]]
        assert isinstance(op, Convolution | Dense)
        weights = graph.tensors[node.inputs[1]].value
        bias = graph.tensors[node.inputs[2]].value if len(node.inputs) > 2 else np.zeros(1)
        wide = [np.asarray(value, np.float64) for value in (x, weights)]
        exact = np.clip(op.accumulate(*wide) + bias, *op.clamp)
        magnitudes = op.accumulate(*map(np.abs, wide)) + np.abs(bias)
        sums = op.accumulate(np.ones_like(wide[0]), np.abs(wide[1]))
        count = weights[0].size
        allowed = (BLOCK + 2) * ROUNDING * magnitudes + SMALLEST * (sums + count)
        assert (np.abs(found[node.outputs[0]] - exact) <= allowed).all(), node.name
