# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float convolutions: two windows by eight filters at a time."""

from __future__ import annotations

from typing import ClassVar

from tinyml.base import c
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet
from tinyml.ops.shared.overlay import backwards, forwards
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

FLOAT_SOURCES = ("conv/conv_f32.c", "conv/windows_f32.c", "weighted/filters_f32.c")


class ConvFloat(Kernel[Convolution]):
    """Float convolution in portable C and, on Arm cores with an FPU, assembly."""

    name = "tinyml_conv_f32"
    library = Library.PORTABLE
    sources = FLOAT_SOURCES
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
        sheet.include("<tinyml/conv.h>")
        members = {
            **geometry(layer),
            ".weights": sheet.table("weights", float_tiles(filters, groups), holds=TILE_WORDS),
            **float_limits(layer, sheet),
            ".groups": groups,
            ".from_the_end": c.boolean(sheet.backwards),
        }
        name = sheet.record("struct tinyml_conv_f32", "params", members)
        sheet.call("tinyml_conv_f32", name, sheet.x(), sheet.y())
