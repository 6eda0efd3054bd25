# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Softmax: exp(beta * x) divided by its sum along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tinyml.base import c
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.elementwise import lookup
from tinyml.ops.framework.kernel import InPlace, Library, Sheet, register_kernels
from tinyml.ops.framework.play_loops import played_rows
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.work import Work
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.axes import flattened_before_13
from tinyml.ops.shared.constraints import real_numbers
from tinyml.ops.shared.operands import axis_exists, present
from tinyml.ops.shared.real import in_real_numbers
from tinyml.ops.softmax import int8, int16
from tinyml.ops.softmax.exp_table import SoftmaxTable


@dataclass(frozen=True)
class Softmax(Op):
    """Along ``axis``; the largest element is subtracted first to avoid overflow."""

    operands = (present(1), axis_exists)
    depends_on_cpu = True
    axis: int = -1
    beta: float = 1.0

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        return None if axis == self.axis % len(layer.input(0).shape) else (axis,)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        if layer.output.quant is not None:
            form = int16 if layer.output.dtype is DType.INT16 else int8
            return (form.evaluate(layer, self.beta, x),)
        exps = np.exp((x - x.max(axis=self.axis, keepdims=True)) * x.dtype.type(self.beta))
        return ((exps / exps.sum(axis=self.axis, keepdims=True)).astype(x.dtype),)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        rank = len(layer.output.shape)
        if rank != len(perm):
            return None
        axis = list(perm).index(self.axis % rank)
        if layer.output.quant is not None and axis != rank - 1:
            return None  # the integer forms know only the last axis
        return replace(self, axis=axis)

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        """With exp as a table: closer to the real function than TFLite's arithmetic, and quicker."""
        x, y = inputs[0], outputs[0]
        if int16.has_integer_form(x, y):
            return (self, inputs) if self.axis in (-1, len(y.shape) - 1) else None
        if x is None or not lookup.takes(x, y):
            return None
        return SoftmaxTable(self.axis % len(y.shape), self.beta), inputs


def integer_form(layer: Layer[Softmax]) -> bool:
    """Input and output are int8; the output has scale 1/256 and zero point -128; rows have at most 4,095
    elements."""
    return int8.has_integer_form(layer.input(0), layer.output, layer.op.beta)


def last_axis(layer: Layer[Softmax]) -> bool:
    """The axis is the last one."""
    return layer.op.axis in (-1, len(layer.output.shape) - 1)


class SoftmaxInt8(InPlace[Softmax]):
    """Fixed-point exponentials in portable C."""

    name = "tinyml_softmax_s8"
    library = Library.PORTABLE
    sources = ("softmax/softmax_s8.c",)
    constraints = (integer_form, last_axis)

    def emit(self, layer: Layer[Softmax], sheet: Sheet) -> None:
        int8.emit(layer, layer.op.beta, sheet)

    def loop_counts(self, layer: Layer[Softmax], target: Target) -> Work | None:
        return int8.loop_counts(layer, layer.op.beta)


def int16_form(layer: Layer) -> bool:
    """Input and output are int16 with zero points of 0; the output has scale 2⁻¹⁵."""
    return int16.has_integer_form(layer.input(0), layer.output)


class SoftmaxInt16(InPlace[Softmax]):
    """Interpolated tables in portable C."""

    name = "tinyml_softmax_s16"
    library = Library.PORTABLE
    sources = ("softmax/softmax_s16.c",)
    constraints = (int16_form, last_axis)

    def emit(self, layer: Layer[Softmax], sheet: Sheet) -> None:
        int16.emit(layer, layer.op.beta, sheet)

    def loop_counts(self, layer: Layer[Softmax], target: Target) -> Work | None:
        rows = layer.output.elements // layer.output.shape[-1]
        return {"calls": 1, "rows": rows, "elements": layer.output.elements}


class SoftmaxLoops(InPlace[Softmax]):
    """Three passes over each row: the largest, the exponentials and their sum, the quotients."""

    name = "softmax loops"
    constraints = (real_numbers,)

    def emit(self, layer: Layer[Softmax], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        axis = op.axis % len(x.shape)
        extent, stride = x.shape[axis], c.contiguous(x.shape)[axis]
        outer = tuple(1 if i == axis else d for i, d in enumerate(x.shape))
        exp = sheet.maths("exp", x.dtype)
        kind, zero = x.dtype.c, sheet.number(0, x.dtype)
        with sheet.loops(c.nest(outer, {"row": c.Walk(c.contiguous(x.shape))})) as index:
            start = "" if index["row"] == "0" else f" + {index['row']}"
            step = "j" if stride == 1 else f"j * {stride}"
            sheet.line(f"const {kind} *from = {sheet.x()}{start};")
            sheet.line(f"{kind} *to = {sheet.y()}{start};")
            sheet.line(f"{kind} largest = from[0];")
            sheet.line(f"{kind} sum = {zero};")
            sheet.line()
            with sheet.loop("j", extent):
                sheet.line(f"largest = from[{step}] > largest ? from[{step}] : largest;")
            with sheet.loop("j", extent):
                difference = f"from[{step}] - largest"
                if op.beta != 1.0:
                    difference = f"({difference}) * {sheet.number(op.beta, x.dtype)}"
                sheet.line(f"to[{step}] = {exp}({difference});")
                sheet.line(f"sum += to[{step}];")
            with sheet.loop("j", extent):
                sheet.line(f"to[{step}] /= sum;")

    def play(self, layer: Layer[Softmax], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        axis = op.axis % len(x.shape)
        if x.dtype is not DType.FLOAT32 or not x.elements:
            self.emit(layer, sheet)
            return
        members = {**played_rows(x.shape, axis), ".beta": sheet.number(op.beta)}
        sheet.note("tinyml_play_softmax_f32", members, sheet.x(), sheet.y())


register_kernels(Softmax, SoftmaxInt8(), SoftmaxInt16(), SoftmaxLoops())


@tflite_op("SOFTMAX")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, output = node.input(0), node.outputs[0]
    op = Softmax(beta=node.options.Beta())
    if x.dtype is not output.dtype:
        raise UnsupportedError(
            f"SOFTMAX operator {node.name!r} of {x.dtype.value} gives {output.dtype.value}",
            "input and output of one type; convert the model with inputs and outputs of int8 or of int16",
        )
    whole = int8.has_integer_form(x, output, op.beta) or int16.has_integer_form(x, output)
    if output.quant is None or whole:
        return [build.add1(op, [x], output)]
    return [in_real_numbers(build, op, [x], output)]


quantizes("Softmax", scales={"int8": (1 / 256, -128), "int16": (1 / 32768, 0)}, scales_required=True)


@onnx_op("Softmax")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [flattened_before_13(node, build, partial(softmax, build))]


def softmax(build: Builder, x: Tensor, axis: int) -> Tensor:
    """Softmax of a single element is the constant 1, so its input need not be computed."""
    if x.shape[axis] == 1:
        return build.constant(np.ones(x.shape, x.dtype.numpy))
    return build.add1(Softmax(axis), [x])


@onnx_writer(Softmax)
def write_onnx(op: Softmax, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    source = x[0]
    if op.beta != 1.0:
        source = out.node("Mul", [source, out.constant(np.asarray(op.beta, np.float32), "beta")])
    out.node("Softmax", [source], y, axis=op.axis)
