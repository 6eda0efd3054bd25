# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Rows of a table that stays packed in flash, such as an embedding: only the chosen ones become floats."""

from __future__ import annotations

from typing import Any, ClassVar

from tinyml.base import c
from tinyml.ir import Constraint, DType, Layer, Tensor
from tinyml.ops.framework.kernel import Kernel, Library, Sheet
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.weighted.block_form import block_form
from tinyml.ops.weighted.block_weights import steps_members


def index_code(sheet: Sheet, tensor: Tensor, expression: str, size: int) -> c.Expr:
    """C for an index into ``size`` elements; constants that are in range need no check."""
    known = tensor.is_constant and tensor.dtype is DType.INT32 and tensor.elements
    if known and int(tensor.value.min()) >= 0 and int(tensor.value.max()) < size:
        return c.Expr(expression)
    return sheet.index(expression, size)


def float_table(layer: Layer[Any]) -> bool:
    """The first input is a constant matrix of float32, and the indices choose rows of it."""
    x = layer.input(0)
    return x.is_constant and x.dtype is DType.FLOAT32 and len(x.shape) == 2 and layer.op.axis == 0


def rows_of_four_bits(layer: Layer[Any]) -> bool:
    """Each row, or each block of it, has integers of 4 bits times one scale."""
    return block_form(layer.input(0).value, 4) is not None


def rows_of_eight_bits(layer: Layer[Any]) -> bool:
    """Each row, or each block of it, has integers of 8 bits times one scale."""
    return block_form(layer.input(0).value, 8) is not None


class GatherPacked(Kernel[Any]):
    """One row of steps times scales for each index."""

    name = "tinyml_row_f32_s4"
    library = Library.PORTABLE
    sources: ClassVar[tuple[str, ...]] = ("weighted/row_f32_s4.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (float_table, rows_of_four_bits)
    bits: ClassVar[int] = 4

    def emit(self, layer: Layer[Any], sheet: Sheet) -> None:
        x, indices = layer.input(0), layer.input(1)
        steps = steps_members(sheet, x.value, self.bits)
        members = {f".{name}": value for name, value in steps.items()}
        name = sheet.record(f"struct tinyml_steps_s{self.bits}", "params", members)
        with sheet.loops(c.nest((indices.elements,), {"i": c.Walk((1,))})) as at:
            place = index_code(sheet, indices, f"{sheet.x(1)}[{at['i']}]", x.shape[0])
            target = f"&{sheet.y()}[{at['i'] * x.shape[1]}]"
            sheet.line(f"{self.name}(&{name}, {place}, {target});")

    def play(self, layer: Layer[Any], sheet: Sheet) -> None:
        x, indices = layer.input(0), layer.input(1)
        if indices.dtype not in (DType.INT32, DType.INT64):
            raise NotPlayableError(f"the player has no gather with indices of {indices.dtype.value}")
        steps = steps_members(sheet, x.value, self.bits)
        members = {
            ".rows": x.shape[0],
            ".count": indices.elements,
            ".type": indices.dtype.code,
            **{f".steps.{name}": value for name, value in steps.items()},
        }
        sheet.note(self.name, members, sheet.x(1), sheet.y())


class GatherPackedBytes(GatherPacked):
    """The same with a byte for each element."""

    name = "tinyml_row_f32_s8"
    sources = ("weighted/row_f32_s8.c",)
    constraints = (float_table, rows_of_eight_bits)
    bits = 8
