# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Integer convolutions in portable C, in plain C and with DSP instructions."""

from __future__ import annotations

from typing import ClassVar

from tinyml.base import c
from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.conv import halves_counts, stream_counts, wide_counts
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.overlay import backwards, forwards
from tinyml.ops.shared.quant import quant_of
from tinyml.ops.weighted.halves import moderate_sums, neighbours_fit
from tinyml.ops.weighted.helium import one_group
from tinyml.ops.weighted.pairs import (
    CORRECTED_WORDS,
    PAIR_WORDS,
    corrections,
    few_corrections,
    pair_stream,
    pairs_are_exact,
)
from tinyml.ops.weighted.records import (
    constant_weights,
    folded_bias,
    geometry,
    in_zero,
    int8_tensors,
    one_weight_zero,
    output_limits,
    small_extents,
    symmetric_weights,
)
from tinyml.ops.weighted.stream import filter_stream, right_shifts, stream_words
from tinyml.ops.weighted.walked import Outputs, Windows, groups_of, outputs_of, together, windows_of
from tinyml.ops.weighted.weighted import Weighted


class ConvInt8(Kernel[Convolution]):
    """Three windows times two filters at once; supports any groups, dilations and weight zero point."""

    name = "tinyml_conv_s8"
    library = Library.PORTABLE
    sources: ClassVar[tuple[str, ...]] = ("conv/conv_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        one_weight_zero,
        small_extents,
    )
    in_bands = True
    column_bytes = 3  # for each element of a window
    together: ClassVar[int] = 2  # filters whose words take turns in the stream
    struct = "struct tinyml_conv_stream_s8"
    apart = "struct tinyml_conv_apart_s8"  # the same for outputs that are not neighbours

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """Several windows, and one more if the channels are not a multiple of four."""
        _, rows, columns, channels = layer.input(1).shape
        return self.columns_bytes(rows * columns * channels, channels)

    def columns_bytes(self, elements: int, channels: int) -> int:
        """Scratch memory for filters of so many elements, with so many input channels."""
        column = -(-elements // 4) * 4
        return (self.column_bytes + (channels % 4 != 0)) * column

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        """Windows are copied before outputs are written. Each of several groups walks all windows."""
        if layer.input(0).shape[3] != layer.input(1).shape[3]:
            return ()
        return (*forwards(layer, copied=True), *backwards(layer, copied=True))

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        sheet.include("<tinyml/conv.h>")
        members = {
            **geometry(layer),
            **self.weight_layout(layer, sheet),
            **in_zero(layer),
            **output_limits(layer),
            ".from_the_end": c.boolean(sheet.backwards),
        }
        name = sheet.record(self.struct, "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y(), sheet.scratch)

    def weight_layout(self, layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
        """Members that only this struct has: its constants, and what the kernel supports in weights."""
        return self.stream_members(layer, sheet, "filters")

    def part_layout(self, layer: Layer[Weighted], sheet: Sheet, number: int) -> dict[str, object]:
        """The same for a part of a transposed convolution, with this number."""
        return self.stream_members(layer, sheet, f"filters{number}")

    def stream_members(self, layer: Layer[Weighted], sheet: Sheet, table: str) -> dict[str, object]:
        """Members for the stream of filters; the layer may be a part of a transposed convolution."""
        groups = layer.input(0).shape[-1] // layer.input(1).shape[-1]
        name = sheet.table(table, self.stream(layer, groups), holds=self.holds)
        return {".filters": name, ".groups": groups, ".weight_zero": self.weight_zero(layer)}

    @property
    def holds(self) -> str:
        """What the stream has, for readers of the generated C."""
        return stream_words(self.together)

    def stream(self, layer: Layer[Weighted], groups: int) -> Array:
        """The filters as the kernel reads them."""
        filters = layer.input(1).value
        bias, multipliers = folded_bias(layer, filters), layer.op.multipliers(layer)
        return filter_stream(filters, bias, multipliers, self.together, groups)

    def weight_zero(self, layer: Layer[Weighted]) -> int:
        """The zero point that all weights share."""
        return int(quant_of(layer.input(1)).zero_points[0])

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return self.walked(windows_of(layer), outputs_of(layer))

    def walked(self, windows: Windows, made: Outputs) -> Work:
        """How often the loops run for these windows."""
        return stream_counts.one_by_one(windows, 3, stream_counts.by_twos(3, made))


class ConvHalves(ConvInt8):
    """Four windows times one filter on Arm cores without DSP instructions, two windows in a word."""

    name = "tinyml_conv_halves_s8"
    sources = ("conv/conv_halves_s8.c",)
    constraints = (*ConvInt8.constraints, symmetric_weights, right_shifts, neighbours_fit, moderate_sums)
    column_bytes = 8
    together = 1

    def runs_on(self, target: Target) -> bool:
        return target.arm and not target.dsp

    def columns_bytes(self, elements: int, channels: int) -> int:
        """Bytes of the windows are spread over the words, a block of sixteen bytes ahead of them."""
        return super().columns_bytes(elements, channels) + 16

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return self.walked(windows_of(layer), outputs_of(layer))

    def walked(self, windows: Windows, made: Outputs) -> Work:
        return stream_counts.one_by_one(windows, halves_counts.WINDOWS, halves_counts.one_by_one(made))


def not_three_positions(layer: Layer[Convolution]) -> bool:
    """There are not exactly three positions: a kernel for three windows at a time is better at those."""
    _, height, width, _ = layer.output.shape
    return int(height * width) != 3


class ConvWide(ConvInt8):
    """Four windows times four filters at once, on processors with registers for their sums."""

    name = "tinyml_conv_wide_s8"
    sources = ("conv/conv_wide_s8.c",)
    constraints = (*ConvInt8.constraints, not_three_positions)
    column_bytes = 4

    def runs_on(self, target: Target) -> bool:
        return target.registers >= 32

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return self.walked(windows_of(layer), outputs_of(layer))

    def walked(self, windows: Windows, made: Outputs) -> Work:
        return stream_counts.one_by_one(windows, wide_counts.WINDOWS, wide_counts.by_fours(made))


class ConvDsp(ConvInt8):
    """The same with DSP instructions: two windows, in pairs of int16."""

    name = "tinyml_conv_dsp_s8"
    sources: ClassVar[tuple[str, ...]] = ("conv/conv_dsp_s8.c",)
    constraints = (*ConvInt8.constraints, right_shifts)
    column_bytes = 4

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return self.walked(windows_of(layer), outputs_of(layer))

    def walked(self, windows: Windows, made: Outputs) -> Work:
        return stream_counts.one_by_one(windows, 2, stream_counts.by_twos(2, made, odd_words=True))


class ConvPairs(ConvDsp):
    """The same with two filters in one int16, where that is exact: fewer instructions to unpack weights."""

    name = "tinyml_conv_pairs_s8"
    sources: ClassVar[tuple[str, ...]] = ("conv/conv_pairs_s8.c",)
    constraints = (*ConvDsp.constraints, symmetric_weights, pairs_are_exact)

    @property
    def holds(self) -> str:
        return PAIR_WORDS

    def stream(self, layer: Layer[Weighted], groups: int) -> Array:
        filters = layer.input(1).value
        return pair_stream(filters, folded_bias(layer, filters), layer.op.multipliers(layer), groups)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return self.walked(windows_of(layer), outputs_of(layer))

    def walked(self, windows: Windows, made: Outputs) -> Work:
        return stream_counts.two_by_two(windows, stream_counts.by_fours(made))


class ConvPairsCorrected(ConvPairs):
    """The same where some weights of -128 are beside negative ones: sums are corrected for these."""

    name = "tinyml_conv_pairs_corrected_s8"
    sources = ("conv/conv_pairs_corrected_s8.c", *ConvPairs.sources)
    constraints = (*ConvDsp.constraints, symmetric_weights, one_group, few_corrections)

    @property
    def holds(self) -> str:
        return CORRECTED_WORDS

    def stream(self, layer: Layer[Weighted], groups: int) -> Array:
        filters = layer.input(1).value
        bias, multipliers = folded_bias(layer, filters), layer.op.multipliers(layer)
        return pair_stream(filters, bias, multipliers, groups, corrected=True)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        windows = windows_of(layer)
        blocks = windows.batches * groups_of(windows.positions, 2)
        return together(self.walked(windows, outputs_of(layer)), {"corrections": blocks * corrections(layer)})

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        """The player has no kernel of this kind."""
        ConvDsp().emit(layer, sheet)
