# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators that make a copy of their first input with parts of it replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Sheet


@dataclass(frozen=True)
class Replacement(Op):
    """The output has the type of input 0 and can be computed in place of it."""

    updates: ClassVar[int]  # the input with what is put into its place

    @property
    def only_moves(self) -> bool:
        """Whether the new elements replace the old ones unchanged."""
        return True

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        """Integers of one scale move as they are."""
        y, parts = outputs[0], (given(inputs, 0), given(inputs, self.updates))
        same = all(t.quant == y.quant and t.dtype is y.dtype for t in parts)
        return (self, inputs) if same and self.only_moves else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype, x.quant),)


def copy_first(sheet: Sheet) -> None:
    """Copy the input to the output, unless they share memory."""
    sheet.include("<string.h>")
    y, start = sheet.y(), sheet.layer.input(0)
    if sheet.plays:
        if start.is_constant and not start.value.tobytes().strip(b"\0"):
            sheet.clear(y, start.bytes)
        elif 0 not in sheet.shared_inputs:
            sheet.copy(sheet.x(0), y, start.bytes)
        return
    if start.is_constant and not start.value.tobytes().strip(b"\0"):
        sheet.line(f"memset({y}, 0, {start.bytes});")
        return
    x = sheet.x(0)
    if start.is_constant:
        sheet.line(f"memcpy({y}, {x}, {start.bytes});")
        return
    with sheet.block(f"if ({y} != {x}) {{"):
        sheet.line(f"memcpy({y}, {x}, {sheet.layer.output.bytes});")
