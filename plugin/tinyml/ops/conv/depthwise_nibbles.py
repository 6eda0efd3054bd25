# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions with weights of four bits, which are unpacked channel by channel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Array, Layer
from tinyml.ops.conv import halves_counts, plane_counts
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.planes import (
    DepthwiseDsp,
    DepthwiseHalves,
    DepthwisePlanes,
    moderate_sums,
    plain_taps,
    several_outputs,
    taps_fit,
    unlimited,
    windows_reach_inputs,
)
from tinyml.ops.conv.whole import whole_input
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.quant import quant_of
from tinyml.ops.weighted.nibbles import channel_nibbles, few_elements, int4_weights
from tinyml.ops.weighted.records import quantized_record
from tinyml.ops.weighted.scaled import scaled
from tinyml.ops.weighted.stream import right_shifts
from tinyml.ops.weighted.walked import outputs_of


def several_windows(layer: Layer[Convolution]) -> bool:
    """The kernel does not cover the whole input: kernels for that need no copy of it."""
    return not whole_input(layer)


class _Nibbles(DepthwisePlanes):
    """Mixed in before a kernel for bytes, of which it only changes how weights are stored."""

    weight_bits = 4

    def tables(
        self, layer: Layer[Convolution], sheet: Sheet, filters: Array, across: bool
    ) -> dict[str, object]:
        rows = filters.transpose(0, 1, 3, 2) if across else filters
        centred = rows.astype(np.int16) - quant_of(layer.input(1)).zero_points[0]
        packed = channel_nibbles(centred.reshape(len(centred), -1))
        return quantized_record(layer, sheet, filters, packed)


FOUR_BITS = (int4_weights, few_elements, several_windows)


class DepthwiseNibbles(_Nibbles):
    """Weights of four bits in portable C, with any dilation, multiplier and weight zero point."""

    name = "tinyml_depthwise_nibbles_s8"
    constraints = (*DepthwisePlanes.constraints, *FOUR_BITS)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return plane_counts.in_c(self.planes(layer), self.way(layer), outputs_of(layer), packed=True)


def larger(layer: Layer[Convolution]) -> Layer[Convolution]:
    """With one rounding and, where that is not so, weights for which outputs are less than half the sums."""
    return scaled(replace(layer, op=replace(layer.op, round_once=True)))


def larger_weights_fit(layer: Layer[Convolution]) -> bool:
    """With weights times powers of two, so that outputs are smaller than half their sums, weights are at most
    127, no two neighbouring ones are both -128, and accumulators stay below 2²⁹ for every input."""
    fitting = larger(layer)
    return right_shifts(fitting) and taps_fit(fitting) and moderate_sums(fitting)


class DepthwiseNibblesHalves(_Nibbles, DepthwiseHalves):
    """The same on Arm cores without DSP instructions: elements of two outputs in one word.

    Channels with outputs that are large for their sums are computed with larger weights and one rounding.
    """

    name = "tinyml_depthwise_nibbles_halves_s8"
    constraints = (
        *DepthwisePlanes.constraints,
        *FOUR_BITS,
        plain_taps,
        unlimited,
        several_outputs,
        windows_reach_inputs,
        larger_weights_fit,
    )

    def loops(self, layer: Layer[Convolution]) -> tuple[str, ...]:
        usual = f"{self.ways}{self.way(layer)}"
        return usual, usual if right_shifts(layer) else usual.replace("_twice", "_once")

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return halves_counts.depthwise(self.planes(layer), self.way(layer), packed=True)

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        """The player has one loop for all channels."""
        self.write(layer, sheet, self.name, self.loops(layer)[: 1 if right_shifts(layer) else None])


class DepthwiseNibblesDsp(_Nibbles, DepthwiseDsp):
    """The same with DSP instructions, two taps at a time."""

    name = "tinyml_depthwise_nibbles_dsp_s8"
    constraints = (*DepthwisePlanes.constraints, *FOUR_BITS)

    def function(self, layer: Layer[Convolution]) -> str:
        """Where no channel has large outputs, the code for them is not linked."""
        return "tinyml_depthwise_nibbles_right_dsp_s8" if right_shifts(layer) else self.name

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        """The player has one function for all layers."""
        self.write(layer, sheet, self.name, self.loops(layer))

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return plane_counts.with_dsp(self.planes(layer), self.way(layer), outputs_of(layer), packed=True)
