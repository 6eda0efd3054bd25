# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions with short filters and DSP instructions: windows are not made columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.conv import short_counts
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.few_lines import one_row, walked
from tinyml.ops.conv.grouped import first_of
from tinyml.ops.conv.streamed import ConvDsp, ConvInt8, ConvPairs
from tinyml.ops.conv.vectors import ConvHelium
from tinyml.ops.framework.kernel import Kernel, Library, Sheet
from tinyml.ops.framework.table_words import stream
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.quant import per_channel
from tinyml.ops.weighted import helium
from tinyml.ops.weighted.records import (
    constant_weights,
    folded_bias,
    geometry,
    in_zero,
    int8_tensors,
    output_limits,
    small_extents,
    symmetric_weights,
)
from tinyml.ops.weighted.stream import right_shifts
from tinyml.ops.weighted.walked import outputs_of
from tinyml.ops.weighted.weighted import channel_multipliers

WORDS = stream("every 4 filters, or the last 2, or 1", "weights as int16, elements 0, 2 and 1, 3 of a word")


def plain_rows(layer: Layer[Convolution]) -> bool:
    """Rows of windows are runs of the input: no dilation along rows."""
    return layer.op.dilations[1] == 1 or layer.input(1).shape[2] == 1


def few_filters(layer: Layer[Convolution]) -> bool:
    """There are few filters, or short ones, for which other kernels are known to take longer."""
    return bool(getattr(layer.op, "few", False))


def blocks(filters: int) -> Iterator[tuple[int, int]]:
    """The filters that are applied together: the first, and how many."""
    begin = 0
    while begin < filters:
        size = next(some for some in (4, 2, 1) if filters - begin >= some)
        yield begin, size
        begin += size


def halves(filters: Array) -> Array:
    """Weights as the kernel reads them, by filter and by word of a row: two words of two int16."""
    rows = filters.reshape(*filters.shape[:2], -1)
    filled = np.pad(rows, ((0, 0), (0, 0), (0, -rows.shape[2] % 4)))
    words = filled.reshape(filters.shape[0], -1, 2, 2).transpose(0, 1, 3, 2)  # even elements, then odd ones
    return np.ascontiguousarray(words).astype("<i2").view("<i4")[..., 0]


class ConvShortDsp(Kernel[Convolution]):
    """A window times four filters, where it is in the input; two windows times the last two filters."""

    name = "tinyml_conv_short_dsp_s8"
    library = Library.PORTABLE
    sources: ClassVar[tuple[str, ...]] = ("conv/conv_short_dsp_s8.c",)
    prefix: ClassVar[str] = "tinyml_conv_short_dsp_"  # of its loops
    words: ClassVar[str] = WORDS
    multiple: ClassVar[int] = 4  # elements of a row that are read at once, if it has fewer
    constraints: ClassVar[tuple[Constraint, ...]] = (
        few_filters,
        int8_tensors,
        constant_weights,
        symmetric_weights,
        helium.one_group,
        small_extents,
        plain_rows,
        right_shifts,
    )
    in_bands = True

    def runs_on(self, target: Target) -> bool:
        return target.dsp and not target.mve

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """Also what the player's kernel needs."""
        return max(self.copied_bytes(layer), self.played(layer, target).scratch_bytes(layer, target))

    def copied_bytes(self, layer: Layer[Convolution]) -> int:
        """Four windows, which are read in words."""
        return 4 * int(layer.input(1).value[0].size) + 3

    def played(self, layer: Layer[Convolution], target: Target) -> Kernel[Convolution]:
        """What the player has instead."""
        return first_of((ConvPairs(), ConvDsp(), ConvInt8()), layer, target)

    def padded_bytes(self, layer: Layer[Convolution]) -> int:
        weights = layer.input(1)
        return self.stored_weights(weights.value).nbytes - weights.elements

    def stored_weights(self, filters: Array) -> Array:
        """The words of each filter, by row."""
        return halves(filters)

    def functions(self, layer: Layer[Convolution]) -> tuple[str, ...]:
        return self.name, *self.loops(layer).values()

    def loops(self, layer: Layer[Convolution]) -> dict[str, str]:
        """The functions of the loops, by the members that point to them."""
        way = "once" if layer.op.round_once else "twice"
        sizes = {size for _, size in blocks(layer.output.shape[3])}
        names = {4: "fours", 2: "twos", 1: "ones"}
        return {
            name: f"{self.prefix}{self.loop(layer, name)}_{way}"
            for size, name in names.items()
            if size in sizes
        }

    def loop(self, layer: Layer[Convolution], name: str) -> str:
        return name

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        sheet.include("<tinyml/conv.h>")
        loops, inside, limits = (
            self.loops(layer),
            short_counts.inside(walked(layer), self.multiple),
            output_limits(layer),
        )
        members = {
            **geometry(layer),
            **{f".window.{name}": value for name, value in one_row(layer).items()},
            ".rows.begin": inside.rows[0],
            ".rows.end": inside.rows[1],
            ".cols.begin": inside.cols[0],
            ".cols.end": inside.cols[1],
            ".lowest": inside.lowest,
            ".lowest_end": inside.lowest_end,
            **in_zero(layer),
            **{name: limits[name] for name in (".out_zero", ".out_min", ".out_max")},
            ".filters": sheet.table("filters", self.filters(layer), holds=self.words),
            **{f".{name}": f"&{loops[name]}" for name in loops},
        }
        name = sheet.record("struct tinyml_conv_short_s8", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y(), sheet.scratch)

    def filters(self, layer: Layer[Convolution]) -> Array:
        """The stream of words."""
        filters = layer.input(1).value
        count = filters.shape[0]
        multiplier, shift = (
            per_channel(values, count).astype(np.int64) for values in channel_multipliers(layer)
        )
        factor = (2 * multiplier).astype(np.uint32).view(np.int32)
        exponent = (-shift - 1).astype(np.int8)
        bias, weights = folded_bias(layer, filters), self.stored_weights(filters)
        parts: list[Array] = []
        for begin, size in blocks(count):
            some = slice(begin, begin + size)
            parts += [
                bias[some],
                weights[some].transpose(1, 0, 2).reshape(-1),
                factor[some],
                np.pad(exponent[some], (0, 4 - size)).view("<i4"),
            ]
        return np.concatenate(parts).astype(np.int32)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return short_counts.in_place(walked(layer), outputs_of(layer), self.multiple)

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        self.played(layer, sheet.target).play(layer, sheet)


def one_vector(layer: Layer[Convolution]) -> bool:
    """A row of a window has at most 16 elements."""
    _, _, width, channels = layer.input(1).shape
    return int(width * channels) <= helium.LANES


def several_filters(layer: Layer[Convolution]) -> bool:
    """There are several filters, or one whose window is a single row."""
    return int(layer.output.shape[-1]) > 1 or layer.input(1).shape[1] == 1


def full_vectors(layer: Layer[Convolution]) -> bool:
    """Filters have at most one and a half rows for each vector that would hold their elements, and one row
    more."""
    filters = layer.input(1).value
    return 2 * filters.shape[1] <= 3 * -(-filters[0].size // helium.LANES) + 2


class ConvShortHelium(ConvShortDsp):
    """The same with a row of a window in a vector."""

    name = "tinyml_conv_short_mve_s8"
    sources = ("conv/conv_short_mve_s8.c",)
    constraints = (*ConvShortDsp.constraints, several_filters, one_vector, full_vectors)
    prefix = "tinyml_conv_short_mve_"
    words = stream("every 4 filters, or the last 2, or 1", "vectors of 16 weights, of each filter in turn")
    multiple = 1

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def copied_bytes(self, layer: Layer[Convolution]) -> int:
        """The lines of a row of outputs, if there is padding."""
        return short_counts.copied_elements(walked(layer))

    def played(self, layer: Layer[Convolution], target: Target) -> Kernel[Convolution]:
        return ConvHelium()

    def loop(self, layer: Layer[Convolution], name: str) -> str:
        """Weights of fours of filters with a single row stay in registers."""
        return "points" if name == "fours" and layer.input(1).shape[1] == 1 else name

    def stored_weights(self, filters: Array) -> Array:
        rows = filters.reshape(*filters.shape[:2], -1)
        vectors = np.pad(rows, ((0, 0), (0, 0), (0, helium.LANES - rows.shape[2]))).astype(np.int8)
        return np.ascontiguousarray(vectors).view("<i4")

    def filters(self, layer: Layer[Convolution]) -> Array:
        filters = layer.input(1).value
        words = self.stored_weights(filters)
        multiplier, shift = channel_multipliers(layer)
        scaling = (folded_bias(layer, filters), multiplier, shift)
        parts: list[Array] = []
        for begin, size in blocks(filters.shape[0]):
            some = slice(begin, begin + size)
            parts += [np.tile(per_channel(each, len(filters))[some], 4 // size) for each in scaling]
            parts.append(words[some].transpose(1, 0, 2).reshape(-1))
        return np.concatenate(parts).astype(np.int32)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        work = short_counts.in_lines(walked(layer), outputs_of(layer))
        return {name.replace("fours", self.loop(layer, "fours")): amount for name, amount in work.items()}
