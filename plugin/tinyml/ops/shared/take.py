# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators whose output selects input elements by one fixed table per axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Shape, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet
from tinyml.ops.framework.play_loops import array
from tinyml.ops.framework.writing import OnnxWriter

Picks = tuple[int, ...]


@dataclass(frozen=True)
class Take(Op):
    """y[i, j, …] = x[picks[0][i], picks[1][j], …]. A subclass defines the picks."""

    movement: ClassVar[bool] = True

    def picks(self, shape: Shape) -> tuple[Picks, ...]:
        """One table for each axis of an input of ``shape``."""
        raise NotImplementedError(self.kind)

    def extents(self, shape: Shape) -> Shape:
        """The output's; a subclass may know them without its tables, which limits have not checked yet."""
        return tuple(len(table) for table in self.picks(shape))

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        quant = x.quant if x.quant is None or not x.quant.per_channel else None
        return (TensorType(self.extents(x.shape), x.dtype, quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        for axis, picks in enumerate(self.picks(x.shape)):
            x = np.take(x, np.asarray(picks, np.int64), axis=axis)
        return (x,)


class TakeLoops(Kernel[Take]):
    """Loops over the output; tables only for axes where no simple expression gives the index."""

    name = "take loops"

    def emit(self, layer: Layer[Take], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        if y.elements == 0:
            return
        tables = op.picks(x.shape)
        kept = _trailing(tables, x.shape)
        if sheet.plays:
            _play(sheet, tables[:kept])
            return
        row = int(np.prod(x.shape[kept:], dtype=np.int64))
        names = [f"i{axis}" for axis in range(kept)]
        source = target = c.Expr(0)
        for axis in range(kept):
            pick = _expression(sheet, names[axis], tables[axis], axis)
            source = source * x.shape[axis] + pick
            target = target * y.shape[axis] + (names[axis] if y.shape[axis] > 1 else 0)
        with sheet.nested((name, extent) for name, extent in zip(names, y.shape, strict=False) if extent > 1):
            if row == 1:
                sheet.line(f"{sheet.y()}[{target}] = {sheet.x()}[{source}];")
            else:
                sheet.include("<string.h>")
                to, start = target * row, source * row
                sheet.line(f"memcpy(&{sheet.y()}[{to}], &{sheet.x()}[{start}], {row * x.dtype.bytes});")


def _play(sheet: Sheet, tables: Sequence[Picks]) -> None:
    """Tables of offsets in bytes, for axes where they are not multiples of one."""
    x = sheet.layer.input(0)
    strides = [stride * x.dtype.bytes for stride in c.contiguous(x.shape)]
    extents: list[int] = []
    steps: list[int] = []
    names: list[str] = []
    start = 0
    for axis, picks in enumerate(tables):
        offsets = np.asarray(picks, np.int64) * strides[axis]
        step = int(offsets[1] - offsets[0]) if offsets.size > 1 else 0
        if step >= 0 and bool(np.all(offsets == offsets[0] + step * np.arange(offsets.size))):
            start += int(offsets[0])
            if offsets.size == 1:
                continue
            names.append("0")
        else:
            names.append(sheet.table(f"axis{axis}", offsets.astype(np.uint32), holds="offsets in bytes"))
            step = int(offsets.max())
        extents.append(offsets.size)
        steps.append(step)
    members = {
        **array("extents", extents, 1),
        **array("steps", steps, 0),
        **{name: text or "0" for name, text in array("tables", names, "0").items()},
        ".start": start,
        ".bytes": int(np.prod(x.shape[len(tables) :], dtype=np.int64)) * x.dtype.bytes,
    }
    sheet.note("tinyml_play_take", members, sheet.x(), sheet.y())


def _trailing(tables: Sequence[Picks], shape: Shape) -> int:
    """Axes from this one on are taken as they are."""
    kept = len(shape)
    while kept and tables[kept - 1] == tuple(range(shape[kept - 1])):
        kept -= 1
    return kept


def _expression(sheet: Sheet, name: str, picks: Picks, axis: int) -> c.Expr:
    """The input index for output index ``name``: a formula if there is one, else a table."""
    numbers = np.asarray(picks, np.int64)
    steps = np.arange(numbers.size)
    if numbers.size == 1:
        return c.Expr(int(numbers[0]))
    stride = int(numbers[1] - numbers[0])
    if stride > 0 and bool(np.all(numbers == numbers[0] + stride * steps)):
        return c.Expr(name) * stride + int(numbers[0])
    repeat = int(np.count_nonzero(numbers == numbers[0]))
    if numbers[0] == 0 and repeat > 1 and bool(np.all(numbers == steps // repeat)):
        return c.Expr(name) // repeat
    small = np.int16 if int(numbers.max()) < 2**15 else np.int32
    return c.Expr(name).of(sheet.table(f"axis{axis}", numbers.astype(small)))


def write_picks(op: Take, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    """As ONNX: a Gather for each axis that changes."""
    shape = layer.input(0).shape
    tables = [
        (axis, picks) for axis, picks in enumerate(op.picks(shape)) if picks != tuple(range(shape[axis]))
    ]
    name = x[0]
    for axis, picks in tables:
        last = axis == tables[-1][0]
        name = out.node("Gather", [name, out.integers(picks, "picks")], y if last else "", axis=axis)
    if not tables:
        out.node("Identity", [name], y)
