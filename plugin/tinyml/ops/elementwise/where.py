# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where: one of two values, element by element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.elementwise.element_loops import ElementwiseKernel, broadcast, broadcasting, emit_loops
from tinyml.ops.framework.kernel import Sheet, register_kernels
from tinyml.ops.framework.play_loops import array, merged
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.quantization.requantize import rescaled
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.operands import present, same_type


@dataclass(frozen=True)
class Where(Op):
    """y = condition ? a : b, with broadcasting."""

    operands = (present(3), broadcasting, same_type(1, 2))

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        return (len(layer.output.shape) - len(layer.input(index).shape) + axis,)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        a = given(inputs, 1)
        return (TensorType(broadcast(inputs), a.dtype, a.quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (np.where(given(inputs, 0), given(inputs, 1), given(inputs, 2)),)

    def identity_of(self, layer: Layer) -> int | None:
        """A condition that is known and everywhere the same chooses one of both."""
        condition = layer.input(0).data
        if condition is None or not condition.size or not (condition == condition.flat[0]).all():
            return None
        chosen = 1 if condition.flat[0] else 2
        same = layer.input(chosen).type == layer.output.type
        return chosen if same else None

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self if len(layer.output.shape) == len(perm) else None

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        a, b, y = given(inputs, 1), given(inputs, 2), outputs[0]
        same = a.quant == b.quant == y.quant and a.dtype is b.dtype is y.dtype
        return (self, inputs) if same else None


def truth_and_equals(layer: Layer) -> bool:
    """The condition is bool, and both values have the type and quantisation of the output."""
    y = layer.output
    values = (layer.input(1), layer.input(2))
    return layer.input(0).dtype is DType.BOOL and all(
        t.dtype is y.dtype and t.quant == y.quant for t in values
    )


class WhereLoops(ElementwiseKernel[Where]):
    """A conditional inside a loop nest."""

    name = "where loops"
    constraints = (truth_and_equals,)

    def emit(self, layer: Layer[Where], sheet: Sheet) -> None:
        emit_loops(layer, sheet, lambda operands: "{} ? {} : {}".format(*operands))

    def play(self, layer: Layer[Where], sheet: Sheet) -> None:
        y = layer.output
        if y.elements == 0:
            return
        strides = [c.broadcast_strides(layer.input(i).shape, y.shape) for i in range(3)]
        extents, (truth, a, b, _) = merged(y.shape, *strides, c.contiguous(y.shape))
        members = {
            **array("extents", extents, 1),
            **array("steps", truth, 0),
            **array("a_steps", a, 0),
            **array("b_steps", b, 0),
            ".bytes": y.dtype.bytes,
        }
        sheet.note("tinyml_play_where", members, *(sheet.x(i) for i in range(3)), sheet.y())


register_kernels(Where, WhereLoops())


quantizes("Where", one_scale=True)


@onnx_op("Where")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(Where(), [node.input(0), node.input(1), node.input(2)])]


@tflite_op("SELECT", "SELECT_V2")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    condition, output = node.input(0), node.outputs[0]
    a, b = (rescaled(build, node.input(i), output) for i in (1, 2))
    if node.op_type == "SELECT" and len(condition.shape) == 1 < len(a.shape):  # chooses whole rows
        condition = build.add1(Reshape((*condition.shape, *[1] * (len(a.shape) - 1))), [condition])
    return [build.add1(Where(), [condition, a, b], output)]


@onnx_writer(Where)
def write_onnx(op: Where, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("Where", x, y)
