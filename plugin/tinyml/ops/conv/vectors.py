# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Integer convolutions with Helium, and with vectors of RISC-V."""

from __future__ import annotations

from typing import ClassVar

from tinyml.cores.targets import Target
from tinyml.ir import Constraint, Layer
from tinyml.ops.conv import helium_counts
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.streamed import ConvInt8
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted import helium, rvv, rvv_counts
from tinyml.ops.weighted.nibbles import (
    PAIR_BYTES,
    elements_in_pairs,
    int4_weights,
    pairs_fit_bytes,
    vectors_in_pairs,
)
from tinyml.ops.weighted.records import (
    channel_tables,
    constant_weights,
    int8_tensors,
    small_extents,
    symmetric_weights,
)
from tinyml.ops.weighted.walked import outputs_of, windows_of
from tinyml.ops.weighted.weighted import Weighted


class ConvHelium(ConvInt8):
    """Four windows times two filters at once, sixteen elements of each."""

    name = "tinyml_conv_mve_s8"
    struct = "struct tinyml_conv_mve_s8"
    apart = "struct tinyml_conv_apart_mve_s8"
    sources = ("conv/conv_mve_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        symmetric_weights,
        helium.one_group,
        helium.proper_shifts,
        small_extents,
    )

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def columns_bytes(self, elements: int, channels: int) -> int:
        """Four columns in whole vectors."""
        return 4 * helium.whole_vectors(elements)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return helium_counts.convolution(windows_of(layer), helium.conv_loop(layer))

    def functions(self, layer: Layer[Convolution]) -> tuple[str, ...]:
        return self.name, f"tinyml_conv_mve_{helium.conv_loop(layer)}"

    def weight_layout(self, layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
        return self._tables(layer, sheet, "")

    def part_layout(self, layer: Layer[Weighted], sheet: Sheet, number: int) -> dict[str, object]:
        return self._tables(layer, sheet, str(number))

    def _tables(self, layer: Layer[Weighted], sheet: Sheet, number: str) -> dict[str, object]:
        filters = layer.input(1).value
        channels = helium.channel_words(layer, filters)
        return {
            ".weights": sheet.table(f"weights{number}", helium.in_pairs(filters), holds=helium.PAIR_WORDS),
            ".channels": sheet.table(f"channels{number}", channels, holds=helium.CHANNEL_WORDS),
            ".loop": f"&tinyml_conv_mve_{helium.conv_loop(layer)}",
        }


class ConvNibblesHelium(ConvHelium):
    """The same with weights of four bits: two filters in one byte."""

    name = "tinyml_conv_nibbles_mve_s8"
    constraints = (
        int8_tensors,
        constant_weights,
        int4_weights,
        pairs_fit_bytes,
        helium.one_group,
        helium.proper_shifts,
        small_extents,
    )
    weight_bits = 4

    def functions(self, layer: Layer[Convolution]) -> tuple[str, ...]:
        return self.name, f"tinyml_conv_mve_nibbles_{helium.conv_loop(layer)}"

    def weight_layout(self, layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
        channels = helium.channel_words(layer, layer.input(1).value)
        return {
            ".weights": sheet.table("weights", vectors_in_pairs(layer, helium.LANES), holds=PAIR_BYTES),
            ".channels": sheet.table("channels", channels, holds=helium.CHANNEL_WORDS),
            ".loop": f"&tinyml_conv_mve_nibbles_{helium.conv_loop(layer)}",
        }

    loop_counts = ConvHelium.loop_counts


class ConvVector(ConvInt8):
    """One element of each of four windows times as many filters as a vector of RISC-V holds."""

    name = "tinyml_conv_rvv_s8"
    struct = "struct tinyml_conv_rvv_s8"
    sources = ("conv/conv_rvv_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        symmetric_weights,
        helium.one_group,
        rvv.several_channels,
        helium.right_shifts,
        small_extents,
    )

    def runs_on(self, target: Target) -> bool:
        return target.rvv

    def columns_bytes(self, elements: int, channels: int) -> int:
        """Four columns."""
        return 4 * elements

    def weight_layout(self, layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
        filters = layer.input(1).value
        return channel_tables(layer, sheet, filters, rvv.channels_last(filters))

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return rvv_counts.convolution(windows_of(layer), outputs_of(layer), packed=self.weight_bits == 4)


class ConvNibblesVector(ConvVector):
    """The same with weights of four bits: two elements in one byte."""

    name = "tinyml_conv_nibbles_rvv_s8"
    constraints = (
        int8_tensors,
        constant_weights,
        int4_weights,
        helium.one_group,
        rvv.several_channels,
        helium.right_shifts,
        small_extents,
    )
    weight_bits = 4

    def weight_layout(self, layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
        return channel_tables(layer, sheet, layer.input(1).value, elements_in_pairs(layer))

    loop_counts = ConvVector.loop_counts
