# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The dense layer that learns on the device: runtime/adapt/ adds what it has learnt to its sums."""

from __future__ import annotations

from typing import ClassVar

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Constraint, Layer
from tinyml.ops.dense.dense import Dense
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.weighted.records import constant_weights, int8_tensors, symmetric_weights

SOURCE = "adapt/last.c"


@dataclass(frozen=True)
class AdaptedDense(Dense):
    """A Dense layer until something is learnt. ``learner`` is the C name of its description."""

    learner: str = ""


class AdaptedInt8(Kernel[AdaptedDense]):
    """One filter after the other, with the differences that the device has learnt."""

    name = "tinyml_adapt_dense_s8"
    constraints: ClassVar[tuple[Constraint, ...]] = (int8_tensors, constant_weights, symmetric_weights)

    def runtime_sources(self, layer: Layer[AdaptedDense]) -> tuple[str, ...]:
        return (SOURCE,)

    def emit(self, layer: Layer[AdaptedDense], sheet: Sheet) -> None:
        sheet.line(f"tinyml_adapt_dense_s8(&{layer.op.learner}, {sheet.x()}, {sheet.y()});")


register_kernels(AdaptedDense, AdaptedInt8())
