# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float convolutions: two windows by eight filters at a time."""

from __future__ import annotations

from typing import ClassVar

from tinyml.base import c
from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet
from tinyml.ops.framework.tally import Tally
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.overlay import backwards, forwards
from tinyml.ops.weighted import float_counts
from tinyml.ops.weighted.float16_weights import float16_table, float16_weights
from tinyml.ops.weighted.records import (
    TILE_WORDS,
    TOGETHER,
    constant_weights,
    float_limits,
    float_tensors,
    float_tiles,
    geometry,
    small_extents,
)
from tinyml.ops.weighted.walked import windows_of

FLOAT_SOURCES = ("conv/conv_f32.c", "conv/windows_f32.c", "weighted/filters_f32.c")

FLOAT16_SOURCES = (
    *("conv/conv_f32_f16.c", "conv/windows_f32.c"),
    *("weighted/filters_f32_f16.c", "weighted/filters_f32.c"),
)


class ConvFloat(Kernel[Convolution]):
    """Float convolution in portable C and, on Arm cores with an FPU, assembly."""

    name = "tinyml_conv_f32"
    library = Library.PORTABLE
    header: ClassVar[str] = "<tinyml/conv.h>"
    sources: ClassVar[tuple[str, ...]] = FLOAT_SOURCES
    in_bands = True
    constraints: ClassVar[tuple[Constraint, ...]] = (float_tensors, constant_weights, small_extents)

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        return (*forwards(layer, False, TOGETHER), *backwards(layer, False, TOGETHER))

    def filters(self, layer: Layer[Convolution]) -> Array:
        """Weights with the axes out, kernel_h, kernel_w, in / groups."""
        return layer.input(1).value

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        filters = self.filters(layer)
        groups = layer.input(0).shape[3] // filters.shape[3]
        sheet.include(self.header)
        members = {
            **geometry(layer),
            ".weights": self.weights(filters, groups, sheet),
            **float_limits(layer, sheet),
            ".groups": groups,
            ".from_the_end": c.boolean(sheet.backwards),
        }
        name = sheet.record(f"struct {self.name}", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y())

    def weights(self, filters: Array, groups: int, sheet: Sheet) -> str:
        """The table of weights."""
        return sheet.table("weights", float_tiles(filters, groups), holds=TILE_WORDS)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return self.placed_counts(layer, target, Tally())

    def placed_counts(self, layer: Layer[Convolution], target: Target, tally: Tally) -> Work | None:
        del target
        filters = self.filters(layer)
        groups = layer.input(0).shape[3] // filters.shape[3]
        return float_counts.conv(layer, windows_of(layer, groups), float_counts.overlap_of(tally))


class ConvFloat16(ConvFloat):
    """The same with float16 weights, which become floats before they are multiplied."""

    name = "tinyml_conv_f32_f16"
    header = "<tinyml/half_weights.h>"
    sources = FLOAT16_SOURCES
    constraints = (*ConvFloat.constraints, float16_weights)
    weights_are_float16 = True

    def weights(self, filters: Array, groups: int, sheet: Sheet) -> str:
        return float16_table(sheet, "weights", float_tiles(filters, groups, multiple=2), TILE_WORDS)

    loop_counts = ConvFloat.loop_counts
    placed_counts = ConvFloat.placed_counts
