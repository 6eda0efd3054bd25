# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float layers of every geometry on every core: within the stated bound of the exact sums, whatever the tile,
and with the same bits wherever products are rounded alike."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.support.any_plan import any_plan
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import Array, DType, Graph, Node, Shape, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.pipeline import Options, compile_graph
from tools import float_table

VECTORS = "qemu-riscv32-zve32f"
MACHINES = ["host", *harness.CORES, VECTORS]
SAME = (1, 1, 1, 1)

# Operator, input, weights, bias. Filters come by eight, by four and one by one.
CASES: dict[str, tuple[Convolution | ConvTranspose | Dense, Shape, Shape, bool]] = {
    "pointwise": (Conv(), (1, 3, 3, 6), (16, 1, 1, 6), True),
    "one_filter": (Conv(pads=SAME), (1, 4, 4, 3), (1, 3, 3, 3), True),
    "all_tiles": (Conv((2, 2), pads=(0, 0, 1, 1)), (1, 6, 6, 3), (15, 3, 3, 3), False),
    "groups": (Conv(pads=SAME, groups=2, clamp=(0.0, 2.0)), (1, 4, 4, 6), (26, 3, 3, 3), True),
    "dilated": (Conv(dilations=(2, 2), pads=(2, 2, 2, 2)), (2, 5, 5, 2), (9, 3, 3, 2), True),
    "depthwise": (DepthwiseConv(pads=SAME), (1, 5, 4, 19), (1, 3, 3, 19), True),
    "depthwise_none": (DepthwiseConv((2, 1), clamp=(-1.0, 1.0)), (2, 5, 4, 8), (1, 3, 2, 8), False),
    "depthwise_dilated": (
        DepthwiseConv(dilations=(1, 2), pads=(1, 2, 1, 2)),
        (1, 4, 6, 9),
        (1, 3, 3, 9),
        True,
    ),
    "depthwise_multiple": (DepthwiseConv(pads=SAME), (1, 4, 4, 4), (1, 3, 3, 8), True),
    "depthwise_one": (DepthwiseConv(pads=(1, 1, 2, 1)), (1, 11, 3, 1), (1, 4, 3, 8), True),
    "depthwise_three": (DepthwiseConv(pads=SAME), (1, 4, 5, 3), (1, 3, 3, 3), False),
    "depthwise_twelve": (DepthwiseConv((2, 2), pads=SAME), (1, 7, 6, 12), (1, 3, 3, 12), True),
    "four_filters": (Conv(pads=SAME), (1, 5, 5, 4), (12, 3, 3, 4), True),
    "column": (Conv(pads=(1, 0, 2, 0), clamp=(0.0, 6.0)), (1, 9, 1, 8), (16, 4, 1, 8), True),
    "row": (Conv(pads=(0, 2, 0, 2)), (1, 1, 17, 5), (10, 1, 5, 5), True),
    "wide_padding": (Conv(pads=(3, 3, 3, 3)), (1, 3, 2, 3), (5, 2, 2, 3), True),
    "batches": (Conv(), (3, 2, 2, 7), (11, 1, 1, 7), True),
    "groups_of_one": (Conv(pads=SAME, groups=4), (1, 4, 4, 4), (8, 3, 3, 1), True),
    "transposed": (ConvTranspose((2, 2), outputs=(6, 8)), (1, 3, 4, 5), (9, 2, 2, 5), True),
    "transposed_overlap": (
        ConvTranspose((2, 2), pads=(1, 1), outputs=(6, 7), clamp=(0.0, 3.0)),
        (1, 3, 4, 4),
        (12, 4, 3, 4),
        True,
    ),
    "transposed_plain": (
        ConvTranspose((1, 3), pads=(0, 2), outputs=(1, 12)),
        (1, 1, 4, 6),
        (5, 1, 5, 6),
        False,
    ),
    "dense": (Dense(), (1, 33), (13, 33), True),
    "dense_rows": (Dense(clamp=(0.0, np.inf)), (3, 8), (20, 8), False),
    "dense_few": (Dense(), (2, 1), (3, 1), True),
}


def layers() -> Graph:
    rng = np.random.default_rng(5)
    tensors: dict[str, Tensor] = {}
    nodes = []
    for name, (op, x_shape, w_shape, bias) in CASES.items():
        x = Tensor(f"{name}_x", x_shape, DType.FLOAT32)
        w = Tensor.constant(f"{name}_w", rng.standard_normal(w_shape).astype(np.float32))
        outputs = w_shape[op.channel_axis]
        found = [x, w]
        if bias:
            found.append(Tensor.constant(f"{name}_b", rng.standard_normal(outputs).astype(np.float32)))
        y = Tensor(f"{name}_y", op.infer(found)[0].shape, DType.FLOAT32)
        tensors |= {tensor.name: tensor for tensor in (*found, y)}
        nodes.append(Node(name, op, tuple(tensor.name for tensor in found), (y.name,)))
    inputs = tuple(f"{name}_x" for name in CASES)
    return Graph("floats", tensors, tuple(nodes), inputs, tuple(f"{name}_y" for name in CASES))


@cache
def fed() -> dict[str, Array]:
    graph, rng = layers(), np.random.default_rng(6)
    return {name: rng.standard_normal(graph.tensors[name].shape).astype(np.float32) for name in graph.inputs}


@cache
def outputs(machine: str, *defines: str) -> dict[str, Array]:
    return computed(machine, fed(), *defines)


def computed(machine: str, inputs: dict[str, Array], *defines: str) -> dict[str, Array]:
    options = Options(target=harness.find_machine(machine).target.name, kernels="portable")
    with any_plan():
        compiled = compile_graph(layers(), "floats", Provenance("floats", "0" * 64, ""), options)
    build = harness.Options(strict=True, sanitize=machine == "host", defines=defines)
    return dict(harness.run_files(compiled.files, machine, [inputs], options=build).outputs[0])


def exact(graph: Graph, node: Node) -> tuple[Array, Array]:
    """The sums of a layer in double precision, and the sums of the magnitudes of all that is added."""
    values = [fed().get(name, graph.tensors[name].data) for name in node.inputs]
    wide = [np.asarray(value, np.float64) for value in values if value is not None]
    op = node.op
    assert isinstance(op, Convolution | ConvTranspose | Dense)
    sums, magnitudes = op.accumulate(*wide[:2]), op.accumulate(*map(np.abs, wide[:2]))
    if len(wide) > 2:
        sums, magnitudes = sums + wide[2], magnitudes + np.abs(wide[2])
    return np.clip(sums, *op.clamp), magnitudes


@pytest.mark.parametrize("machine", MACHINES)
def test_sums_are_within_the_stated_bound(machine: str) -> None:
    """Of n products and a bias: (n + 2) * 2**-24 times the sum of magnitudes (docs/floats.md)."""
    graph, found = layers(), outputs(machine)
    for node in graph.nodes:
        op, weights = node.op, graph.tensors[node.inputs[1]]
        assert isinstance(op, Convolution | ConvTranspose | Dense)
        products = weights.elements // weights.shape[op.channel_axis]
        expected, magnitudes = exact(graph, node)
        error = np.abs(found[node.outputs[0]] - expected)
        assert (error <= (products + 2) * 2.0**-24 * magnitudes).all(), node.name


@pytest.mark.parametrize("machine", MACHINES[1:])
def test_a_computer_repeats_what_a_core_computes(machine: str) -> None:
    """Bit for bit, if both round products, or if both fuse them with the sum."""
    fused = harness.find_machine(machine).target.fpu
    again = outputs("host", f"TINYML_FUSED_F32={int(fused)}")
    for name, found in outputs(machine).items():
        np.testing.assert_array_equal(found, again[name], err_msg=name)


def test_the_length_of_vectors_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all eight filters of a tile, and all channels, are lanes of one register."""
    usual, found = outputs(VECTORS), harness.find_machine(VECTORS)
    assert found.board is not None
    options = tuple(word.replace("vlen=128", "vlen=512") for word in found.board.options)
    assert options != found.board.options
    longer = replace(found, board=replace(found.board, options=options))
    monkeypatch.setitem(harness.MACHINES, VECTORS, longer)
    for name, values in computed(VECTORS, fed()).items():
        np.testing.assert_array_equal(values, usual[name], err_msg=name)


def test_a_computer_repeats_what_a_core_with_fpu_but_without_vectors_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """RISC-V, whose C keeps sums in floating-point registers."""
    monkeypatch.setitem(harness.MACHINES, float_table.PLAIN, float_table.with_fpu())
    again = outputs("host", "TINYML_FUSED_F32=1")
    for name, found in computed(float_table.PLAIN, fed()).items():
        np.testing.assert_array_equal(found, again[name], err_msg=name)


def test_products_can_be_rounded_where_they_could_be_fused() -> None:
    again = outputs("host", "TINYML_FUSED_F32=0")
    for name, found in outputs("qemu-cortex-m4", "TINYML_FUSED_F32=0").items():
        np.testing.assert_array_equal(found, again[name], err_msg=name)
    assert any((outputs("qemu-cortex-m4")[name] != again[name]).any() for name in again)


@pytest.mark.parametrize("machine", MACHINES)
def test_limits_keep_what_is_not_a_number(machine: str) -> None:
    """A NaN is neither below the lower limit nor above the upper one."""
    graph = layers()
    inputs = {name: np.full_like(x, np.nan) for name, x in fed().items()}
    found = computed(machine, inputs)
    for node in graph.nodes:
        values = [inputs.get(name, graph.tensors[name].data) for name in node.inputs]
        (wanted,) = node.op.evaluate(graph.layer(node), values)
        assert np.isnan(wanted).any(), node.name
        np.testing.assert_array_equal(np.isnan(found[node.outputs[0]]), np.isnan(wanted), node.name)


EXTREMES = np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40, -1e-45, -0.0], np.float32)


@cache
def extremes() -> dict[str, Array]:
    """Usual numbers, and every tenth is none that arithmetic stays usual with."""
    rng = np.random.default_rng(8)
    return {
        name: np.where(rng.random(x.shape) < 0.1, rng.choice(EXTREMES, x.shape), x)
        for name, x in fed().items()
    }


@pytest.mark.parametrize("machine", MACHINES[1:])
def test_a_computer_repeats_what_a_core_makes_of_extremes(machine: str) -> None:
    """Infinities, NaN, what overflows, numbers below the normal ones, and zeros with a sign."""
    fused = harness.find_machine(machine).target.fpu
    again = computed("host", extremes(), f"TINYML_FUSED_F32={int(fused)}")
    infinite = [name for name, values in again.items() if not np.isfinite(values).all()]
    assert len(infinite) > len(again) // 2
    for name, found in computed(machine, extremes()).items():
        np.testing.assert_array_equal(found, again[name], err_msg=name)
