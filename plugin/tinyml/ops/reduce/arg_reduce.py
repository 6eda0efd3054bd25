# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ArgReduce: the index of the largest or smallest element along an axis, which stays with extent 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_loops import nests
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, element_type, onnx_writer
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axes import AlongAxis, Split, kept_shape, onnx_axis
from tinyml.ops.shared.axis import from_front


@dataclass(frozen=True)
class ArgReduce(AlongAxis):
    """Of equal elements the first one counts, or the last. Stored integers have the order of reals."""

    largest: bool = True
    last: bool = False
    dtype: DType = DType.INT64

    def label(self) -> str:
        return "argmax" if self.largest else "argmin"

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        return None if axis == self.axis % len(layer.input(0).shape) else (axis,)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType(kept_shape(given(inputs, 0).shape, (self.axis,)), self.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (best_places(given(inputs, 0), self.axis, self.largest, self.last).astype(self.dtype.numpy),)


def best_places(x: Array, axis: int, largest: bool = True, last: bool = False) -> Array:
    """The indices of the largest (or smallest) elements. A comparison with NaN is false, as it is in C."""
    if x.dtype.kind == "f" and bool(np.isnan(x).any()):
        better = {(True, False): np.greater, (True, True): np.greater_equal, (False, False): np.less}
        compare = better.get((largest, last), np.less_equal)

        def walk(row: Array) -> int:
            best = 0
            for k in range(1, len(row)):
                best = k if compare(row[k], row[best]) else best
            return best

        return np.expand_dims(np.apply_along_axis(walk, axis, x), axis)
    find = np.argmax if largest else np.argmin
    if last:
        return np.asarray(x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis, keepdims=True))
    return np.asarray(find(x, axis=axis, keepdims=True))


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
                sheet.loop("k", x.shape[op.axis], start=1),
                sheet.block(f"if ({element} {compare} {best}) {{"),
            ):
                sheet.line("best = k;")
            value = "best" if op.dtype is DType.INT32 else f"({op.dtype.c})best"
            sheet.line(f"{sheet.y()}[{index['y']}] = {value};")

    def play(self, layer: Layer[ArgReduce], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        if x.dtype not in PLAYED or op.dtype not in (DType.INT32, DType.INT64) or x.elements == 0:
            raise NotPlayableError(f"the player has no {op.label()} of {x.dtype.value}")
        loops = nests(x.shape, (op.axis,))
        members = {
            **{name: value for name, value in loops.items() if not name.startswith(".inner")},
            ".depth": x.shape[op.axis],
            ".step": c.contiguous(x.shape)[op.axis],
            ".from": x.dtype.code,
            ".to": op.dtype.code,
            ".largest": int(op.largest),
            ".last": int(op.last),
        }
        sheet.note("tinyml_play_arg_reduce", members, sheet.x(), sheet.y())


PLAYED = (DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.INT32)

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


@onnx_writer(ArgReduce)
def write_onnx(op: ArgReduce, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    whole = y if op.dtype is DType.INT64 else ""
    name = "ArgMax" if op.largest else "ArgMin"
    best = out.node(name, x, whole, axis=op.axis, keepdims=1, select_last_index=int(op.last))
    if op.dtype is not DType.INT64:
        out.node("Cast", [best], y, to=element_type(op.dtype))
