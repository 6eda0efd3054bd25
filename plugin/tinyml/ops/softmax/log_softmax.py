# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""LogSoftmax: the logarithm of softmax, without ever computing the quotient."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Tensor, TensorType, given
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.framework.play_loops import played_rows
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.reduce.reduce import largest
from tinyml.ops.shared.axes import AlongAxis, Split, flattened_before_13, inner_loop
from tinyml.ops.shared.constraints import real_numbers
from tinyml.ops.shared.real import in_real_numbers


@dataclass(frozen=True)
class LogSoftmax(AlongAxis):
    """x - max - log(sum(exp(x - max))) along ``axis``."""

    depends_on_cpu = True

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        below = x - x.max(axis=self.axis, keepdims=True)
        return (below - np.log(np.exp(below).sum(axis=self.axis, keepdims=True)),)


class LogSoftmaxLoops(InPlace[LogSoftmax]):
    """Three passes: the largest, the sum of exponentials, the differences."""

    name = "log-softmax loops"
    constraints = (real_numbers,)

    def emit(self, layer: Layer[LogSoftmax], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        split = Split(x.shape, (op.axis,))
        kind, exp, log = x.dtype.c, sheet.maths("exp", x.dtype), sheet.maths("log", x.dtype)
        with sheet.loops(split.outer()) as index:
            largest(sheet, split, index["x"], x.dtype, "top")
            sheet.line(f"{kind} sum = 0;")
            with inner_loop(sheet, split, index["x"]) as place:
                sheet.line(f"sum += {exp}({sheet.x()}[{place}] - top);")
            sheet.line(f"const {kind} norm = {log}(sum);")
            with inner_loop(sheet, split, index["x"]) as place:
                sheet.line(f"{sheet.y()}[{place}] = {sheet.x()}[{place}] - top - norm;")

    def play(self, layer: Layer[LogSoftmax], sheet: Sheet) -> None:
        x = layer.input(0)
        if x.dtype is not DType.FLOAT32 or not x.elements:
            raise NotPlayableError(f"the player has no log-softmax of {x.dtype.value}")
        sheet.note("tinyml_play_log_softmax_f32", played_rows(x.shape, layer.op.axis), sheet.x(), sheet.y())


register_kernels(LogSoftmax, LogSoftmaxLoops())


@onnx_op("LogSoftmax")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [flattened_before_13(node, build, lambda x, axis: build.add1(LogSoftmax(axis), [x]))]


@tflite_op("LOG_SOFTMAX")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    return [in_real_numbers(build, LogSoftmax(len(x.shape) - 1), [x], node.outputs[0])]


@onnx_writer(LogSoftmax)
def write_onnx(op: LogSoftmax, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("LogSoftmax", x, y, axis=op.axis)
