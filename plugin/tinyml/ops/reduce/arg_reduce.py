# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ArgReduce: the index of the largest or smallest element along an axis, which stays with extent 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyml.ir import Array, DType, Layer, Tensor, TensorType, given
from tinyml.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axes import AlongAxis, Split, kept_shape, onnx_axis
from tinyml.ops.shared.axis import from_front
from tinyml.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op


@dataclass(frozen=True)
class ArgReduce(AlongAxis):
    """Of equal elements the first one counts, or the last. Stored integers have the order of reals."""

    largest: bool = True
    last: bool = False
    dtype: DType = DType.INT64

    def label(self) -> str:
        return "argmax" if self.largest else "argmin"

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType(kept_shape(given(inputs, 0).shape, (self.axis,)), self.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        find = np.argmax if self.largest else np.argmin
        if self.last:
            found = x.shape[self.axis] - 1 - find(np.flip(x, self.axis), axis=self.axis, keepdims=True)
        else:
            found = find(x, axis=self.axis, keepdims=True)
        return (found.astype(self.dtype.numpy),)


class ArgReduceLoops(Kernel[ArgReduce]):
    """One comparison per element."""

    name = "arg-reduce loops"

    def emit(self, layer: Layer[ArgReduce], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        split = Split(x.shape, (op.axis,))
        compare = (">" if op.largest else "<") + ("=" if op.last else "")
        with sheet.loops(split.outer()) as index:
            element, best = (f"{sheet.x()}[{split.at(index['x'], step)}]" for step in ("k", "best"))
            sheet.line("int32_t best = 0;")
            with (
                sheet.block(f"for (int32_t k = 1; k < {x.shape[op.axis]}; k++) {{"),
                sheet.block(f"if ({element} {compare} {best}) {{"),
            ):
                sheet.line("best = k;")
            value = "best" if op.dtype is DType.INT32 else f"({op.dtype.c})best"
            sheet.line(f"{sheet.y()}[{index['y']}] = {value};")


register_kernels(ArgReduce, ArgReduceLoops())


@onnx_op("ArgMax", "ArgMin")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axis = onnx_axis(node, len(x.shape), 0)
    op = ArgReduce(axis, node.op_type == "ArgMax", bool(node.attr("select_last_index", 0)))
    y = build.add1(op, [x])
    if node.attr("keepdims", 1):
        return [y]
    return [build.add1(Reshape(tuple(e for i, e in enumerate(x.shape) if i != axis)), [y])]


@tflite_op("ARG_MAX", "ARG_MIN")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axis = from_front(node.const(1).reshape(()).item(), len(x.shape))
    y = build.add1(ArgReduce(axis, node.op_type == "ARG_MAX", dtype=node.outputs[0].dtype), [x])
    return [build.add1(Reshape(tuple(e for i, e in enumerate(x.shape) if i != axis)), [y])]
