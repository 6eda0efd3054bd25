# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float dense layers that add up products in float16."""

from __future__ import annotations

from typing import ClassVar

from tinyml.cores.targets import Target
from tinyml.ir import Constraint, Layer
from tinyml.ops.framework.kernel import Kernel, Library, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted import float16_counts
from tinyml.ops.weighted.float16_sums import (
    adds_in_float16,
    enough_weights,
    sums_stay_finite,
    weights_table,
    window_bytes,
)
from tinyml.ops.weighted.float16_weights import float16_weights
from tinyml.ops.weighted.records import constant_weights, float_limits, float_tensors, matrix
from tinyml.ops.weighted.weighted import Weighted


class DenseFloat16Sums(Kernel[Weighted]):
    """Two rows by sixteen filters, for ``arithmetic: float16``."""

    name = "tinyml_dense_f16"
    library = Library.PORTABLE
    sources: ClassVar[tuple[str, ...]] = (
        *("dense/dense_f16.c", "weighted/sums_f16.c"),
        "weighted/filters_f32.c",
    )
    constraints: ClassVar[tuple[Constraint, ...]] = (
        float_tensors,
        constant_weights,
        float16_weights,
        sums_stay_finite,
        enough_weights,
    )
    weights_are_float16 = True
    adds_in_float16 = True

    def runs_on(self, target: Target) -> bool:
        return adds_in_float16(target)

    def scratch_bytes(self, layer: Layer[Weighted], target: Target) -> int:
        outputs, inputs = layer.input(1).shape
        return window_bytes(inputs, min(2, layer.output.elements // outputs))

    def loop_counts(self, layer: Layer[Weighted], target: Target) -> Work | None:
        return float16_counts.dense(layer)

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        sheet.include("<tinyml/half_weights.h>")
        members = {
            **matrix(layer),
            ".weights": weights_table(sheet, layer.input(1).value),
            **float_limits(layer, sheet),
        }
        name = sheet.record("struct tinyml_dense_f32_f16", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y(), sheet.scratch)
