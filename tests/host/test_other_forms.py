# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one channel become depthwise ones, and groups are joined, where that is faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.layer_kinds import as_kind, random_values
from tests.support.sketch import Sketch
from tinyml.cores.targets import Target
from tinyml.emit.model import Provenance
from tinyml.ir import Graph, Layer, Quant
from tinyml.ir.interpreter import interpret
from tinyml.memory import other_forms, placement
from tinyml.memory.other_forms import Choose, with_other_forms
from tinyml.memory.select import Selected
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.short import ConvShortHelium
from tinyml.ops.dense.dense import Dense
from tinyml.pipeline import Compiled, Options, compile_graph, compile_model

LAST = 16
RNG = np.random.default_rng(2)
CORES = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "riscv32")


def graph_of(filters: int, kernel: tuple[int, int] = (3, 3), channels: int = 1, zero: int = 0) -> Graph:
    """A convolution of a picture, and one of single pixels whose output is what takes the most memory."""
    sketch = Sketch(seed=filters)
    x = sketch.input((1, 20, 20, channels), quant=Quant.per_tensor(0.05, 3))
    values = sketch.rng.integers(-60, 61, (filters, *kernel, channels)).astype(np.int8)
    scales = tuple(float(scale) for scale in sketch.rng.uniform(0.005, 0.02, filters))
    w = sketch.build.constant(values, "w", Quant(scales, (zero,) * filters, 0))
    pads = (kernel[0] // 2, kernel[1] // 2) * 2
    y = sketch.add(Conv(pads=pads), x, w, sketch.bias(filters), quant=Quant.per_tensor(0.1, -7))
    values = sketch.rng.integers(-60, 61, (LAST, 1, 1, filters)).astype(np.int8)
    w = sketch.build.constant(values, "last", Quant((0.01,) * LAST, (0,) * LAST, 0))
    return sketch.graph(sketch.add(Conv(), y, w, sketch.bias(LAST), quant=Quant.per_tensor(0.1, 4)))


def alone(graph: Graph) -> Graph:
    """The first layer of it."""
    first = graph.nodes[:1]
    return replace(graph, outputs=first[0].outputs).with_nodes(first)


def compiled(graph: Graph, target: str = "cortex-m4", optimize: str = "balanced") -> Compiled:
    return compile_graph(
        graph, "m", Provenance("m", "0" * 64, ""), Options(target=target, optimize=optimize, bands=False)
    )


def kernel(graph: Graph, target: str = "cortex-m4", optimize: str = "balanced") -> str:
    first, _ = compiled(graph, target, optimize).selected
    return first.kernel.name


@pytest.mark.parametrize("target", CORES)
def test_few_filters_of_a_picture_take_the_kernel_for_a_channel(target: str) -> None:
    goal = "speed" if target == "riscv32" else "balanced"  # 23 % of a run for 1.7 KB of code
    assert "depthwise" in kernel(graph_of(1), target, goal)


def test_many_filters_share_the_windows_that_are_gathered() -> None:
    assert "depthwise" not in kernel(graph_of(64, (10, 4)))


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_windows_of_few_channels_are_not_made_columns_with_helium(kind: str) -> None:
    for graph in (alone(graph_of(1, channels=2)), grouped(16, 2, 1), grouped(8, 3, 4)):
        one = compiled(as_kind(graph, kind), "cortex-m55", "speed").selected[0]
        assert one.kernel.name == f"tinyml_conv_few_mve_s{kind[3:]}"


def test_vectors_from_many_addresses_must_save_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain layer of eight channels, whose filters share columns, would take 0.6 of the instructions."""
    graph = alone(graph_of(8, channels=8))
    assert kernel_of_first(graph) == "tinyml_conv_mve_s8"
    monkeypatch.setattr(other_forms, "AN_ADDRESS", 0)
    assert kernel_of_first(graph) == "tinyml_conv_few_mve_s8"


def kernel_of_first(graph: Graph) -> str:
    return compiled(graph, "cortex-m55", "speed").selected[0].kernel.name


@pytest.mark.parametrize(
    "target, name",
    [
        ("cortex-m0", "tinyml_conv_few_s8"),
        ("cortex-m3", "tinyml_conv_few_s8"),
        ("cortex-m4", "tinyml_conv_short_dsp_s8"),
        ("cortex-m7", "tinyml_conv_short_dsp_s8"),
    ],
)
def test_windows_of_a_single_filter_are_multiplied_where_they_are(target: str, name: str) -> None:
    one = compiled(alone(graph_of(1, channels=2)), target, "speed").selected[0]
    assert one.kernel.name == name


@pytest.mark.parametrize(
    "target, name",
    [("cortex-m4", "tinyml_conv_short_dsp_s8"), ("cortex-m55", "tinyml_conv_short_mve_s8")],
)
@pytest.mark.parametrize("rows", [4, 49])
def test_rows_of_few_elements_are_multiplied_where_they_are(target: str, name: str, rows: int) -> None:
    sketch = Sketch(seed=4)
    x = sketch.input((rows, 4), quant=Quant.per_tensor(0.05, 3))
    values = sketch.rng.integers(-60, 61, (8, 4)).astype(np.int8)
    w = sketch.build.constant(values, "w", Quant((0.01,) * 8, (0,) * 8, 0))
    graph = sketch.graph(sketch.add(Dense(), x, w, sketch.bias(8), quant=Quant.per_tensor(0.1, 4)))
    assert compiled(graph, target, "speed").selected[0].kernel.name == name


@pytest.mark.parametrize(
    "target, name",
    [("cortex-m4", "tinyml_conv_short_dsp_s8"), ("cortex-m55", "tinyml_conv_short_mve_s8")],
)
def test_the_colours_of_a_picture_are_not_copied_for_short_filters(target: str, name: str) -> None:
    for filters in (2, 8):
        one = compiled(alone(graph_of(filters, channels=3)), target, "speed").selected[0]
        assert one.kernel.name == name


def test_rows_of_few_elements_leave_vectors_empty() -> None:
    """Three rows of three elements fit into one vector, which is loaded from where they are."""
    for channels, fits in ((1, False), (2, True)):
        (layer,) = alone(graph_of(4, channels=channels)).layers()
        assert isinstance(layer.op, Conv)
        few = Layer(layer.name, replace(layer.op, few=True), layer.inputs, layer.outputs)
        assert (ConvShortHelium().refusal(few) is None) == fits


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m3", "riscv32"])
def test_groups_of_few_channels_are_copied_apart(target: str) -> None:
    one = compiled(grouped(16, 2, 1), target, "speed").selected[0]
    assert one.kernel.name == "tinyml_conv_few_groups_s8"


def test_a_form_that_needs_no_code_is_taken_where_another_is_not_worth_its_code() -> None:
    """The kernel of depthwise layers is there; that for few filters saves too little of a long run."""
    sketch = Sketch(seed=3)
    outputs = []
    for op, x, weights in (
        (Conv(pads=(1, 1, 1, 1)), (1, 8, 8, 1), (2, 3, 3, 1)),
        (Conv(pads=(1, 1, 1, 1)), (1, 9, 9, 3), (1, 3, 3, 3)),
        (DepthwiseConv(pads=(1, 1, 1, 1)), (1, 8, 8, 4), (1, 3, 3, 4)),
        (Conv(pads=(1, 1, 1, 1)), (1, 12, 12, 32), (32, 3, 3, 32)),
    ):
        values = sketch.rng.integers(-60, 61, weights).astype(np.int8)
        axis = 3 if isinstance(op, DepthwiseConv) else 0
        w = sketch.build.constant(values, "w", Quant((0.01,) * weights[axis], (0,) * weights[axis], axis))
        data = sketch.input(x, quant=Quant.per_tensor(0.05, 3))
        outputs.append(sketch.add(op, data, w, sketch.bias(weights[axis]), quant=Quant.per_tensor(0.1, 4)))
    graph = sketch.graph(*outputs)
    for goal, few in (("balanced", "tinyml_conv_pairs_s8"), ("speed", "tinyml_conv_short_dsp_s8")):
        chosen = {
            one.layer.input(0).shape: one.kernel.name for one in compiled(graph, "cortex-m4", goal).selected
        }
        assert chosen[1, 8, 8, 1] == "tinyml_depthwise_conv_dsp_s8"
        assert chosen[1, 9, 9, 3] == few


def test_many_filters_of_many_channels_have_no_other_form() -> None:
    (layer,) = alone(graph_of(9, channels=4)).layers()
    assert not list(layer.op.other_forms(layer))


def test_several_channels_stay_a_convolution() -> None:
    assert "depthwise" not in kernel(graph_of(1, channels=2))


def test_code_that_must_be_small_is_not_linked_twice() -> None:
    assert "depthwise" not in kernel(graph_of(1), optimize="size")


@pytest.mark.parametrize("filters", [1, 2, 5])
@pytest.mark.parametrize("zero", [0, 3])
@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_the_same_outputs(filters: int, zero: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = as_kind(alone(graph_of(filters, zero=zero)), kind)
    rewritten: list[Graph | None] = []

    def everywhere(
        graph: Graph, chosen: Sequence[Selected], choose: Choose, target: Target, room: float, any_code: bool
    ) -> Graph | None:
        monkeypatch.setattr("tinyml.memory.other_forms.CLEARLY", 1e9)
        rewritten.append(with_other_forms(graph, chosen, choose, target, any_code=True))
        return rewritten[-1]

    monkeypatch.setattr(placement, "with_other_forms", everywhere)
    compiled(graph)
    (other,) = rewritten
    assert other is not None
    (node,) = other.nodes
    assert node.op.kind == "DepthwiseConv" or (isinstance(node.op, Conv) and node.op.few)
    x = graph.tensors[graph.inputs[0]]
    values = np.random.default_rng(1).integers(*x.dtype.limits, x.shape, endpoint=True).astype(x.dtype.numpy)
    feed = [{graph.inputs[0]: values}]
    (before,), (after,) = (interpret(each, feed) for each in (graph, other))
    np.testing.assert_array_equal(before[graph.outputs[0]], after[other.outputs[0]])


def test_memory_is_not_spent() -> None:
    """The copied channel is working memory: where the layer itself takes the most, windows are gathered."""
    first = alone(graph_of(LAST))
    assert "depthwise" in compiled(first, optimize="speed").selected[0].kernel.name
    assert "depthwise" not in compiled(first).selected[0].kernel.name


def grouped(groups: int, channels: int, filters: int, zero: int = 0, apart: int = 1) -> Graph:
    sketch = Sketch(seed=groups)
    x = sketch.input((1, 9, 9, groups * channels), quant=Quant.per_tensor(0.05, 3))
    outs = groups * filters
    values = sketch.rng.integers(-60, 61, (outs, 3, 3, channels)).astype(np.int8)
    scales = tuple(float(scale) for scale in sketch.rng.uniform(0.005, 0.02, outs))
    w = sketch.build.constant(values, "w", Quant(scales, (zero,) * outs, 0))
    op = Conv((1, 1), (1, apart), pads=(1, apart, 1, apart), groups=groups)
    return sketch.graph(sketch.add(op, x, w, sketch.bias(outs), quant=Quant.per_tensor(0.1, -7)))


def test_groups_of_few_channels_are_joined_on_cores_without_a_kernel_for_them() -> None:
    one = compiled(grouped(16, 2, 1, apart=2), "cortex-m3", "speed").selected[0]
    assert isinstance(one.layer.op, Conv)
    assert one.layer.op.groups < 16 == one.layer.op.groups * one.layer.op.joined
    assert one.layer.op.macs(one.layer) == 9 * 9 * 16 * 9 * 2, "zeros are no work of the model"


def test_weights_grow_by_a_quarter_and_a_kilobyte_at_most() -> None:
    graph = grouped(32, 4, 4)
    (one,) = compiled(graph, "cortex-m3").selected
    assert one.layer.input(1).elements <= graph.tensors["w"].elements * 1.25 + 1024


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_all_forms_of_groups_give_the_same_outputs(kind: str) -> None:
    graph = as_kind(grouped(12, 2, 1), kind)
    (layer,) = graph.layers()
    values = [
        None if tensor is None else tensor.value if tensor.is_constant else random_values(RNG, tensor)
        for tensor in layer.inputs
    ]
    (expected,) = layer.computed(values)
    forms = list(layer.op.other_forms(layer))
    assert [op.joined for op, _ in forms if isinstance(op, Conv)] == [1, 2, 3, 4]
    for op, (_, weights, *rest) in forms:
        assert weights is not None
        other = replace(layer, op=op, inputs=(layer.input(0), weights, *rest))
        np.testing.assert_array_equal(other.computed([values[0], weights.value, *values[2:]])[0], expected)


def test_weights_with_a_zero_point_are_not_joined() -> None:
    (layer,) = grouped(4, 2, 1, zero=5).layers()
    assert not list(layer.op.other_forms(layer))


def test_layers_without_figures_count_in_what_code_must_save(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a layer beside them would seem to be most of the run."""
    graph = graph_of(4)
    known = other_forms._spent

    def of_first(one: Selected, target: Target) -> float | None:
        return known(one, target) if one.layer.input(0).shape[3] == 1 else None

    monkeypatch.setattr(other_forms, "_spent", of_first)
    monkeypatch.setattr(other_forms, "ROUGH", {"macs": 1.0})
    assert "depthwise" in kernel(graph)
    monkeypatch.setattr(other_forms, "ROUGH", {"macs": 10_000.0})
    assert "depthwise" not in kernel(graph)


def test_weights_are_padded_only_for_a_gain(models_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of int16 would take 4 KB more in a layer of MobileNetV2 that saves 0.2 % of a run."""

    def weights() -> int:
        options = Options(target="cortex-m4", kernels="portable")
        return int(compile_model(models_folder / "d_st_mbv2_qdq_s8.onnx", options).summary["weights_bytes"])

    limited = weights()
    monkeypatch.setattr(other_forms, "PADDING_OF_A_PERCENT", 1 << 20)
    assert limited < weights() - 4_000
