# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of kernels run, against geometries that can be counted by hand, and against counts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.cores.targets import find_target
from tinyml.cost.model import Speed, find_model
from tinyml.ir import Layer, Op, Quant, Shape
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.framework.kernel import Kernel, kernels_of
from tinyml.ops.framework.tally import Tally
from tinyml.ops.framework.work import Work
from tools import fit_loops, layer_counts, random_counts

M4 = find_target("cortex-m4")
HELD_OUT = (*range(4), *random_counts.FLOAT16_SUMS)  # batches of a hundred random layers
MACHINES = layer_counts.MACHINES
WITHIN = 0.95
"""The share of the layers with described kernels that are estimated within a tenth."""


def layer_of(op: Op, x: Shape, weights: Shape) -> Layer:
    sketch = Sketch(seed=1)
    values = sketch.rng.integers(-7, 8, weights).astype(np.int8)
    w = sketch.build.constant(values, "w", Quant.per_tensor(0.01, 0))
    y = sketch.add(op, sketch.input(x, quant=Quant.per_tensor(0.05, 3)), w, quant=Quant.per_tensor(0.5, 3))
    (layer,) = sketch.graph(y).layers()
    return layer


def counts(name: str, layer: Layer) -> Work:
    kernel, *_ = (kernel for kernel in kernels_of(type(layer.op)) if kernel.name == name)
    found = kernel.loop_counts(layer, M4)
    assert found is not None
    return {name: amount for name, amount in found.items() if amount}


def test_dense_layer_in_fours_and_single_filters() -> None:
    """Two rows of 10 elements: two words and two bytes; 7 filters: four at once, and three."""
    found = counts("tinyml_dense_dsp_s8", layer_of(Dense(), (2, 10), (7, 10)))
    assert found == {
        "calls": 1,
        "rows": 2,
        "bytes of the last word": 4,
        "fours": 2,
        "words of fours": 4,
        "fours of words": 2,
        "fours of the last word": 2,
        "filters": 6,
        "words of filters": 12,
        "filters of the last word": 6,
        "outputs": 14,
    }


def test_dense_layer_in_pairs() -> None:
    """Seven filters are a four and a three, which is a four as well; six are a four and a pair."""
    assert counts("tinyml_dense_pairs_s8", layer_of(Dense(), (1, 8), (7, 8)))["words of fours"] == 4
    six = counts("tinyml_dense_pairs_s8", layer_of(Dense(), (1, 8), (6, 8)))
    assert (six["fours"], six["words of fours"], six["words of pairs"]) == (1, 2, 2)


def test_convolution_with_windows_at_edges() -> None:
    """3x3 over 4x4 with padding: 4 windows inside, and 12 at an edge."""
    layer = layer_of(Conv(pads=(1, 1, 1, 1)), (1, 4, 4, 4), (5, 3, 3, 4))
    found = counts("tinyml_conv_dsp_s8", layer)
    assert found["windows"] == 16
    assert found["windows in pieces"] == 12
    assert found["blocks of windows"] == 8
    assert found["pairs of filters"] == 8 * 3
    assert found["last filters"] == 8
    assert found["words of pairs"] == 8 * 3 * 9
    # each tap is a word of four channels, inside or not
    assert found["words appended"] == 16 * 9


def test_two_windows_are_copied_at_once_inside_a_row() -> None:
    """1x3 over a row of 9 without padding has 7 windows: three blocks of two, and a last one."""
    layer = layer_of(Conv(), (1, 1, 9, 4), (4, 1, 3, 4))
    found = counts("tinyml_conv_pairs_s8", layer)
    assert found["blocks"] == found["rows of both"] == 4
    assert found["words of both"] == 12
    assert "windows" not in found
    padded = layer_of(Conv(pads=(0, 1, 0, 1)), (1, 1, 9, 4), (4, 1, 3, 4))
    found = counts("tinyml_conv_pairs_s8", padded)
    assert found["rows of both"] == 3  # 9 windows: the first and the last have padding
    assert found["windows"] == 4


def test_two_windows_of_broken_words_are_copied_at_once_as_bytes() -> None:
    """3x3 over three channels without padding: three rows of nine bytes, and seven words of the column."""
    found = counts("tinyml_conv_pairs_s8", layer_of(Conv(), (1, 3, 6, 3), (4, 3, 3, 3)))
    assert found["blocks"] == 2
    assert found["rows of both in bytes"] == 6
    assert found["words of both in bytes"] == 6 * 3
    assert found["words of columns"] == 2 * 7
    assert "windows" not in found
    assert "short rows of both" not in found
    one = counts("tinyml_conv_pairs_s8", layer_of(Conv(), (1, 3, 6, 1), (4, 3, 3, 1)))
    assert (one["short rows of both"], one["rows of both in bytes"]) == (6, 6)
    assert "words of both in bytes" not in one


def test_rows_of_a_dense_layer_are_pixels() -> None:
    dense = counts("tinyml_conv_pairs_s8", layer_of(Dense(), (5, 8), (7, 8)))
    assert dense == counts("tinyml_conv_pairs_s8", layer_of(Conv(), (1, 1, 5, 8), (7, 1, 1, 8)))


def test_depthwise_convolution_channel_by_channel() -> None:
    layer = layer_of(DepthwiseConv(pads=(1, 1, 1, 1)), (1, 5, 6, 3), (1, 3, 3, 3))
    found = counts("tinyml_depthwise_conv_dsp_s8", layer)
    way = "3x3_by_1_twice"
    assert found["bytes of planes"] == 7 * 8
    assert found["lines copied"] == 3 * 5
    assert found["fours copied"] == 3 * 5
    assert found["elements copied"] == 3 * 5 * 2
    assert found[f"lines {way}"] == 3 * 5
    assert found[f"pairs {way}"] == 3 * 5 * 3


def test_a_kernel_of_another_name_is_not_described_by_its_base() -> None:
    described = next(kernel for kernel in kernels_of(Dense) if kernel.name == "tinyml_dense_s8")
    other = next(kernel for kernel in kernels_of(Dense) if kernel.name == "tinyml_dense_mve_s8")
    assert isinstance(other, type(described))
    assert type(described).loop_counts is not Kernel.loop_counts
    assert type(other).loop_counts is Kernel.loop_counts


def test_figures_of_loops_that_estimate_models_worse_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    by_loops = {"close": 0.02, "far": 0.06, "as far": 0.06}
    by_sizes = {"close": 0.01, "far": 0.01, "as far": 0.06}
    monkeypatch.setattr(fit_loops, "loop_figures", lambda machine: {name: {"run": 1.0} for name in by_loops})
    monkeypatch.setattr(fit_loops, "shape_figures", lambda machine: {})
    monkeypatch.setattr(fit_loops, "examples", lambda machine: [])
    monkeypatch.setattr(fit_loops, "shape_limits", lambda machine, part: {})
    monkeypatch.setattr(fit_loops, "missed_by", lambda speed, machine: by_loops if speed.loops else by_sizes)
    assert fit_loops.with_loops(Speed(), "qemu-cortex-m4").loops.keys() == {"close", "as far"}


def test_figures_of_shapes_hold_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest part of the layers with which a model is not far off; without any, there are no figures."""
    most = {"small": 30.0, "never": 0.0, "always": 90.0}

    def missed_by(speed: Speed, machine: str) -> dict[str, float]:
        limits = speed.shapes_up_to if speed.shapes else {}
        return {name: 0.06 if limits.get(name, 0) > limit else 0.0 for name, limit in most.items()}

    monkeypatch.setattr(fit_loops, "loop_figures", lambda machine: {})
    monkeypatch.setattr(fit_loops, "examples", lambda machine: [])
    monkeypatch.setattr(fit_loops, "shape_figures", lambda machine: {name: {"time": 1.0} for name in most})
    limits = lambda machine, part: dict.fromkeys(most, 100 * part)  # noqa: E731
    monkeypatch.setattr(fit_loops, "shape_limits", limits)
    monkeypatch.setattr(fit_loops, "missed_by", missed_by)
    found = fit_loops.with_loops(Speed(), "qemu-cortex-m4")
    assert found.shapes_up_to == {"small": 30.0, "always": 90.0}
    assert found.shapes.keys() == found.shapes_up_to.keys()


@pytest.mark.parametrize(
    "distance, blocks, tried", [(None, 1, 1), (-128, 1, 1), (-64, 2, 3), (-32, 4, 9), (128, 1, 1)]
)
def test_float_windows_that_overlap_their_outputs(distance: int | None, blocks: int, tried: int) -> None:
    """Eight pixels of four channels, two at a time: those of a block are read before outputs replace them.

    With room for two, blocks of 8, 4 and 2 are tried, then 6, 3 and 2, then 4 and 2, then 2.
    """
    sketch = Sketch(seed=1)
    w = sketch.build.constant(np.ones((1, 1, 1, 4), np.float32), "w")
    y = sketch.add(DepthwiseConv(), sketch.input((1, 1, 8, 4)), w)
    (layer,) = sketch.graph(y).layers()
    kernel = next(k for k in kernels_of(DepthwiseConv) if k.name == "tinyml_depthwise_conv_f32")
    found = kernel.placed_counts(layer, M4, Tally(distance=distance))
    assert found is not None
    assert (found["blocks"], found["computed"], found["windows"]) == (blocks, blocks, 4)
    assert found["blocks tried"] == tried


def test_float_windows_that_begin_with_the_last() -> None:
    sketch = Sketch(seed=1)
    w = sketch.build.constant(np.ones((4, 1, 1, 4), np.float32), "w")
    y = sketch.add(Conv(), sketch.input((1, 1, 8, 4)), w)
    (layer,) = sketch.graph(y).layers()
    kernel = next(k for k in kernels_of(Conv) if k.name == "tinyml_conv_f32")
    found = kernel.placed_counts(layer, M4, Tally(distance=32, backwards=True))
    assert found is not None
    assert (found["blocks"], found["computed"], found["two windows by 4"]) == (4, 4, 4)


@pytest.mark.parametrize("machine", MACHINES)
def test_estimates_of_layers_that_were_held_out(machine: str) -> None:
    target = harness.find_machine(machine).target
    costs = find_model(target.name)
    assert costs is not None
    errors = []
    for one in random_counts.load():
        if one.machine != machine or one.batch not in HELD_OUT or one.kernel not in costs.instructions.loops:
            continue
        made = random_counts.made(one.batch, target.name)
        layer = made.selected[one.step].layer
        named = (kernel for kernel in kernels_of(type(layer.op)) if kernel.name == one.kernel)
        kernel = next((kernel for kernel in named if kernel.refusal(layer) is None), None)
        if kernel is None:
            continue  # another kernel computes it since it was counted
        guess = costs.instructions.of_layer(layer, kernel, made.emitted.tallies[one.step])
        assert guess is not None
        errors.append(abs(guess / one.instructions - 1))
    assert len(errors) > 150
    assert sum(error <= 0.1 for error in errors) >= WITHIN * len(errors)
