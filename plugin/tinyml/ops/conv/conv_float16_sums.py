# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float convolutions that add up products in float16."""

from __future__ import annotations

from tinyml.base import c
from tinyml.cores.targets import Target
from tinyml.ir import Layer
from tinyml.ops.conv.conv_float import ConvFloat
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Overlay, Sheet
from tinyml.ops.framework.tally import Tally
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.overlay import backwards, forwards
from tinyml.ops.weighted import float16_counts
from tinyml.ops.weighted.float16_sums import (
    adds_in_float16,
    enough_weights,
    sums_stay_finite,
    weights_table,
    window_bytes,
)
from tinyml.ops.weighted.float16_weights import float16_weights
from tinyml.ops.weighted.records import float_limits, geometry
from tinyml.ops.weighted.walked import windows_of


class ConvFloat16Sums(ConvFloat):
    """Two windows by sixteen filters, for ``arithmetic: float16``; windows are copied as float16."""

    name = "tinyml_conv_f16"
    sources = (
        *("conv/conv_f16.c", "weighted/sums_f16.c"),
        "weighted/filters_f32.c",
    )
    constraints = (*ConvFloat.constraints, float16_weights, sums_stay_finite, enough_weights)
    weights_are_float16 = True
    adds_in_float16 = True

    def runs_on(self, target: Target) -> bool:
        return adds_in_float16(target)

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        filters = self.filters(layer)
        return window_bytes(filters[0].size, 2)

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        if self.groups(layer) > 1:  # whose outputs are written before the next group reads
            return ()
        return (*forwards(layer, True), *backwards(layer, True))

    def groups(self, layer: Layer[Convolution]) -> int:
        return int(layer.input(0).shape[3] // self.filters(layer).shape[3])

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return float16_counts.conv(layer, windows_of(layer, self.groups(layer)))

    def placed_counts(self, layer: Layer[Convolution], target: Target, tally: Tally) -> Work | None:
        """Two windows are always read before they are written, wherever outputs are."""
        return self.loop_counts(layer, target)

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        groups = self.groups(layer)
        sheet.include("<tinyml/half_weights.h>")
        members = {
            **geometry(layer),
            ".weights": weights_table(sheet, self.filters(layer), groups),
            **float_limits(layer, sheet),
            ".groups": groups,
            ".from_the_end": c.boolean(sheet.backwards),
        }
        name = sheet.record("struct tinyml_conv_f32_f16", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y(), sheet.scratch)
