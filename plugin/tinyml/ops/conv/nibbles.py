# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Integer convolutions with weights of four bits, in portable C, in plain C and with DSP instructions."""

from __future__ import annotations

from typing import ClassVar

from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.streamed import ConvInt8
from tinyml.ops.framework.kernel import Sheet
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


class ConvNibbles(ConvInt8):
    """Four windows times four filters, whose weights of four bits are in one int16."""

    name = "tinyml_conv_nibbles_s8"
    sources = ("conv/conv_nibbles_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (*ConvInt8.constraints, four_bit_weights)
    column_bytes = 4
    weight_bits = 4

    def weight_layout(self, layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
        filters = layer.input(1).value
        words = nibble_stream(layer, folded_bias(layer, filters), layer.op.multipliers(layer))
        name = sheet.table("filters", words.in_fours(self.begin(words.bias)), holds=FOUR_WORDS)
        groups = layer.input(0).shape[3] // filters.shape[3]
        return {".filters": name, ".groups": groups, ".weight_zero": -lowest_weight(layer)}

    def begin(self, bias: Array) -> Array:
        """What sums begin with."""
        return bias


class ConvNibblesDsp(ConvNibbles):
    """The same with DSP instructions: two windows times four filters."""

    name = "tinyml_conv_nibbles_dsp_s8"
    sources = ("conv/conv_nibbles_dsp_s8.c",)
    constraints = (*ConvNibbles.constraints, fields_fit)

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def begin(self, bias: Array) -> Array:
        return begin_sums(bias)


class ConvNibblesHalves(ConvNibbles):
    """Four windows times one filter on Arm cores without DSP instructions, two windows in a word."""

    name = "tinyml_conv_nibbles_halves_s8"
    sources = ("conv/conv_nibbles_halves_s8.c",)
    constraints = (*ConvInt8.constraints, int4_weights, right_shifts, moderate_accumulators)
    column_bytes = 8

    def runs_on(self, target: Target) -> bool:
        return target.arm and not target.dsp

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """Bytes of the windows are spread over the words, a block of sixteen bytes ahead of them."""
        return super().scratch_bytes(layer, target) + 16

    def weight_layout(self, layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
        filters = layer.input(1).value
        words = one_by_one(layer, folded_bias(layer, filters), layer.op.multipliers(layer))
        groups = layer.input(0).shape[3] // filters.shape[3]
        return {".filters": sheet.table("filters", words, holds=FILTER_WORDS), ".groups": groups}
