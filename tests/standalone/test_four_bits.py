# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Kernels for weights of four bits on the emulated cores, with outputs that are large for their sums.

Weights of four bits come with sums of a few bits, so shifts of 0 and to the left are common.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from tests.random_layers.batch import batch
from tests.random_layers.check import Choices, Place, check
from tests.support.layer_kinds import always_four_bits
from tests.support.weighted_layers import Layers, Weighted
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.pipeline import Options, compile_graph

SAME = (1, 1, 1, 1)
RELU = (0.0, np.inf)
AS_LARGE, LARGER = 0.0001, 0.00003  # scales of outputs; that of sums is 0.00005 to 0.00015, by channel
CASES = {
    "pointwise": Weighted(Conv(clamp=RELU), (1, 3, 4, 12), (11, 1, 1, 12), scale=AS_LARGE),
    "depthwise": Weighted(DepthwiseConv(pads=SAME), (1, 6, 5, 18), (1, 3, 3, 18), scale=AS_LARGE),
    "depthwise_fine": Weighted(DepthwiseConv((2, 2), pads=SAME), (1, 7, 6, 9), (1, 3, 3, 9), scale=LARGER),
    "depthwise_5x5": Weighted(DepthwiseConv(pads=(2, 2, 2, 2)), (1, 6, 7, 7), (1, 5, 5, 7), scale=AS_LARGE),
    "depthwise_column": Weighted(DepthwiseConv(), (1, 12, 1, 10), (1, 5, 1, 10), scale=LARGER),
    "dense": Weighted(Dense(), (1, 40), (30, 40), scale=LARGER),
    "dense_rows": Weighted(Dense(clamp=RELU), (2, 37), (23, 37), y_zero=-128, scale=AS_LARGE),
}


@pytest.fixture(autouse=True)
def quick_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinyml.memory.plan.solve.SEARCH_WORK", 0)


@pytest.mark.parametrize(
    "machine, once, kernel",
    [
        ("qemu-cortex-m0", False, "tinyml_depthwise_nibbles_halves_s8"),
        ("qemu-cortex-m3", True, "tinyml_depthwise_nibbles_halves_s8"),
        ("qemu-cortex-m4", False, "tinyml_depthwise_nibbles_dsp_s8"),
        ("qemu-cortex-m55", False, "tinyml_depthwise_nibbles_mve_s8"),
        ("qemu-cortex-m55", True, "tinyml_dense_nibbles_mve_s8"),
        ("qemu-riscv32-zve32x", False, "tinyml_depthwise_conv_rvv_s8"),  # larger weights, in bytes
    ],
)
def test_large_outputs(machine: str, once: bool, kernel: str) -> None:
    sketch = Layers()
    for name, case in CASES.items():
        sketch.weighted(name, replace(case, lowest=-7, largest=7, bias=False), once)
    graph = sketch.graph()
    rng = np.random.default_rng(12)
    feed = {name: rng.integers(-12, 13, graph.tensors[name].shape).astype(np.int8) for name in graph.inputs}
    options = Options(target=harness.find_machine(machine).target.name, kernels="portable", bands=False)
    with always_four_bits() if "nibbles" in kernel else nullcontext():
        compiled = compile_graph(graph, "layers", Provenance("layers", "0" * 64, ""), options)
    family = [one.kernel.name for one in compiled.selected if one.layer.name.startswith(kernel.split("_")[1])]
    assert set(family) == {kernel}
    (found,) = harness.run_files(
        compiled.files, machine, [feed], options=harness.Options(strict=True, check_arena=True)
    ).outputs
    inside = 0
    for node in graph.nodes:
        values = [feed.get(name, graph.tensors[name].data) for name in node.inputs]
        (expected,) = node.op.evaluate(graph.layer(node), values)
        np.testing.assert_array_equal(found[node.outputs[0]], expected, err_msg=node.name)
        inside += int((np.abs(expected.astype(int)) < 120).sum())
    assert inside > 500  # outputs that no limit hides


LONG = {
    f"{inputs}_inputs": Weighted(Dense(), (2, inputs), (outputs, inputs), lowest=-8, largest=7, x_zero=zero)
    for inputs, outputs, zero in [
        (129, 8, 0),
        (130, 19, -3),
        (131, 16, 5),
        (132, 7, 0),
        (155, 24, 0),
        (197, 3, 9),
    ]
}
"""Dense layers with rows that are longer than what is unpacked as a whole with DSP instructions."""


@pytest.mark.parametrize("once", [False, True])
def test_long_rows_with_an_incomplete_last_word(once: bool) -> None:
    """Its products come behind the loop, in registers that the loop has for other things."""
    sketch = Layers()
    for name, case in LONG.items():
        sketch.weighted(name, case, once)
    graph = sketch.graph()
    rng = np.random.default_rng(5)
    feed = {name: rng.integers(-128, 128, graph.tensors[name].shape).astype(np.int8) for name in graph.inputs}
    options = Options(target="cortex-m4", kernels="portable", bands=False)
    with always_four_bits():
        compiled = compile_graph(graph, "layers", Provenance("layers", "0" * 64, ""), options)
    assert {one.kernel.name for one in compiled.selected} == {"tinyml_dense_nibbles_dsp_s8"}
    (found,) = harness.run_files(
        compiled.files, "qemu-cortex-m4", [feed], options=harness.Options(strict=True, check_arena=True)
    ).outputs
    for node in graph.nodes:
        values = [feed.get(name, graph.tensors[name].data) for name in node.inputs]
        (expected,) = node.op.evaluate(graph.layer(node), values)
        np.testing.assert_array_equal(found[node.outputs[0]], expected, err_msg=node.name)
        assert len(np.unique(expected)) > 3, node.name


BY_ROWS = {
    "five": Weighted(DepthwiseConv(pads=SAME), (1, 5, 4, 5), (1, 3, 3, 5)),
    "eight": Weighted(DepthwiseConv(pads=SAME), (1, 6, 5, 8), (1, 3, 3, 8)),
    "sixteen": Weighted(
        DepthwiseConv((2, 2), pads=SAME, clamp=RELU), (1, 7, 6, 16), (1, 3, 3, 16), y_zero=-128
    ),
    "seventeen": Weighted(DepthwiseConv(pads=SAME), (2, 5, 6, 17), (1, 3, 3, 17)),
    "forty": Weighted(DepthwiseConv(dilations=(2, 1)), (1, 9, 5, 40), (1, 3, 3, 40)),
    "fine": Weighted(DepthwiseConv(pads=SAME), (1, 6, 5, 50), (1, 3, 3, 50), scale=AS_LARGE, bias=False),
}


@pytest.mark.parametrize("once", [False, True])
def test_weights_unpacked_for_every_row(once: bool) -> None:
    """With Helium, few weights of 3x3 kernels: any number of channels, the last of which overlap others."""
    sketch = Layers()
    for name, case in BY_ROWS.items():
        sketch.weighted(name, replace(case, lowest=-8 + (name == "fine"), largest=7), once)
    graph = sketch.graph()
    rng = np.random.default_rng(8)
    feed = {name: rng.integers(-128, 128, graph.tensors[name].shape).astype(np.int8) for name in graph.inputs}
    options = Options(target="cortex-m55", kernels="portable", bands=False)
    with always_four_bits(least=1024):
        compiled = compile_graph(graph, "layers", Provenance("layers", "0" * 64, ""), options)
    assert {one.kernel.name for one in compiled.selected} == {"tinyml_depthwise_nibbles_rows_mve_s8"}
    (found,) = harness.run_files(
        compiled.files, "qemu-cortex-m55", [feed], options=harness.Options(strict=True, check_arena=True)
    ).outputs
    for node in graph.nodes:
        values = [feed.get(name, graph.tensors[name].data) for name in node.inputs]
        (expected,) = node.op.evaluate(graph.layer(node), values)
        np.testing.assert_array_equal(found[node.outputs[0]], expected, err_msg=node.name)
        assert len(np.unique(expected)) > 3, node.name


TRANSPOSED = {
    "doubled": Weighted(ConvTranspose((2, 2), pads=(1, 1), outputs=(8, 10)), (1, 4, 5, 8), (6, 4, 4, 8)),
    "rows_apart": Weighted(ConvTranspose((3, 1), outputs=(9, 5), clamp=RELU), (2, 3, 5, 7), (9, 3, 1, 7)),
    "no_taps": Weighted(ConvTranspose((3, 2), outputs=(8, 6)), (1, 3, 3, 5), (4, 2, 1, 5)),
    "dilated": Weighted(ConvTranspose((2, 2), (2, 3), outputs=(9, 12)), (1, 3, 4, 6), (5, 3, 2, 6)),
    "groups": Weighted(ConvTranspose((2, 2), outputs=(6, 8), groups=2), (1, 3, 4, 10), (6, 2, 3, 5)),
    "row_of_pixels": Weighted(ConvTranspose((2, 1), outputs=(3, 4)), (1, 1, 4, 8), (5, 2, 1, 8)),
    "any_weights": Weighted(ConvTranspose((2, 1), outputs=(6, 6)), (1, 3, 5, 4), (7, 2, 2, 4), zero=5),
    "fine": Weighted(ConvTranspose((2, 2), outputs=(6, 6)), (1, 3, 3, 9), (5, 2, 2, 9), scale=AS_LARGE),
}
LOWEST = {"any_weights": 8}  # what is stored is 3 to 18, less the zero point of 5


@pytest.mark.parametrize(
    "machine, once, kernels",
    [
        ("qemu-cortex-m3", True, {"tinyml_conv_apart_nibbles_halves_s8", "tinyml_conv_apart_nibbles_s8"}),
        ("qemu-cortex-m4", False, {"tinyml_conv_apart_nibbles_dsp_s8"}),
        ("qemu-riscv32", False, {"tinyml_conv_apart_nibbles_s8"}),
    ],
)
def test_transposed(machine: str, once: bool, kernels: set[str]) -> None:
    sketch = Layers()
    for name, case in TRANSPOSED.items():
        low = LOWEST.get(name, -8)
        sketch.weighted(name, replace(case, lowest=low, largest=low + 15), once)
    graph = sketch.graph()
    rng = np.random.default_rng(3)
    feed = {name: rng.integers(-128, 128, graph.tensors[name].shape).astype(np.int8) for name in graph.inputs}
    options = Options(target=harness.find_machine(machine).target.name, kernels="portable", bands=False)
    with always_four_bits():
        compiled = compile_graph(graph, "layers", Provenance("layers", "0" * 64, ""), options)
    assert {one.kernel.name for one in compiled.selected} == kernels
    (found,) = harness.run_files(
        compiled.files, machine, [feed], options=harness.Options(strict=True, check_arena=True)
    ).outputs
    for node in graph.nodes:
        values = [feed.get(name, graph.tensors[name].data) for name in node.inputs]
        (expected,) = node.op.evaluate(graph.layer(node), values)
        np.testing.assert_array_equal(found[node.outputs[0]], expected, err_msg=node.name)
        assert len(np.unique(expected)) > 3, node.name


@pytest.mark.parametrize(
    "machine, kernels",
    [
        ("qemu-cortex-m0", {"conv_nibbles_halves", "depthwise_nibbles_halves", "dense_nibbles"}),
        ("qemu-cortex-m4", {"conv_nibbles_dsp", "depthwise_nibbles_dsp", "dense_nibbles_dsp"}),
        ("qemu-cortex-m55", {"conv_nibbles_mve", "depthwise_nibbles_mve", "dense_nibbles_mve"}),
        ("qemu-riscv32-zve32x", {"conv_nibbles_rvv", "depthwise_nibbles_rvv", "dense_nibbles_rvv"}),
    ],
)
def test_some_of_the_campaign(machine: str, kernels: set[str]) -> None:
    """`python -m tools.random_layers --kind four_bits` runs many more."""
    found = check(batch(35, 0, size=40, kind="four_bits"), Place(machine, "portable"), Choices.of(0))
    assert not found.wrong
    assert {f"tinyml_{name}_s8" for name in kernels} <= set(found.kernels)
