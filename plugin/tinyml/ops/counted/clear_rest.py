# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ClearRest: zeros after the last result, so that outputs of a model are the same in every run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.shared.operands import axis_exists, integers, present


@dataclass(frozen=True)
class ClearRest(Op):
    """The first elements of x along ``axis``, as many as input 1 says; then zeros."""

    operands = (present(2), axis_exists, integers(1))
    clears = True
    axis: int = 0

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (0, layer.input(0).shape[self.axis]) if index == 1 else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (given(inputs, 0).type,)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, count = given(inputs, 0), int(given(inputs, 1).reshape(-1)[0])
        y = np.moveaxis(x.copy(), self.axis, 0)
        y[max(count, 0) :] = 0
        return (np.moveaxis(y, 0, self.axis),)


class ClearRestLoops(InPlace[ClearRest]):
    """Copies what is kept, unless it is in its place already, and clears the rest."""

    name = "clear-rest loops"

    def emit(self, layer: Layer[ClearRest], sheet: Sheet) -> None:
        x = layer.input(0)
        axis = layer.op.axis % len(x.shape)
        inner = c.contiguous(x.shape)[axis]
        size = x.shape[axis] * inner
        sheet.include("<string.h>")
        if x.elements == 0:
            return
        kept = sheet.limited(f"{sheet.x(1)}[0]", 0, x.shape[axis])
        sheet.line(f"const size_t kept = (size_t){kept} * {inner * x.dtype.bytes};")
        sheet.line()
        with sheet.loop("i", x.elements // size):
            sheet.line(f"uint8_t *row = (uint8_t *)&{sheet.y()}[i * {size}];")
            sheet.line()
            if 0 not in sheet.shared_inputs:
                sheet.line(f"memcpy(row, &{sheet.x(0)}[i * {size}], kept);")
            sheet.line(f"memset(&row[kept], 0, {size * x.dtype.bytes} - kept);")


register_kernels(ClearRest, ClearRestLoops())
