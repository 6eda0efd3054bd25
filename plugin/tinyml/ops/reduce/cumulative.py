# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Cumulative: running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.base import c
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.ops.elementwise.element_loops import fill
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.axes import Split, normalized
from tinyml.ops.shared.indices import in_range
from tinyml.ops.shared.operands import axis_exists, present


@dataclass(frozen=True)
class Cumulative(Op):
    """``exclusive``: without the element itself. ``reverse``: from the end.

    A second input gives the axis at run time; the attribute is then ignored, and an axis that does not exist
    is the nearest one.
    """

    operands = (present(1), axis_exists)
    axis: int = 0
    product: bool = False
    exclusive: bool = False
    reverse: bool = False

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        rank = len(layer.input(0).shape)
        return (-rank, rank - 1) if index == 1 else None

    def label(self) -> str:
        return "cumprod" if self.product else "cumsum"

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        axis = int(in_range(given(inputs, 1).reshape(()), x.ndim)) if len(inputs) > 1 else self.axis
        if self.reverse:
            x = np.flip(x, axis)
        if self.exclusive:
            first = np.full_like(np.take(x, [0], axis), int(self.product))
            x = np.concatenate([first, np.take(x, range(x.shape[axis] - 1), axis)], axis)
        run = np.cumprod if self.product else np.cumsum
        with np.errstate(all="ignore"):
            y = run(x, axis=axis, dtype=x.dtype)
        return (np.flip(y, axis) if self.reverse else y,)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return None if layer.has_input(1) else replace(self, axis=perm.index(self.axis))


def axis_known(layer: Layer) -> bool:
    """The axis is a constant."""
    return not layer.has_input(1)


class CumulativeLoops(InPlace[Cumulative]):
    """An accumulator that walks along the axis."""

    name = "cumulative loops"
    constraints = (axis_known,)

    def emit(self, layer: Layer[Cumulative], sheet: Sheet) -> None:
        op, shape = layer.op, layer.output.shape
        stride = c.contiguous(shape)[op.axis]
        with sheet.loops(Split(shape, (op.axis,)).outer()) as index:
            _walk(layer, op, sheet, index["x"], shape[op.axis], stride)


class CumulativeAnyAxis(InPlace[Cumulative]):
    """The same with the axis, and so its extent and stride, looked up at run time."""

    name = "cumulative loops, axis at run time"

    def emit(self, layer: Layer[Cumulative], sheet: Sheet) -> None:
        op, shape = layer.op, layer.output.shape
        extents = sheet.table("extents", np.array(shape, np.int32))
        strides = sheet.table("strides", np.array(c.contiguous(shape), np.int32))
        sheet.line(f"const int32_t axis = {sheet.index(f'{sheet.x(1)}[0]', len(shape))};")
        sheet.line(f"const int32_t extent = {extents}[axis];")
        sheet.line(f"const int32_t stride = {strides}[axis];")
        sheet.line()
        with sheet.block(f"for (int32_t i = 0; i < {layer.output.elements} / extent; i++) {{"):
            sheet.line("const int32_t first = i / stride * stride * extent + i % stride;")
            _walk(layer, op, sheet, "first", "extent", "stride")


def _walk(
    layer: Layer, op: Cumulative, sheet: Sheet, first: c.Operand, extent: c.Operand, stride: c.Operand
) -> None:
    """The loop along the axis."""
    dtype = layer.output.dtype
    operator = "*" if op.product else "+"
    template = f"acc {operator} v" if dtype.is_float else f"({{t}})(({{w}})acc {operator} ({{w}})v)"
    sheet.line(f"{dtype.c} acc = {int(op.product)};")
    with sheet.loop("k", extent):
        place = c.Expr(f"({extent} - 1 - k)" if op.reverse else "k")
        at = c.Expr(first) + place * stride
        sheet.line(f"const {dtype.c} v = {sheet.x(0)}[{at}];")
        lines = [f"acc = {fill(sheet, template, dtype, {})};", f"{sheet.y()}[{at}] = acc;"]
        for line in reversed(lines) if op.exclusive else lines:
            sheet.line(line)


register_kernels(Cumulative, CumulativeLoops(), CumulativeAnyAxis())


@onnx_op("CumSum", "CumProd")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, axis = node.input(0), node.input(1)
    product = node.op_type == "CumProd"
    op = Cumulative(0, product, bool(node.attr("exclusive", 0)), bool(node.attr("reverse", 0)))
    if not axis.is_constant:
        return [build.add1(op, [x, axis])]
    known = normalized([int(axis.value.reshape(()))], len(x.shape))[0]
    return [build.add1(replace(op, axis=known), [x])]


@tflite_op("CUMSUM")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, options = node.input(0), node.options
    axis = normalized([int(node.const(1).reshape(()))], len(x.shape))[0]
    return [build.add1(Cumulative(axis, False, options.Exclusive(), options.Reverse()), [x])]


@onnx_writer(Cumulative)
def write_onnx(op: Cumulative, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    if op.product:
        raise UnsupportedError("a cumulative product cannot be written as ONNX that onnxruntime computes")
    axis = x[1] if len(x) > 1 else out.constant(np.asarray(op.axis, np.int64), "axis")
    out.node("CumSum", [x[0], axis], y, exclusive=int(op.exclusive), reverse=int(op.reverse))
