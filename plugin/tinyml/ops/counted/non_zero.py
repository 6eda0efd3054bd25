# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""NonZero: where the elements that are not zero are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.counted.bound import COUNT, emit_count, emit_overflow, rows_within
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.operands import at_least_rank, integers, numbers_from, present
from tinyml.ops.transpose import Transpose


@dataclass(frozen=True)
class NonZero(Op):
    """Inputs: x, and how many of its slices along axis 0 count, if not all.

    Outputs: indices (axes of x, rows), zeros after the last; their number (1).
    """

    operands = (present(1), at_least_rank(0, 1), integers(1), numbers_from(0, "rows"))
    folds = False  # the reader knows how many results constants give
    clears = True
    rows: int = 0

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (0, layer.input(0).shape[0]) if index == 1 else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType((len(given(inputs, 0).shape), self.rows), DType.INT64), COUNT)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        if len(inputs) > 1 and inputs[1] is not None:
            x = x[: max(int(inputs[1].reshape(-1)[0]), 0)]
        found = np.stack(np.nonzero(x)).astype(np.int64)
        return rows_within(found, self.rows, layer, axis=1), np.array([found.shape[1]], np.int64)


class NonZeroLoops(Kernel[NonZero]):
    """One walk through the elements."""

    name = "non-zero loops"

    def emit(self, layer: Layer[NonZero], sheet: Sheet) -> None:
        x, rows = layer.input(0), layer.op.rows
        sheet.may_fail = True
        strides = c.contiguous(x.shape)
        end = str(x.elements)
        if layer.has_input(1):
            limit = sheet.limited(f"{sheet.x(1)}[0]", 0, x.shape[0])
            sheet.line(f"const int32_t end = {limit} * {strides[0]};")
            end = "end"
        sheet.line("int32_t count = 0;")
        sheet.line()
        with sheet.loop("i", end if layer.has_input(1) else x.elements):
            with sheet.block(f"if ({sheet.x(0)}[i] == 0) {{"):
                sheet.line("continue;")
            emit_overflow(sheet, "count", rows, sheet.y(1))
            for axis, (stride, extent) in enumerate(zip(strides, x.shape, strict=True)):
                place = "i" if stride == 1 else f"i / {stride}"
                place = place if axis == 0 else f"({place}) % {extent}" if stride > 1 else f"i % {extent}"
                at = f"{axis * rows} + count" if axis else "count"
                sheet.line(f"{sheet.y(0)}[{at}] = {place};")
            sheet.line("count++;")
        emit_count(sheet, "count", sheet.y(1))
        with sheet.loop("i", rows, start=0), sheet.block("if (i >= count) {"):
            for axis in range(len(x.shape)):
                at = f"{axis * rows} + i" if axis else "i"
                sheet.line(f"{sheet.y(0)}[{at}] = 0;")
        sheet.line("return 0;")


register_kernels(NonZero, NonZeroLoops())


def _indices(build: Builder, x: Tensor) -> Tensor:
    """Indices of an input that arrives at run time, (axes, results)."""
    if len(x.shape) == 0:
        x = build.add1(Reshape((1,)), [x])
    operands = [x, build.count_along(x, 0)]
    indices, number = build.add(NonZero(build.bound(x.elements)), operands, counts=True)
    build.count(indices, 1, number)
    return indices


@onnx_op("NonZero")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    if x.data is not None:
        data = np.atleast_1d(x.data)
        return [build.constant(np.stack(np.nonzero(data)).astype(np.int64))]
    return [_indices(build, x)]


@tflite_op("WHERE")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """With one operand: a row for each element that is not zero."""
    x = node.input(0)
    if x.data is not None:
        return [build.constant(np.argwhere(x.data).astype(np.int64))]
    return [build.add1(Transpose((1, 0)), [_indices(build, x)])]
