# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Power: a raised to b. The result has the type of a, whatever the type of b."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.element_loops import (
    ElementwiseKernel,
    broadcast,
    broadcasting,
    emit_loops,
    suffix,
)
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.kernel import Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.operands import present


@dataclass(frozen=True)
class Power(Op):
    """Whole numbers to whole powers exactly, wrapping; everything else in floating point."""

    operands = (present(2), broadcasting)
    depends_on_cpu = True

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType(broadcast(inputs), given(inputs, 0).dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        a, b = given(inputs, 0), given(inputs, 1)
        dtype = layer.output.dtype
        with np.errstate(all="ignore"):
            if dtype.is_float:
                return (np.power(a, b.astype(a.dtype)),)
            if b.dtype.kind == "f":
                real = np.power(a.astype(np.float64), b.astype(np.float64))
                return (np.clip(np.nan_to_num(np.trunc(real)), *dtype.limits).astype(a.dtype),)
            a, b = np.broadcast_arrays(a, b)
            whole = [_whole_power(int(x), int(n)) for x, n in zip(a.flat, b.flat, strict=True)]
            modulo = 1 << (8 * dtype.bytes)
            unsigned = np.array([value % modulo for value in whole], f"u{dtype.bytes}")
            return (unsigned.view(dtype.numpy).reshape(a.shape),)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self if len(layer.output.shape) == len(perm) else None


def _whole_power(base: int, exponent: int) -> int:
    if exponent >= 0:
        return pow(base, exponent, 1 << 64)
    return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)


class PowerLoops(ElementwiseKernel[Power]):
    """pow() for real numbers, repeated squaring for whole ones."""

    name = "power loops"

    def emit(self, layer: Layer[Power], sheet: Sheet) -> None:
        a, b = layer.input(0).dtype, layer.input(1).dtype

        def value(operands: Sequence[str]) -> str:
            base, exponent = operands
            if a.is_float:
                same = exponent if a is b else f"({a.c}){exponent}"
                return f"{sheet.maths('pow', a)}({base}, {same})"
            if b.is_float:
                pow_ = sheet.maths("pow", DType.FLOAT64)
                return f"tinyml_{a.value}_from_double({pow_}((double){base}, (double){exponent}))"
            wide = DType.INT64 if a.bytes == 8 or b.bytes == 8 or not b.is_signed else DType.INT32
            if not a.is_signed and not b.is_signed:
                wide = DType.UINT64 if 8 in (a.bytes, b.bytes) else DType.UINT32
            return f"({a.c})tinyml_pow_{suffix(wide)}(({wide.c}){base}, ({wide.c}){exponent})"

        emit_loops(layer, sheet, value)


register_kernels(Power, PowerLoops())


@onnx_op("Pow")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    a, b = node.input(0), node.input(1)
    if a.dtype.is_float and b.is_constant and b.elements == 1 and len(b.shape) <= len(a.shape):
        exponent = float(b.value.reshape(()))
        if exponent == 1.0:
            return [a]
        if exponent == 2.0:
            return [build.add1(Binary("mul"), [a, a])]
        if exponent == 0.5:
            return [build.add1(Unary("sqrt"), [a])]
    return [build.add1(Power(), [a, b])]


@tflite_op("POW")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(Power(), [node.input(0), node.input(1)], node.outputs[0])]


@onnx_writer(Power)
def write_onnx(op: Power, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("Pow", x, y)
