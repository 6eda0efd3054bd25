# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""OneHot: a new axis that is ``on`` at the index and ``off`` elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.axes import count
from tinyml.ops.shared.axis import from_front
from tinyml.ops.shared.operands import integers, numbers_from, present


def two_values(layer: Layer[OneHot]) -> bool:
    """The second input holds two values, and the new axis is before, between or after the others."""
    return layer.input(1).shape == (2,) and 0 <= layer.op.axis <= len(layer.input(0).shape)


@dataclass(frozen=True)
class OneHot(Op):
    """Inputs: int64 indices and the two values, off and on. An index out of range leaves all off.

    Negative indices count from the end in ONNX; in TFLite they are out of range.
    """

    operands = (present(2), integers(0), two_values, numbers_from(0, "depth"))
    depth: int = 1
    axis: int = 0
    from_end: bool = True

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (-self.depth - 2, self.depth + 1) if index == 0 else None  # also those that set no class

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        shape = given(inputs, 0).shape
        return (TensorType((*shape[: self.axis], self.depth, *shape[self.axis :]), given(inputs, 1).dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        indices, (off, on) = given(inputs, 0), given(inputs, 1)
        wanted = np.where(indices < 0, indices + self.depth, indices) if self.from_end else indices
        classes = np.arange(self.depth).reshape(-1, *(1,) * (indices.ndim - self.axis))
        hot = np.expand_dims(wanted, self.axis) == classes
        return (np.where(hot, on, off).astype(layer.output.dtype.numpy),)


class OneHotLoops(Kernel[OneHot]):
    """Set everything off, then one element on; an index out of range leaves all off."""

    name = "one-hot loops"

    def emit(self, layer: Layer[OneHot], sheet: Sheet) -> None:
        op, shape = layer.op, layer.output.shape
        before, after = count(shape, range(op.axis)), count(shape, range(op.axis + 1, len(shape)))
        x, values, y = sheet.x(0), sheet.x(1), sheet.y()
        hot = "hot" if op.from_end else "index"
        with (
            sheet.loop("i", before),
            sheet.loop("j", after),
        ):
            sheet.line(f"const int64_t index = {x}[i * {after} + j];")
            if op.from_end:
                sheet.line(f"const int64_t hot = index < 0 ? index + {op.depth} : index;")
            sheet.line()
            with sheet.loop("k", op.depth):
                sheet.line(f"{y}[(i * {op.depth} + k) * {after} + j] = {values}[k == {hot} ? 1 : 0];")


register_kernels(OneHot, OneHotLoops())


@onnx_op("OneHot")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    indices, values = node.input(0), node.input(2)
    depth = int(node.const(1).reshape(-1)[0])
    rank = len(indices.shape) + 1
    axis = from_front(int(node.attr("axis", -1)), rank)
    whole = cast(build, indices, DType.INT64)
    return [build.add1(OneHot(depth, axis), [whole, values])]


@tflite_op("ONE_HOT")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    indices, axis = cast(build, node.input(0), DType.INT64), node.options.Axis()
    depth = int(node.const(1).reshape(()))
    values = build.constant(np.stack([node.const(3).reshape(()), node.const(2).reshape(())]))
    axis = len(indices.shape) if axis == -1 else axis
    return [build.add1(OneHot(depth, axis, from_end=False), [indices, values])]


@onnx_writer(OneHot)
def write_onnx(op: OneHot, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    indices = x[0]
    if not op.from_end:  # an index before the first class is none; ONNX counts it from the end
        none = out.constant(np.asarray(op.depth, np.int64), "none")
        before = out.node("Less", [indices, out.constant(np.asarray(0, np.int64), "zero")])
        indices = out.node("Where", [before, none, indices])
    depth = out.constant(np.asarray(op.depth, np.int64), "depth")
    out.node("OneHot", [indices, depth, x[1]], y, axis=op.axis)
