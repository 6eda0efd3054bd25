# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Integer convolutions in groups: whole pixels are copied, once for all groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.conv import helium_counts
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.joined_groups import GROWTH, Joining, groups_of, joined, together
from tinyml.ops.conv.streamed import ConvDsp, ConvInt8, ConvPairs
from tinyml.ops.framework.kernel import Kernel, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted import helium
from tinyml.ops.weighted.pairs import PAIR_WORDS, pair_stream, pairs_fit
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
from tinyml.ops.weighted.walked import windows_of


def several_groups(layer: Layer[Convolution]) -> bool:
    """There are several groups."""
    return groups_of(layer) > 1


def whole_pixels(layer: Layer[Convolution]) -> bool:
    """A pixel has four channels or more, or groups have one or two."""
    return layer.input(0).shape[3] >= 4 or layer.input(1).shape[3] <= 2


def pairs_of_joined_groups(layer: Layer[Convolution]) -> bool:
    """Accumulators of every second filter stay below 2²³ for every input, and pairs of weights fit into 16
    bits."""
    filters, groups = joined(layer, DSP)
    return pairs_fit(layer, filters.reshape(filters.shape[0], -1), groups)


def tap_elements(channels: int) -> int:
    """What a tap takes in a column: two elements, or whole words of bytes."""
    return 2 if channels <= 2 else -(-channels // 4) * 4


def column_elements(taps: int, channels: int) -> int:
    return -(-taps * tap_elements(channels) // 4) * 4


def _dsp_instructions(taps: int, channels: int, filters: int) -> float:
    """At two windows: the columns, filters by four, the last ones as a pair."""
    elements = column_elements(taps, channels)
    fours, rest = divmod(filters, 4)
    pair = 90 + 35 * rest + elements * 3.5 if rest in (1, 2) else 0
    return taps * 8 + elements * 3 + 30 + (fours + (rest == 3)) * (110 + elements * 6) + pair


def _helium_instructions(taps: int, channels: int, filters: int) -> float:
    """At four windows: the columns, filters by four."""
    vectors = -(-taps * channels // helium.LANES)
    return 180 + vectors * 56 + -(-filters // 4) * (60 + 28 * vectors) + (40 if filters % 4 else 0)


DSP = Joining(column_elements, _dsp_instructions, GROWTH)
HELIUM = Joining(lambda taps, channels: taps * channels, _helium_instructions, 2)


def filled_taps(filters: Array) -> Array:
    """Filters with zeros that fill up their taps, in the order in which columns have them."""
    channels = filters.shape[-1]
    size = tap_elements(channels)
    wide = np.pad(filters, [*[(0, 0)] * (filters.ndim - 1), (0, size - channels)])
    rows = wide.reshape(filters.shape[0], -1)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))
    if size == 2:
        rows = rows.reshape(len(rows), -1, 4)[:, :, [0, 2, 1, 3]].reshape(len(rows), -1)
    return np.ascontiguousarray(rows)


class ConvGroupsDsp(ConvDsp):
    """Two windows of all groups at a time, two filters in one int16."""

    name = "tinyml_conv_groups_dsp_s8"
    sources = ("conv/conv_groups_dsp_s8.c", "conv/conv_pairs_s8.c")
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ConvDsp.constraints,
        symmetric_weights,
        several_groups,
        whole_pixels,
        pairs_of_joined_groups,
    )

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """The columns of all groups, two rows of outputs, and a pixel of padding."""
        _, height, width, channels = layer.input(1).shape
        count = together(layer, DSP)
        column = column_elements(height * width, count * channels)
        rows = 2 * ((layer.output.shape[3] + 4) // 4 * 4)
        own = groups_of(layer) // count * column * 4 + rows + layer.input(0).shape[3]
        return max(own, super().scratch_bytes(layer, target))

    def weight_layout(self, layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
        filters, groups = joined(layer, DSP)
        bias = folded_bias(layer, layer.input(1).value)
        words = pair_stream(filled_taps(filters), bias, layer.op.multipliers(layer), groups)
        return {
            ".filters": sheet.table("filters", words, holds=PAIR_WORDS),
            ".groups": groups,
            ".weight_zero": 0,
        }

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        played(layer, sheet.target).emit(layer, sheet)


class ConvGroupsHelium(ConvInt8):
    """Four windows of a group times two filters at once, sixteen elements of each."""

    name = "tinyml_conv_groups_mve_s8"
    struct = "struct tinyml_conv_groups_mve_s8"
    sources = ("conv/conv_mve_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        symmetric_weights,
        several_groups,
        helium.proper_shifts,
        small_extents,
    )

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """Four columns in whole vectors; for the player, those of its kernel."""
        _, height, width, channels = layer.input(1).shape
        elements = height * width * channels * together(layer, HELIUM)
        return max(4 * helium.whole_vectors(elements), ConvDsp().scratch_bytes(layer, target))

    def functions(self, layer: Layer[Convolution]) -> tuple[str, ...]:
        return self.name, f"tinyml_conv_mve_{helium.conv_loop(layer)}"

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        sheet.include("<tinyml/conv.h>")
        filters, groups = joined(layer, HELIUM)
        weights, weight_bytes = helium.grouped_pairs(filters, groups)
        channels = helium.channel_words(layer, layer.input(1).value, groups)
        conv = {
            **geometry(layer),
            ".window.in_c": filters.shape[3],
            ".window.out_c": filters.shape[0] // groups,
            ".weights": sheet.table("weights", weights, holds=helium.PAIR_WORDS),
            ".channels": sheet.table("channels", channels, holds=helium.CHANNEL_WORDS),
            ".loop": f"&tinyml_conv_mve_{helium.conv_loop(layer)}",
            **in_zero(layer),
            **output_limits(layer),
            ".from_the_end": c.boolean(sheet.backwards),
        }
        members = {
            **{f".conv{name}": value for name, value in conv.items()},
            ".groups": groups,
            ".weight_bytes": weight_bytes,
            ".channel_words": channels.size // groups,
        }
        record = sheet.record(self.struct, "params", members)
        sheet.call(self.name, record, sheet.x(), sheet.y(), sheet.scratch)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        groups = groups_of(layer) // together(layer, HELIUM)
        return helium_counts.grouped(windows_of(layer, groups), groups, helium.conv_loop(layer))

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        played(layer, sheet.target).emit(layer, sheet)


def first_of(
    candidates: Iterable[Kernel[Convolution]], layer: Layer[Convolution], target: Target
) -> Kernel[Convolution]:
    """The first kernel that the core has and that takes the layer."""
    return next(kernel for kernel in candidates if kernel.runs_on(target) and kernel.refusal(layer) is None)


def played(layer: Layer[Convolution], target: Target) -> Kernel[Convolution]:
    """The player's kernels walk the groups one by one."""
    return first_of((ConvPairs(), ConvDsp(), ConvInt8()), layer, target)
