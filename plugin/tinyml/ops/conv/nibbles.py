# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Integer convolutions with weights of four bits, in portable C, in plain C and with DSP instructions."""

from __future__ import annotations

from typing import ClassVar

from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.conv import halves_counts, stream_counts
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.streamed import ConvInt8
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.nibbles import (
    FILTER_WORDS,
    FOUR_WORDS,
    begin_sums,
    fields_fit,
    four_bit_weights,
    int4_weights,
    lowest_weight,
    moderate_accumulators,
    nibble_stream,
    one_by_one,
)
from tinyml.ops.weighted.records import folded_bias
from tinyml.ops.weighted.stream import right_shifts
from tinyml.ops.weighted.walked import Outputs, Windows, outputs_of, windows_of
from tinyml.ops.weighted.weighted import Weighted


class ConvNibbles(ConvInt8):
    """Four windows times four filters, whose weights of four bits are in one int16."""

    name = "tinyml_conv_nibbles_s8"
    sources = ("conv/conv_nibbles_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (*ConvInt8.constraints, four_bit_weights)
    column_bytes = 4
    weight_bits = 4

    @property
    def holds(self) -> str:
        return FOUR_WORDS

    def stream(self, layer: Layer[Weighted], groups: int) -> Array:
        bias = folded_bias(layer, layer.input(1).value)
        words = nibble_stream(layer, bias, layer.op.multipliers(layer))
        return words.in_fours(self.begin(words.bias))

    def weight_zero(self, layer: Layer[Weighted]) -> int:
        """What is added to weights."""
        return -lowest_weight(layer)

    def begin(self, bias: Array) -> Array:
        """What sums begin with."""
        return bias

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return self.walked(windows_of(layer), outputs_of(layer))

    def walked(self, windows: Windows, made: Outputs) -> Work:
        return stream_counts.one_by_one(windows, 4, stream_counts.by_nibbles(made))


class ConvNibblesDsp(ConvNibbles):
    """The same with DSP instructions: two windows times four filters."""

    name = "tinyml_conv_nibbles_dsp_s8"
    sources = ("conv/conv_nibbles_dsp_s8.c",)
    constraints = (*ConvNibbles.constraints, fields_fit)

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def begin(self, bias: Array) -> Array:
        return begin_sums(bias)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return self.walked(windows_of(layer), outputs_of(layer))

    def walked(self, windows: Windows, made: Outputs) -> Work:
        return stream_counts.two_by_two(windows, stream_counts.by_nibbles_with_dsp(made))


class ConvNibblesHalves(ConvNibbles):
    """Four windows times one filter on Arm cores without DSP instructions, two windows in a word."""

    name = "tinyml_conv_nibbles_halves_s8"
    sources = ("conv/conv_nibbles_halves_s8.c",)
    constraints = (*ConvInt8.constraints, int4_weights, right_shifts, moderate_accumulators)
    column_bytes = 8

    def runs_on(self, target: Target) -> bool:
        return target.arm and not target.dsp

    @property
    def holds(self) -> str:
        return FILTER_WORDS

    def columns_bytes(self, elements: int, channels: int) -> int:
        """Bytes of the windows are spread over the words, a block of sixteen bytes ahead of them."""
        return super().columns_bytes(elements, channels) + 16

    def stream(self, layer: Layer[Weighted], groups: int) -> Array:
        bias = folded_bias(layer, layer.input(1).value)
        return one_by_one(layer, bias, layer.op.multipliers(layer))

    def weight_zero(self, layer: Layer[Weighted]) -> int:
        return 0

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return self.walked(windows_of(layer), outputs_of(layer))

    def walked(self, windows: Windows, made: Outputs) -> Work:
        return stream_counts.one_by_one(windows, halves_counts.WINDOWS, halves_counts.one_by_one(made))
