# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Compress: the slices of a tensor whose condition is true."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.counted.bound import COUNT, emit_count, emit_overflow, rows_within
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.indexing.gather import gather
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axis import from_front
from tinyml.ops.shared.operands import axis_exists, integers, numbers_from, of_type, present


def one_condition_per_slice(layer: Layer[Compress]) -> bool:
    """The condition has one axis, not longer than the axis of the input."""
    condition = layer.input(1).shape
    return len(condition) == 1 and condition[0] <= layer.input(0).shape[layer.op.axis]


@dataclass(frozen=True)
class Compress(Op):
    """Inputs: x, condition, and how many slices of x count, if not all.

    Outputs: ``rows`` slices of x along ``axis``, zeros after the last; their number (1).
    """

    operands = (
        present(2),
        axis_exists,
        of_type(1, DType.BOOL),
        one_condition_per_slice,
        integers(2),
        numbers_from(0, "rows"),
    )
    folds = False  # the reader knows how many results constants give
    clears = True
    rows: int = 0
    axis: int = 0

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (0, layer.input(0).shape[self.axis]) if index == 2 else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        shape = tuple(self.rows if a == self.axis else extent for a, extent in enumerate(x.shape))
        quant = x.quant if x.quant is None or not x.quant.per_channel else None
        return (TensorType(shape, x.dtype, quant), COUNT)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, places = given(inputs, 0), np.flatnonzero(given(inputs, 1))
        if len(inputs) > 2 and inputs[2] is not None:
            places = places[places < int(inputs[2].reshape(-1)[0])]
        found = np.take(x, places, axis=self.axis)
        return rows_within(found, self.rows, layer, self.axis), np.array([len(places)], np.int64)


class CompressLoops(Kernel[Compress]):
    """One walk through the conditions; each slice is copied at once where it is in one piece."""

    name = "compress loops"

    def emit(self, layer: Layer[Compress], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        inner = c.contiguous(x.shape)[op.axis]
        outer = x.elements // (inner * x.shape[op.axis]) if x.elements else 0
        sheet.may_fail = True
        sheet.include("<string.h>")
        bytes_ = inner * x.dtype.bytes
        conditions = layer.input(1).shape[0]
        if layer.has_input(2):
            limit = sheet.limited(f"{sheet.x(2)}[0]", 0, conditions)
            sheet.line(f"const int32_t end = {limit};")
        sheet.line("int32_t count = 0;")
        sheet.line()
        with sheet.loop("i", "end" if layer.has_input(2) else conditions):
            with sheet.block(f"if (!{sheet.x(1)}[i]) {{"):
                sheet.line("continue;")
            emit_overflow(sheet, "count", op.rows, sheet.y(1))
            if outer:
                with sheet.loop("o", outer):
                    to = f"(o * {op.rows} + count) * {inner}"
                    source = f"(o * {x.shape[op.axis]} + i) * {inner}"
                    sheet.line(f"memcpy(&{sheet.y(0)}[{to}], &{sheet.x(0)}[{source}], {bytes_});")
            sheet.line("count++;")
        emit_count(sheet, "count", sheet.y(1))
        if outer and op.rows:
            with sheet.loop("o", outer):
                rest = f"(size_t)({op.rows} - count) * {bytes_}"
                sheet.line(f"memset(&{sheet.y(0)}[(o * {op.rows} + count) * {inner}], 0, {rest});")
        sheet.line("return 0;")


register_kernels(Compress, CompressLoops())


@onnx_op("Compress")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, condition = node.input(0), node.input(1)
    axis = node.attr("axis")
    if axis is None:
        x = x if len(x.shape) == 1 else build.add1(Reshape((x.elements,)), [x])
    axis = 0 if axis is None else from_front(int(axis), len(x.shape))
    if condition.data is not None and x.name not in build.counted:
        places = np.flatnonzero(condition.data).astype(np.int64)
        return [gather(build, x, build.constant(places), axis)]
    known = build.count_along(x, axis) or build.count_along(condition, 0)
    rows = build.bound(condition.shape[0])
    found, number = build.add(Compress(rows, axis), [x, condition, known], counts=True)
    build.count(found, axis, number)
    return [found]
