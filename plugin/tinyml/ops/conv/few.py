# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions with few filters, or with groups of few channels, whose windows are not made columns."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.conv import few_counts
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.few_lines import Lines, lines_of, one_row, walked
from tinyml.ops.conv.grouped import first_of, played, several_groups
from tinyml.ops.conv.joined_groups import groups_of
from tinyml.ops.conv.short import few_filters, plain_rows
from tinyml.ops.conv.streamed import ConvHalves, ConvInt8, ConvWide
from tinyml.ops.conv.vectors import ConvHelium
from tinyml.ops.framework.kernel import Kernel, Library, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted import helium
from tinyml.ops.weighted.int16 import ConvInt16
from tinyml.ops.weighted.int16_dsp import CONSTRAINTS as INT16
from tinyml.ops.weighted.int16_dsp import factors
from tinyml.ops.weighted.records import (
    SMALL,
    constant_weights,
    folded_bias,
    geometry,
    in_zero,
    int8_tensors,
    output_limits,
    quantized_record,
    rounding,
    small_extents,
    symmetric_weights,
)
from tinyml.ops.weighted.walked import outputs_of, windows_of
from tinyml.ops.weighted.weighted import channel_multipliers

STREAM = "for every filter: vectors of weights, then the bias, the multiplier and the shift"


def small_planes(layer: Layer[Convolution]) -> bool:
    """All windows together span fewer than 32,768 rows and columns."""
    windows = windows_of(layer)
    return max(windows.rows.reach, windows.cols.reach) < SMALL


class ConvFew(Kernel[Convolution]):
    """Four windows times a filter, where they are in the input."""

    name = "tinyml_conv_few_s8"
    library = Library.PORTABLE
    sources: ClassVar[tuple[str, ...]] = ("conv/conv_few_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        few_filters,
        int8_tensors,
        constant_weights,
        symmetric_weights,
        helium.one_group,
        small_extents,
        plain_rows,
    )
    in_bands = True

    def runs_on(self, target: Target) -> bool:
        return not target.dsp

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """Four windows; for the player, those of its kernel."""
        own = 4 * int(layer.input(1).value[0].size)
        return max(own, self.played(layer, target).scratch_bytes(layer, target))

    def played(self, layer: Layer[Convolution], target: Target) -> Kernel[Convolution]:
        """What the player has instead."""
        return first_of((ConvHalves(), ConvWide(), ConvInt8()), layer, target)

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        sheet.include("<tinyml/conv.h>")
        filters = layer.input(1).value
        members = quantized_record(layer, sheet, filters, filters)
        name = sheet.record("struct tinyml_conv_few_s8", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y(), sheet.scratch)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return few_counts.in_place(windows_of(layer), outputs_of(layer))

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        self.played(layer, sheet.target).play(layer, sheet)


class ConvFewGroups(ConvFew):
    """Groups of few channels: each is copied with its padding, and computed as if it were the input."""

    name = "tinyml_conv_few_groups_s8"
    sources = ("conv/conv_few_groups_s8.c",)
    constraints = (
        few_filters,
        int8_tensors,
        constant_weights,
        symmetric_weights,
        small_extents,
        plain_rows,
        several_groups,
        small_planes,
    )

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """Also the copy of a group."""
        windows, each = windows_of(layer), layer.input(1).shape[3]
        own = 4 * int(layer.input(1).value[0].size)
        own += windows.rows.reach * windows.cols.reach * each
        return max(own, self.played(layer, target).scratch_bytes(layer, target))

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        sheet.include("<tinyml/conv.h>")
        windows, groups, filters = windows_of(layer), groups_of(layer), layer.input(1).value
        each = {
            **quantized_record(layer, sheet, filters, filters),
            ".window.batches": 1,
            ".window.in_h": windows.rows.reach,
            ".window.in_w": windows.cols.reach,
            ".window.in_c": filters.shape[3],
            ".window.out_c": filters.shape[0] // groups,
            ".window.pad_top": 0,
            ".window.pad_left": 0,
        }
        members = {
            **{f".each{name}": value for name, value in each.items()},
            ".groups": groups,
            ".batches": windows.batches,
            ".in_h": windows.rows.size,
            ".in_w": windows.cols.size,
            ".pad_top": windows.rows.pad,
            ".pad_left": windows.cols.pad,
            ".rows": windows.rows.copied,
            ".columns": windows.cols.copied,
        }
        name = sheet.record("struct tinyml_conv_few_groups_s8", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y(), sheet.scratch)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return few_counts.in_groups(windows_of(layer, groups_of(layer)), outputs_of(layer))


class ConvFewHelium(Kernel[Convolution]):
    """Four windows times a filter; elements of windows are loaded from wherever they are."""

    name = "tinyml_conv_few_mve_s8"
    library = Library.PORTABLE
    sources: ClassVar[tuple[str, ...]] = ("conv/conv_few_mve_s8.c",)
    in_bands = True
    lanes: ClassVar[int] = 16
    gathers = lanes
    most: ClassVar[int] = 255  # offsets are bytes
    size: ClassVar[int] = 1  # bytes of an element
    header: ClassVar[str] = "<tinyml/conv.h>"

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def lines(self, layer: Layer[Convolution]) -> Lines:
        found = lines_of(layer, self.most, self.lanes)
        assert found is not None
        return found

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """The lines; for the player, what its kernel needs."""
        return max(
            self.size * self.lines(layer).total, self.played(layer, target).scratch_bytes(layer, target)
        )

    def played(self, layer: Layer[Convolution], target: Target) -> Kernel[Convolution]:
        """What the player has instead."""
        whole = groups_of(layer) == 1 and ConvHelium().refusal(layer) is None
        return ConvHelium() if whole else played(layer, target)

    def vectors(self, layer: Layer[Convolution]) -> int:
        return -(-layer.input(1).value[0].size // self.lanes)

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        filters = layer.input(1).value
        rows = filters.reshape(filters.shape[0], -1)
        spare = self.vectors(layer) * self.lanes - rows.shape[1]
        lines = self.lines(layer)
        offsets = np.pad(lines.offsets(layer), (0, spare)).astype(np.uint8 if self.size == 1 else np.uint16)
        words = np.stack(self.scaling(layer), axis=1).astype("<i4")
        stream = np.concatenate([np.pad(rows, ((0, 0), (0, spare))), words.view(np.int8)], axis=1)
        sheet.include(self.header)
        members = {
            **geometry(layer),
            **({f".window.{name}": value for name, value in one_row(layer).items()}),
            ".groups": groups_of(layer),
            ".vectors": self.vectors(layer),
            ".copied": self.size * lines.copied,
            ".columns": lines.columns,
            ".column": self.size * lines.column,
            ".row": self.size * lines.row,
            ".line_bytes": self.size * lines.total,
            ".filter_bytes": stream.shape[1],
            ".offsets": sheet.table("offsets", offsets),
            ".filters": sheet.table("filters", stream.reshape(-1), holds=STREAM, alignment=4),
            **self.limits(layer),
        }
        name = sheet.record("struct tinyml_conv_few_mve", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y(), sheet.scratch)

    def scaling(self, layer: Layer[Convolution]) -> tuple[Array, Array, Array]:
        """Biases, multipliers in units of 2⁻³¹, and shifts to the left."""
        return (folded_bias(layer, layer.input(1).value), *channel_multipliers(layer))

    def limits(self, layer: Layer[Convolution]) -> dict[str, object]:
        return {**in_zero(layer), **output_limits(layer)}

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        lines = self.lines(layer)
        work = few_counts.with_helium(walked(layer), lines, self.lanes, self.size)
        return {**work, "filters rounded twice": work["filters"] * (not outputs_of(layer).once)}

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        self.played(layer, sheet.target).play(layer, sheet)


def few_filters_or_channels(layer: Layer[Convolution]) -> bool:
    """There are few filters, or groups of few channels: other kernels are known to take longer."""
    return bool(getattr(layer.op, "few", False))


def near_offsets(layer: Layer[Convolution]) -> bool:
    """The elements of a window are within 256 bytes, in the input or in copies of its lines."""
    return lines_of(layer, ConvFewHelium.most, ConvFewHelium.lanes) is not None


ConvFewHelium.constraints = (
    few_filters_or_channels,
    int8_tensors,
    constant_weights,
    symmetric_weights,
    helium.proper_shifts,
    small_extents,
    near_offsets,
)


class ConvFewHeliumInt16(ConvFewHelium):
    """The same with int16 activations."""

    name = "tinyml_conv_few_mve_s16"
    sources = ("conv/conv_few_mve_s16.c",)
    lanes = 8
    gathers = lanes
    most = 0xFFFF
    size = 2
    header = "<tinyml/conv_s16.h>"
    constraints = (few_filters_or_channels, *INT16, small_extents)

    def played(self, layer: Layer[Convolution], target: Target) -> Kernel[Convolution]:
        return ConvInt16()

    def scaling(self, layer: Layer[Convolution]) -> tuple[Array, Array, Array]:
        outs = layer.output.shape[3]
        bias = layer.input(2).value.reshape(-1) if layer.has_input(2) else np.zeros(outs)
        factor, shift = factors(layer)
        return bias.astype(np.int32), factor, -1 - shift.astype(np.int32)

    def limits(self, layer: Layer[Convolution]) -> dict[str, object]:
        """A product is doubled and rounded down before the shift rounds it, whatever the layer does."""
        return {**rounding(layer), ".in_zero": 0, ".out_zero": 0, ".round_once": "true"}

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return few_counts.with_helium(walked(layer), self.lines(layer), self.lanes, self.size)
