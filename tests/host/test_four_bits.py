# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights of four bits: which layers take them, and how they are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from tests.support.weighted_layers import Layers, Weighted
from tinyml.cores.targets import find_target
from tinyml.emit.model import Provenance
from tinyml.ir import Array, Layer
from tinyml.memory.placement import LIBRARIES
from tinyml.memory.select import select
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.phases import phases
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.ops.weighted import nibbles
from tinyml.ops.weighted.weighted import Weighted as WeightedOp
from tinyml.pipeline import Options, compile_graph
from tinyml.settings.optimize import GOALS
from tinyml.slots.data import data_image
from tinyml.slots.version import Version
from tools import four_bits_page

DENSE = Weighted(Dense(), (1, 128), (128, 128), lowest=-8, largest=7)
CONV = Weighted(Conv(), (1, 5, 5, 64), (128, 1, 1, 64), lowest=-8, largest=7)


def layer_of(case: Weighted) -> Layer[WeightedOp]:
    sketch = Layers()
    sketch.weighted("layer", case, once=False)
    (layer,) = sketch.graph().layers()
    return cast("Layer[WeightedOp]", layer)


def chosen(case: Weighted, target: str, goal: str = "balanced") -> str:
    sketch = Layers()
    sketch.weighted("layer", case, once=False)
    (one,) = select(sketch.graph(), find_target(target), LIBRARIES["portable"], goal=GOALS[goal])
    return one.kernel.name


def chosen_of(cases: dict[str, Weighted], target: str) -> dict[str, str]:
    sketch = Layers()
    for name, case in cases.items():
        sketch.weighted(name, case, once=False)
    found = select(sketch.graph(), find_target(target), LIBRARIES["portable"])
    return {one.layer.name: one.kernel.name for one in found}


@pytest.mark.parametrize(
    "case, target, kernel",
    [
        (DENSE, "cortex-m4", "tinyml_dense_nibbles_dsp_s8"),
        (DENSE, "cortex-m3", "tinyml_dense_nibbles_s8"),
        (replace(DENSE, lowest=-7), "cortex-m55", "tinyml_dense_nibbles_mve_s8"),
        (CONV, "cortex-m4", "tinyml_conv_nibbles_dsp_s8"),
        (CONV, "cortex-m0", "tinyml_conv_nibbles_halves_s8"),
        (replace(CONV, lowest=-7), "cortex-m55", "tinyml_conv_nibbles_mve_s8"),
    ],
)
def test_large_layers_take_four_bits(case: Weighted, target: str, kernel: str) -> None:
    assert chosen(case, target) == kernel


def test_slow_kernels_are_for_size() -> None:
    """Without DSP instructions, weights that are not those of int4 have plain C only."""
    negative = replace(CONV, lowest=-15, largest=0)
    assert chosen(negative, "cortex-m3") == "tinyml_conv_halves_s8"
    assert chosen(negative, "cortex-m3", "size") == "tinyml_conv_nibbles_s8"


TRANSPOSED = Weighted(
    ConvTranspose((2, 2), pads=(1, 1), outputs=(12, 12)), (1, 6, 6, 32), (32, 4, 4, 32), lowest=-8, largest=7
)


@pytest.mark.parametrize(
    "target, kernel",
    [
        ("cortex-m0", "tinyml_conv_apart_nibbles_halves_s8"),
        ("cortex-m4", "tinyml_conv_apart_nibbles_dsp_s8"),
        ("riscv32", "tinyml_conv_apart_nibbles_s8"),
    ],
)
def test_transposed_convolutions_take_four_bits(target: str, kernel: str) -> None:
    assert chosen(TRANSPOSED, target) == kernel


def test_transposed_convolutions_keep_bytes_where_helium_is_much_faster() -> None:
    assert chosen(TRANSPOSED, "cortex-m55") == "tinyml_conv_apart_mve_s8"


def test_parts_that_repeat_more_than_they_save_keep_bytes() -> None:
    """Sixteen parts of one tap: each filter has four bytes of weights and nine of factors, sixteen times."""
    op = ConvTranspose((4, 4), outputs=(24, 24))
    small = replace(TRANSPOSED, op=op, x=(1, 6, 6, 8), weights=(64, 4, 4, 8))
    assert chosen(small, "cortex-m4") == "tinyml_conv_apart_pairs_s8"


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("dilation", [1, 2, 3, 6])
@pytest.mark.parametrize("pad", [0, 1, 5])
def test_phases_meet_every_tap_once(stride: int, dilation: int, pad: int) -> None:
    taps, inputs, outputs = 5, 4, 23
    wanted = {
        (i * stride + k * dilation - pad, i, k)
        for i in range(inputs)
        for k in range(taps)
        if 0 <= i * stride + k * dilation - pad < outputs
    }
    met = [
        (phase.first + number * stride, number - phase.pad + index * phase.dilation, tap)
        for phase in phases(stride, pad, taps, outputs, dilation)
        for number in range(phase.outputs)
        for index, tap in enumerate(phase.taps)
    ]
    assert sorted(one for one in met if 0 <= one[1] < inputs) == sorted(wanted)


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("goal", GOALS)
def test_seventeen_values_are_bytes(target: str, goal: str) -> None:
    assert "nibbles" not in chosen(replace(DENSE, largest=8), target, goal)


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55"])
def test_small_layers_keep_bytes(target: str) -> None:
    """A kernel takes more code than they save."""
    small = Weighted(Dense(), (1, 10), (6, 10), lowest=-7, largest=7)
    assert "nibbles" not in chosen(small, target)


DEPTHWISE = Weighted(
    DepthwiseConv(pads=(1, 1, 1, 1)), (1, 4, 4, 2400), (1, 3, 3, 2400), lowest=-7, largest=7, bias=False
)
LARGE_OUTPUTS = 0.0001
"""About the scale of the sums, so that some channels have no shift to the right."""


@pytest.mark.parametrize(
    "case, target, kernel",
    [
        (DEPTHWISE, "cortex-m0", "tinyml_depthwise_nibbles_halves_s8"),
        (DEPTHWISE, "cortex-m3", "tinyml_depthwise_nibbles_halves_s8"),
        (DEPTHWISE, "cortex-m4", "tinyml_depthwise_nibbles_dsp_s8"),
        (DEPTHWISE, "cortex-m55", "tinyml_depthwise_nibbles_mve_s8"),
        (DEPTHWISE, "riscv32-zve32x", "tinyml_depthwise_conv_rvv_s8"),  # in bytes
        (replace(DENSE, lowest=-7, bias=False), "cortex-m55", "tinyml_dense_nibbles_mve_s8"),
    ],
)
def test_large_outputs_keep_fast_kernels(case: Weighted, target: str, kernel: str) -> None:
    assert chosen(replace(case, scale=LARGE_OUTPUTS), target) == kernel


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4"])
@pytest.mark.parametrize("scale", [0.1, LARGE_OUTPUTS])
@pytest.mark.parametrize("bytes_too", [False, True])
def test_small_layers_take_four_bits_of_large_ones(target: str, scale: float, bytes_too: bool) -> None:
    """Beside a layer that links the kernel anyway: no other one is linked for them.

    If a kernel for bytes is linked too, they take that, unless their outputs leave plain C only.
    """
    small = replace(DEPTHWISE, weights=(1, 3, 3, 8), x=(1, 9, 9, 8), scale=scale)
    cases = {"large": DEPTHWISE, "small": small}
    if bytes_too:
        cases["bytes"] = replace(DEPTHWISE, lowest=-100, largest=100)
    kernels = chosen_of(cases, target)
    assert "nibbles" in kernels["large"]
    assert "nibbles" not in kernels.get("bytes", "")
    assert ("nibbles" in kernels["small"]) is (scale == LARGE_OUTPUTS or not bytes_too)


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m7"])
def test_a_few_outputs_take_short_code(target: str) -> None:
    """A dense layer at the end of a network that has few weights: plain C for four bits is the least."""
    last = Weighted(Dense(), (1, 64), (12, 64), lowest=-7, largest=7)
    cases = {"conv": replace(CONV, x=(1, 25, 25, 64)), "last": last}
    assert chosen_of(cases, target)["last"] == "tinyml_dense_nibbles_s8"
    large = replace(DENSE, weights=(1024, 128))
    assert chosen_of({**cases, "large": large}, target)["large"] == "tinyml_dense_nibbles_dsp_s8"


@pytest.mark.parametrize("case, target, packed", [(DENSE, "cortex-m4", False), (CONV, "cortex-m3", True)])
def test_speed_takes_four_bits_where_they_are_not_slower(case: Weighted, target: str, packed: bool) -> None:
    assert ("nibbles" in chosen(case, target, "speed")) is packed


def test_speed_keeps_bytes_where_costs_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinyml.memory.four_bits.instructions", lambda *_: None)
    assert "nibbles" not in chosen(CONV, "cortex-m3", "speed")


def test_models_as_data_have_four_bits() -> None:
    sketch = Layers()
    sketch.weighted("layer", DENSE, once=False)
    options = Options(target="cortex-m4", kernels="portable")
    compiled = compile_graph(sketch.graph(), "layer", Provenance("layer", "0" * 64, ""), options)
    (kernel,) = data_image(compiled, Version(1)).kernels
    assert kernel.name == "tinyml_dense_nibbles_dsp_s8"


def test_a_zero_point_is_no_obstacle() -> None:
    shifted = replace(DENSE, zero=100, lowest=92, largest=107)
    assert nibbles.lowest_weight(layer_of(shifted)) == -8
    assert chosen(shifted, "cortex-m4") == "tinyml_dense_nibbles_dsp_s8"


def fields(words: Array) -> Array:
    """The weights in int16, by filter: (4, elements)."""
    wide = words.astype(np.int64)
    lower = [wide >> 4 * i & 15 for i in range(3)]
    return np.array([*lower, (wide >> 12) + 8])


def test_four_filters_in_an_int16() -> None:
    rows = np.random.default_rng(1).integers(-8, 8, (4, 11)).astype(np.int16)
    packed = nibbles.nibbles(rows, -8)
    assert packed.shape == (1, 12)
    assert packed[0, 11] == 0
    assert np.array_equal(fields(packed[0, :11]) - 8, rows)


@pytest.mark.parametrize("which, limit", [(1, 27), (2, 23), (3, 19)])
@pytest.mark.parametrize("beyond", [0, 1])
def test_sums_of_fields_have_limits(which: int, limit: int, beyond: int) -> None:
    layer = layer_of(replace(DENSE, weights=(8, 128)))
    _, high = nibbles.accumulator_limits(layer)
    bias = layer.input(2).value.astype(np.int64)
    bias[4 + which] += (1 << limit) - 1 + beyond - high[4 + which]
    tensors = (layer.inputs[0], layer.inputs[1], replace(layer.input(2), data=bias.astype(np.int32)))
    assert nibbles.fields_fit(replace(layer, inputs=tensors)) is (beyond == 0)


def test_two_filters_in_a_byte() -> None:
    weights = np.array([[-1, 7], [-7, 7]], np.int8)
    assert nibbles.pairs_of_bytes(weights).tolist() == [[-113, 119]]
    assert nibbles.pairs_of_bytes(np.array([[-1], [-8]], np.int8)).min() < -128


@pytest.mark.parametrize("taps", [1, 2, 7, 8, 9, 25, 49])
def test_depthwise_channels_have_bytes_of_their_own(taps: int) -> None:
    rows = np.random.default_rng(taps).integers(-8, 8, (3, taps)).astype(np.int16)
    packed = nibbles.channel_nibbles(rows).view(np.uint8).reshape(3, -1)
    assert packed.shape[1] == (taps + 1) // 2
    for row, stored in zip(rows, packed, strict=True):
        found: list[int] = []
        whole = taps // 8 * 4
        for start in range(0, whole, 4):
            four = stored[start : start + 4]
            found += [*(four & 15), *(four >> 4)]
        for byte in stored[whole:]:
            found += [byte & 15, byte >> 4]
        signed = [int(value) - 16 * (value >= 8) for value in found[:taps]]
        assert signed == row.tolist()


def test_kernels_of_the_whole_input_keep_bytes() -> None:
    whole = Weighted(DepthwiseConv(), (1, 21, 1, 600), (1, 21, 1, 600), lowest=-7, largest=7)
    assert "nibbles" not in chosen(whole, "cortex-m4")


def test_the_page_is_current() -> None:
    assert four_bits_page.PAGE.read_text(encoding="utf-8") == four_bits_page.page()
