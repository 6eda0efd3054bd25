"""Binary: element-wise operators with two operands and broadcasting. One row of a table each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tinyml import c
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.kernel import Kernel, Sheet, register_kernels
from tinyml.reading import Builder, OnnxNode, onnx_op


@dataclass(frozen=True)
class Function:
    """What one operator does: in numpy, and as a C expression of ``a`` and ``b``."""

    numpy: Callable[[Array, Array], Array]
    c: str


FUNCTIONS = {
    "add": Function(np.add, "{a} + {b}"),
    "sub": Function(np.subtract, "{a} - {b}"),
    "mul": Function(np.multiply, "{a} * {b}"),
}


@dataclass(frozen=True)
class Binary(Op):
    """y = function(a, b) on float or plain integer tensors."""

    function: str = "add"

    def label(self) -> str:
        return self.function

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        a, b = given(inputs, 0), given(inputs, 1)
        return (TensorType(np.broadcast_shapes(a.shape, b.shape), a.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        a, b = given(inputs, 0), given(inputs, 1)
        return (FUNCTIONS[self.function].numpy(a, b).astype(layer.output.dtype.numpy),)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self if len(layer.output.shape) == len(perm) else None

    def overwrites(self, layer: Layer) -> tuple[int, ...]:
        y = layer.output
        return tuple(i for i in (0, 1) if layer.input(i).shape == y.shape and layer.input(i).dtype == y.dtype)


class BinaryLoops(Kernel):
    """The expression inside a loop nest."""

    name = "element-wise loops"

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op, y = layer.op, layer.output
        assert isinstance(op, Binary)
        walks = {
            "a": c.Walk(c.broadcast_strides(layer.input(0).shape, y.shape)),
            "b": c.Walk(c.broadcast_strides(layer.input(1).shape, y.shape)),
            "y": c.Walk(c.contiguous(y.shape)),
        }
        with sheet.loops(c.nest(y.shape, walks)) as index:
            a, b = f"{sheet.x(0)}[{index['a']}]", f"{sheet.x(1)}[{index['b']}]"
            value = FUNCTIONS[op.function].c.format(a=a, b=b)
            if y.dtype is not DType.FLOAT32:
                value = f"({y.dtype.c})({value})"
            sheet.line(f"{sheet.y()}[{index['y']}] = {value};")


register_kernels(Binary, BinaryLoops())


@onnx_op("Add", "Sub", "Mul")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(Binary(node.op_type.lower()), [node.input(0), node.input(1)])]
