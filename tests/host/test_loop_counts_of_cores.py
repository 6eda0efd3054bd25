# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of kernels for one kind of core run: 32 registers, vectors, two windows in a word."""

from __future__ import annotations

import numpy as np
import pytest

from tests.host.test_loop_counts import counts, layer_of
from tests.random_layers.recurrent import recurrent_layer
from tests.random_layers.recurrent_float import recurrent_float_layer
from tests.support.sketch import Sketch
from tinyml.cores.targets import find_target
from tinyml.ir import Graph
from tinyml.ops.conv import helium_counts
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.framework.kernel import kernels_of
from tinyml.ops.framework.work import Work
from tinyml.ops.recurrent.cells import GATES
from tinyml.ops.recurrent.recurrent_int8 import RecurrentInt8
from tinyml.ops.recurrent.rnn import Recurrent
from tinyml.ops.weighted import int16_counts, int16_helium_counts
from tinyml.ops.weighted.walked import Axis, Windows


def windows(rows: Axis, cols: Axis, in_c: int, out_c: int) -> Windows:
    return Windows(rows, cols, 1, in_c, out_c)


@pytest.mark.parametrize("positions, fours, of_two", [(8, 2, 0), (9, 2, 1), (10, 2, 1), (11, 3, 0)])
def test_last_windows_of_four_by_four(positions: int, fours: int, of_two: int) -> None:
    """A last block of one or two windows has a loop of its own, one of three has not."""
    layer = layer_of(Conv(), (1, 1, positions + 2, 4), (6, 1, 3, 4))
    found = counts("tinyml_conv_wide_s8", layer)
    assert found.get("fours", 0) == fours
    assert found.get("fours of two windows", 0) == of_two
    assert found["pairs"] == fours + of_two  # six filters are a four and a pair
    assert found["words of pairs"] == 3 * (fours + of_two)
    assert found["outputs"] == 6 * positions


def test_vectors_of_risc_v_hold_32_sums_of_a_window_and_16_of_each_of_four() -> None:
    found = counts("tinyml_dense_rvv_s8", layer_of(Dense(), (2, 10), (33, 10)))
    assert found["vectors"] == 2 * 2
    assert found["elements of vectors"] == 2 * 2 * 10
    layer = layer_of(Conv(pads=(0, 1, 0, 1)), (1, 1, 5, 4), (17, 1, 3, 4))
    found = counts("tinyml_conv_rvv_s8", layer)
    assert (found["windows"], found["windows filled"]) == (5, 2)
    assert (found["vectors of blocks"], found["vectors"]) == (2, 1)
    assert found["elements of blocks"] == 2 * 3  # twelve elements, four at a time


def test_sums_in_float16() -> None:
    """Three rows of 70 elements: two at once, and one. 26 filters are sixteen, eight, and two alone.

    Of 70 elements, two blocks of 32 have 8 fours each, and the last one has a four and two elements.
    """
    found = counts("tinyml_dense_f16", layer_of(Dense(), (3, 70), (26, 70)))
    assert (found["runs"], found["fours of runs"]) == (3, 3 * 18)
    assert (found["two windows by 16"], found["a window by 16"]) == (1, 1)
    assert (found["two windows by 8"], found["a window by 8"]) == (1, 1)
    assert (found["few"], found["filters of few"]) == (2 + 1, 2 * (2 + 1))
    for kind, times in (("two windows by 16", 1), ("a window by 8", 1), ("few", 3)):
        blocks, fours = found[f"blocks of {kind}"], found[f"fours of {kind}"]
        assert (blocks, fours, found[f"single elements of {kind}"]) == (3 * times, 17 * times, 2 * times)


def test_windows_of_sums_in_float16() -> None:
    """3x3 over 4x4 with padding: 4 windows inside in one call each, of three rows; 12 at an edge."""
    layer = layer_of(Conv(pads=(1, 1, 1, 1)), (1, 4, 4, 5), (16, 3, 3, 5))
    found = counts("tinyml_conv_f16", layer)
    assert (found["windows"], found["windows in parts"], found["windows cleared"]) == (16, 12, 12)
    assert (found["calls of runs"], found["runs"]) == (16, (3 * 4 - 2) * 4)
    assert found["fours of runs"] == (3 * 4 - 2) * (2 * 4 + 2 * 3)  # 15 elements, or 10 at the edge
    assert found["two windows by 16"] == 8
    dilated = layer_of(Conv(dilations=(2, 2)), (1, 7, 7, 5), (16, 3, 3, 5))
    found = counts("tinyml_conv_f16", dilated)
    assert (found["windows in parts"], found["runs"]) == (9, 9 * 9)  # one by one
    assert "windows cleared" not in found


def test_rows_of_a_depthwise_layer_with_vectors_are_read_once() -> None:
    layer = layer_of(DepthwiseConv(pads=(1, 1, 1, 1)), (1, 5, 6, 40), (1, 3, 3, 40))
    found = counts("tinyml_depthwise_conv_rvv_s8", layer)
    assert (found["rows read"], found["rows filled"]) == (5, 2)
    assert found["vectors"] == 30 * 2
    assert found["taps"] == 30 * 2 * 9
    one_row = layer_of(DepthwiseConv(), (1, 3, 3, 40), (1, 3, 3, 40))
    assert "rows read" not in counts("tinyml_depthwise_conv_rvv_s8", one_row)


def test_two_windows_in_a_word() -> None:
    """Nine positions are three blocks of four windows, of which all are computed."""
    layer = layer_of(Conv(), (1, 3, 3, 8), (5, 1, 1, 8))
    found = counts("tinyml_conv_halves_s8", layer)
    assert found["filters rounded twice"] == 3 * 5
    assert found["words of filters"] == 3 * 5 * 2
    assert found["rounds of filters"] == 3 * 5


def test_halves_of_an_image_in_a_word() -> None:
    """Four rows of outputs, two in the upper half; words join rows that are two apart."""
    layer = layer_of(DepthwiseConv(), (1, 6, 7, 2), (1, 3, 3, 2))
    found = counts("tinyml_depthwise_halves_s8", layer)
    assert (found["lines 3x3_twice"], found["windows 3x3_twice"]) == (2 * 2, 2 * 2 * 5)
    assert found["rows joined"] == 2 * 4
    assert found["twos joined"] == 2 * 4 * 3
    assert "rows with one" not in found


def test_windows_inside_the_input_are_taken_together() -> None:
    """Ten windows of a row, of which two have padding: the others in four calls, up to a block of four."""
    rows, cols = Axis(1, 1, 1, 1, 1, 0), Axis(10, 10, 3, 1, 1, 1)
    found = helium_counts.convolution(windows(rows, cols, 16, 6), "twice")
    assert (found["pieces"], found["windows"], found["takes"]) == (2, 8, 3)
    assert (found["blocks"], found["fours rounded twice"], found["last filters"]) == (3, 6, 3)
    assert found["vectors taken"] == 8 * 3
    assert found["runs"] == 2


def test_channels_that_fill_no_block_are_computed_with_some_before() -> None:
    rows = cols = Axis(6, 4, 3, 1, 1, 0)
    whole = helium_counts.depthwise(windows(rows, cols, 16, 16), "3x3_once", in_place=False)
    more = helium_counts.depthwise(windows(rows, cols, 20, 20), "3x3_once", in_place=False)
    assert (whole["blocks of nine taps"], whole["walks"]) == (16, 4)
    assert (more["blocks of nine taps"], more["walks"]) == (32, 8)


def test_rows_that_windows_do_not_meet_have_no_taps() -> None:
    rows, cols = Axis(4, 4, 3, 1, 1, 1), Axis(1, 1, 1, 1, 1, 0)
    found = int16_helium_counts.depthwise(windows(rows, cols, 12, 12))
    assert (found["narrow eights"], found["fours"]) == (4, 4)
    assert found["taps of narrow eights"] == found["taps of fours"] == 2 + 3 + 3 + 2


def test_weights_of_zero_are_no_products() -> None:
    layer = layer_of(Dense(), (1, 8), (4, 8))
    share = np.count_nonzero(layer.input(1).value) / 32
    assert 0 < share < 1
    assert counts("tinyml_dense_f32_s8", layer)["products"] == pytest.approx(32 * share)


def recurrent_counts(graph: Graph, name: str) -> Work:
    (layer,) = graph.layers()
    kernel = next(kernel for kernel in kernels_of(type(layer.op)) if kernel.name == name)
    found = kernel.loop_counts(layer, find_target("cortex-m4"))
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(6))
def test_gates_of_four_cells_meet_inputs_and_states(seed: int) -> None:
    graph = recurrent_layer(np.random.default_rng(seed), "layer")
    (layer,) = graph.layers()
    assert isinstance(layer.op, RecurrentInt8)
    (steps, batches, inputs), hidden = layer.input(0).shape, layer.input(2).shape[1]
    prefix = "recurrent_lstm" if layer.op.cell == "lstm" else layer.op.cell
    groups = steps * batches * -(-hidden // 4) * GATES[layer.op.cell]
    plain = recurrent_counts(graph, f"tinyml_{prefix}_s8")
    helium = recurrent_counts(graph, f"tinyml_{prefix}_mve_s8")
    assert plain["groups"] == helium["groups"] == groups
    assert plain["blocks of inputs"] == groups * -(-inputs // 4)
    assert helium["blocks of states"] == groups * -(-hidden // 16)


@pytest.mark.parametrize("seed", range(6))
def test_float_gates_have_products_and_functions(seed: int) -> None:
    graph = recurrent_float_layer(np.random.default_rng(seed), "layer")
    (layer,) = graph.layers()
    assert isinstance(layer.op, Recurrent)
    (steps, batches, _), hidden = layer.input(0).shape, layer.input(2).shape[1]
    prefix = "recurrent_lstm" if layer.op.cell == "lstm" else layer.op.cell
    found = recurrent_counts(graph, f"tinyml_{prefix}_f32")
    gates = {"rnn": 1, "gru": 3, "lstm": 5}[layer.op.cell]  # of a cell's state, too
    functions = sum(amount for name, amount in found.items() if name.startswith("activations"))
    assert functions == steps * batches * hidden * gates


def test_runs_of_weights_are_walked_in_every_row() -> None:
    """Two rows; a filter with a run of three weights, and one with runs of two and one."""
    sketch = Sketch(seed=1)
    values = np.zeros((2, 16), np.float32)
    values[0, 3:6], values[1, 1:3], values[1, 12] = 0.5, 0.25, 0.125
    y = sketch.add(Dense(), sketch.input((2, 16)), sketch.build.constant(values, "w"))
    (layer,) = sketch.graph(y).layers()
    found = counts("tinyml_dense_runs_f32", layer)
    assert (found["runs"], found["elements"], found["products"]) == (2 * 3, 2 * 6, 2 * 6)


def test_int16_windows_of_all_images_come_in_threes() -> None:
    """Seven windows are two blocks and one alone; the last of three filters is a pair with zeros."""
    rows, cols = Axis(1, 1, 1, 1, 1, 0), Axis(7, 7, 3, 1, 1, 1)
    found = int16_counts.convolution_with_dsp(windows(rows, cols, 4, 3), whole=True, shifts=False)
    assert (found["blocks"], found["pairs"], found["single filters"]) == (3, 3, 3)
    assert (found["fours of pairs"], found["fours of pairs alone"]) == (2 * 2 * 3, 2 * 3)
    assert found["runs of blocks"] == 1  # the others have padding
    assert (found["windows gathered"], found["edges"]) == (4, 2)
    two = int16_counts.convolution_with_dsp(Windows(rows, cols, 2, 4, 3), whole=True, shifts=False)
    assert two["blocks"] == 5
    assert two["fours of pairs alone"] == 0


def test_one_int16_filter_needs_no_columns() -> None:
    rows = cols = Axis(4, 4, 3, 1, 1, 1)
    found = int16_counts.convolution_with_dsp(windows(rows, cols, 3, 1), whole=True, shifts=False)
    assert (found["single outputs"], found["single edges"]) == (16, 12)
    assert found["single runs"] == 4 * 10  # rows inside the input
    assert "blocks" not in found
