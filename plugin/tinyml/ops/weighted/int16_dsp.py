# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers with int16 activations and int8 weights on cores with DSP instructions: sums of 32 bits."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.joined_groups import Joining, groups_of, joined, together
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.overlay import forwards
from tinyml.ops.shared.quant import clamp_range
from tinyml.ops.weighted import int16_counts, int16_helium_counts
from tinyml.ops.weighted.int16 import (
    ConvInt16,
    DenseInt16,
    DepthwiseConvInt16,
    int16_by_int8,
    wide_bias,
)
from tinyml.ops.weighted.records import constant_weights, geometry, matrix, rounding, small_extents
from tinyml.ops.weighted.walked import Windows, windows_of
from tinyml.ops.weighted.weighted import Weighted, channel_multipliers, largest_sums

WINDOWS = 4
"""With Helium; with DSP instructions there are three."""
PAIR_BYTES = "for every 2 filters: two elements of each in a word, in turn; the first one's plus 128"
SINGLE_BYTES = "elements in two bytes"
VECTOR_BYTES = "for every 2 filters: eight elements of each in turn"
FOUR_VECTORS = "for every 4 filters: eight elements of each in turn"
FOUR_BYTES = "for every 4 filters: two elements of each in two words, in turn"


def short_sums(layer: Layer[Weighted]) -> bool:
    """Accumulators, with the bias, stay below 2³¹ for every input."""
    sums = largest_sums(layer.op, layer.input(0), layer.input(1))
    bias = np.abs(layer.input(2).value.reshape(-1).astype(np.float64)) if layer.has_input(2) else 0.0
    return bool(np.max(sums + bias, initial=0) < 2**31)


def small_shifts(layer: Layer[Weighted]) -> bool:
    """In every channel, the output scale is 4 to 2³² times the accumulator scale."""
    shift = layer.op.multipliers(layer)[1]
    return bool(np.max(shift) <= -2 and np.min(shift) >= -32)


def _dsp_instructions(taps: int, channels: int, filters: int) -> float:
    """At four windows: the columns, and filters by two. Odd channels are copied twice."""
    elements = -(-taps * channels // 4) * 4
    tap = 18 + 2 * channels + 1.6 * elements / taps if channels % 2 else 22 + 0.9 * channels
    return 100 + 4 * (50 + taps * tap) + -(-filters // 2) * (70 + 6.5 * elements)


def _helium_instructions(taps: int, channels: int, filters: int) -> float:
    """The same; whole vectors of a pixel are not copied."""
    vectors = -(-taps * channels // 8)
    columns = 20 if taps == 1 and channels % 8 == 0 else 50 + taps * 22 + vectors
    return 80 + 4 * columns + -(-filters // 2) * (45 + 14 * vectors)


def _size(taps: int, channels: int) -> int:
    return taps * channels


DSP = Joining(_size, _dsp_instructions, 2)
HELIUM = Joining(_size, _helium_instructions, 2)


def one_filter_for_each_channel(layer: Layer) -> bool:
    """Input and output have the same number of channels."""
    return bool(layer.input(0).shape[-1] == layer.output.shape[-1])


def positive(layer: Layer[Weighted]) -> bool:
    """Whether outputs are limited to what is not negative, for which there is an instruction."""
    return clamp_range(layer.op.clamp, layer.output) == (0, 2**15 - 1)


def factors(layer: Layer[Weighted]) -> tuple[Array, Array]:
    """What sums are multiplied by, in units of 2⁻³², and the shifts to the right after that.

    Two roundings are TensorFlow Lite's: it takes sixteen bits of the multiplier.
    """
    multiplier, shift = (values.astype(np.int64) for values in channel_multipliers(layer))
    if not layer.op.round_once:
        halves = np.where(multiplier < 0x7FFF0000, (multiplier + (1 << 15)) >> 16, 0x7FFF)
        multiplier = halves << 16
    return multiplier.astype(np.int32), (-1 - shift).astype(np.uint8)


def whole_factors(layer: Layer[Weighted], bits: int) -> Array | None:
    """What sums are multiplied by, in units of 2⁻ᵇⁱᵗˢ, if no factor needs a shift to be exact.

    The factors of TensorFlow Lite have sixteen bits that are zero.
    """
    factor, shift = factors(layer)
    steps = shift.astype(np.int64) + 32 - bits
    return (factor >> steps).astype(np.int32) if np.all(factor % (1 << steps) == 0) else None


def scaling(layer: Layer[Weighted], sheet: Sheet, bits: int | None = None) -> dict[str, object]:
    """Members from sums to outputs, which all records have.

    ``bits``: the kernel takes factors without shifts, in units of 2⁻ᵇⁱᵗˢ.
    """
    channels = layer.output.shape[-1]
    bias = layer.input(2).value.reshape(-1) if layer.has_input(2) else np.zeros(channels)
    factor, shift = factors(layer)
    whole = whole_factors(layer, bits) if bits is not None else None
    limits = {name: value for name, value in rounding(layer).items() if name != ".round_once"}
    return {
        ".bias": sheet.table("bias", bias.astype(np.int32)),
        ".factor": sheet.table("factor", factor if whole is None else whole),
        ".shift": sheet.table("shift", shift) if whole is None else "NULL",
        **limits,
    }


def _in_turn(rows: Array, together: int, elements: int) -> Array:
    """Filters (groups, filters, elements) by ``together``: two elements of each in turn, filters in pairs."""
    groups, count, size = rows.shape
    wide = np.pad(rows, ((0, 0), (0, -count % together), (0, -size % elements)))
    blocks = wide.reshape(
        groups, -1, together // 2, 2, wide.shape[2] // 2, 2
    )  # block, pair, which, two, element
    return np.ascontiguousarray(blocks.transpose(0, 1, 4, 2, 5, 3)).reshape(-1)


def _of_one_filter(rows: Array, sheet: Sheet, name: str) -> str:
    """Nothing is paired with it, so its weights need not be narrow."""
    words = rows.reshape(-1).astype("<i2").view(np.int8)
    return sheet.table(name, words, holds=SINGLE_BYTES, alignment=4)


CONSTRAINTS: tuple[Constraint, ...] = (int16_by_int8, wide_bias, constant_weights, short_sums, small_shifts)


class ConvInt16Dsp(Kernel[Convolution]):
    """Four windows times two filters at once."""

    name = "tinyml_conv_dsp_s16"
    library = Library.PORTABLE
    sources: ClassVar[tuple[str, ...]] = ("conv/conv_dsp_s16.c", "conv/conv_single_dsp_s16.c")
    constraints: ClassVar[tuple[Constraint, ...]] = (*CONSTRAINTS, small_extents)
    in_bands = True
    whole: ClassVar[int] = 4  # elements that filters are filled up to
    factor_bits: ClassVar[int] = 32  # of factors that need no shift
    single: ClassVar[str | None] = "tinyml_conv_single_dsp_s16"  # called if there is one filter
    joining: ClassVar[Joining] = DSP

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        """Windows are copied before outputs are written. Each of several groups walks all windows."""
        one = layer.input(0).shape[3] == layer.input(1).shape[3]
        return forwards(layer, copied=False) if one else ()

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """Windows in whole words or vectors."""
        _, height, width, channels = layer.input(1).shape
        row = width * channels * together(layer, self.joining)
        return self.window_bytes(height * (row + self.whole_rows(layer)))

    def whole_rows(self, layer: Layer[Convolution]) -> bool:
        """Whether rows of taps are filled up to words: more products, but rows are copied as they are."""
        outs, height, width, channels = layer.input(1).shape
        row = width * channels
        if height == 1 or outs == 1 or row % 2 == 0 or layer.op.dilations[1] != 1 or groups_of(layer) > 1:
            return False
        more = -(-height * (row + 1) // 4) - -(-height * row // 4)
        return more * 6 * -(-outs // 2) < 40 + height * (12 + row)

    def window_bytes(self, elements: int) -> int:
        """The scratch memory for filters of so many elements: three columns, with a word before each, and a
        window."""
        return 12 + 2 * 4 * (-(-elements // self.whole) * self.whole)

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        weights, groups = joined(layer, self.joining)
        whole = self.whole_rows(layer)
        outs, height, *_ = weights.shape
        filled = np.pad(weights.reshape(outs, height, -1), ((0, 0), (0, 0), (0, int(whole))))
        rows = filled.reshape(groups, outs // groups, -1)
        sheet.include("<tinyml/conv_s16.h>")
        members = {
            **geometry(layer),
            ".groups": groups,
            **({".whole_rows": "true"} if whole else {}),
            ".weights": self.weights(rows, sheet),
            **scaling(layer, sheet, self.factor_bits),
        }
        name = sheet.record("struct tinyml_conv_dsp_s16", "params", members)
        if self.single and outs == 1:
            sheet.call(self.single, name, sheet.x(), sheet.y())
        else:
            sheet.call(self.name, name, sheet.x(), sheet.y(), sheet.scratch)

    def weights(self, rows: Array, sheet: Sheet, name: str = "weights") -> str:
        """The table of filters (groups, filters, elements)."""
        if rows.shape[:2] == (1, 1):
            return _of_one_filter(rows, sheet, name)
        words = _in_turn(rows, 2, self.whole)
        words[::2] ^= np.int8(-128)
        return sheet.table(name, words, holds=PAIR_BYTES, alignment=4)

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        ConvInt16().emit(layer, sheet)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        shifts = whole_factors(layer, self.factor_bits) is None
        left = groups_of(layer) // together(layer, self.joining)
        return self.walked(windows_of(layer, left), positive(layer), shifts, self.whole_rows(layer))

    def walked(self, windows: Windows, whole: bool, shifts: bool, whole_rows: bool = False) -> Work:
        """How often the loops run for these windows. ``whole``: no output is negative."""
        return int16_counts.convolution_with_dsp(windows, whole, shifts, whole_rows)


class ConvInt16Helium(ConvInt16Dsp):
    """The same with Helium, eight elements of each."""

    name = "tinyml_conv_mve_s16"
    sources = ("conv/conv_mve_s16.c",)
    single = None
    whole = 8
    factor_bits = 31
    joining = HELIUM

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        """Windows are not copied where they are whole vectors of the input."""
        one = layer.input(0).shape[3] == layer.input(1).shape[3]
        return forwards(layer, copied=False, together=WINDOWS) if one else ()

    def whole_rows(self, layer: Layer[Convolution]) -> bool:
        return False

    def window_bytes(self, elements: int) -> int:
        return 2 * WINDOWS * (-(-elements // self.whole) * self.whole)

    def weights(self, rows: Array, sheet: Sheet, name: str = "weights") -> str:
        groups, count, size = rows.shape
        filled = np.pad(rows, ((0, 0), (0, count % 2), (0, -size % self.whole)))
        pairs = filled.reshape(groups, -1, 2, filled.shape[2] // self.whole, self.whole)
        return sheet.table(name, pairs.transpose(0, 1, 3, 2, 4).reshape(-1), holds=VECTOR_BYTES)

    loop_counts = ConvInt16Dsp.loop_counts

    def walked(self, windows: Windows, whole: bool, shifts: bool, whole_rows: bool = False) -> Work:
        return int16_helium_counts.convolution(windows, shifts)


class DepthwiseConvInt16Dsp(Kernel[Convolution]):
    """Four channels of two positions at once."""

    name = "tinyml_depthwise_dsp_s16"
    library = Library.PORTABLE
    sources = ("conv/depthwise_dsp_s16.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *CONSTRAINTS,
        small_extents,
        one_filter_for_each_channel,
    )
    in_bands = True

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        return forwards(layer, copied=False, together=2)

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """For the player, whose kernel copies a window."""
        return DepthwiseConvInt16().scratch_bytes(layer, target)

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        weights = layer.input(1).value[0]
        packed = np.pad(weights, ((0, 0), (0, 0), (0, -weights.shape[2] % 4)))
        sheet.include("<tinyml/conv_s16.h>")
        members = {
            **geometry(layer),
            ".groups": 1,
            ".weights": sheet.table("weights", packed, alignment=4),
            **scaling(layer, sheet),
        }
        name = sheet.record("struct tinyml_conv_dsp_s16", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y())

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        DepthwiseConvInt16().emit(layer, sheet)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return int16_counts.depthwise_with_dsp(windows_of(layer))


class DepthwiseConvInt16Helium(DepthwiseConvInt16Dsp):
    """Four channels at once with Helium."""

    name = "tinyml_depthwise_mve_s16"
    sources = ("conv/depthwise_mve_s16.c",)

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return int16_helium_counts.depthwise(windows_of(layer))


class DenseInt16Dsp(Kernel[Weighted]):
    """Four filters at once."""

    name = "tinyml_dense_dsp_s16"
    library = Library.PORTABLE
    sources = ("dense/dense_dsp_s16.c",)
    constraints = CONSTRAINTS

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        sheet.include("<tinyml/conv_s16.h>")
        members = {
            **matrix(layer),
            ".weights": self.weights(layer.input(1).value, sheet),
            **scaling(layer, sheet),
        }
        name = sheet.record("struct tinyml_dense_dsp_s16", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y())

    def weights(self, rows: Array, sheet: Sheet) -> str:
        """The table of filters (outputs, inputs)."""
        return sheet.table("weights", _in_turn(rows[None], 4, 2), holds=FOUR_BYTES, alignment=4)

    def play(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        DenseInt16().emit(layer, sheet)

    def loop_counts(self, layer: Layer[Weighted], target: Target) -> Work | None:
        return int16_counts.dense_with_dsp(layer)


class DenseInt16Helium(DenseInt16Dsp):
    """The same with Helium, eight elements of each."""

    name = "tinyml_dense_mve_s16"
    sources = ("dense/dense_fours_mve_s16.c",)

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def weights(self, rows: Array, sheet: Sheet) -> str:
        outputs, inputs = rows.shape
        filled = np.pad(rows, ((0, -outputs % 4), (0, -inputs % 8)))
        blocks = filled.reshape(-1, 4, filled.shape[1] // 8, 8).transpose(0, 2, 1, 3)
        return sheet.table("weights", blocks.reshape(-1), holds=FOUR_VECTORS)
