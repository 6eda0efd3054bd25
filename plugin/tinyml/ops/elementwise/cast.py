# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Cast: another element type for the same numbers. BitCast: another type for the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.elementwise.element_loops import emit_loops
from tinyml.ops.framework.kernel import InPlace, Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, dtype_of, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, element_type, onnx_writer
from tinyml.ops.shared.operands import present


@dataclass(frozen=True)
class Cast(Op):
    """Real numbers are truncated towards zero and saturate."""

    operands = (present(1),)
    elementwise: ClassVar[bool] = True
    dtype: DType = DType.FLOAT32

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType(given(inputs, 0).shape, self.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (converted(given(inputs, 0), self.dtype),)

    def identity_of(self, layer: Layer) -> int | None:
        return 0 if layer.input(0).dtype is self.dtype else None

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self


def converted(x: Array, dtype: DType) -> Array:
    """``x`` as ``dtype``: what the C below computes."""
    if not dtype.is_integer or x.dtype.kind != "f":
        with np.errstate(all="ignore"):
            return x.astype(dtype.numpy)
    low, high = dtype.limits
    whole = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=2.0**70, neginf=-(2.0**70)))
    inside = np.where((whole > low) & (whole < high), whole, 0).astype(dtype.numpy)
    return np.where(whole <= low, low, np.where(whole >= high, high, inside)).astype(dtype.numpy)


def as_many_bytes(layer: Layer[Any]) -> bool:
    """The new type has elements of the same size."""
    return bool(layer.input(0).dtype.bytes == layer.op.dtype.bytes)


@dataclass(frozen=True)
class BitCast(Op):
    """The bytes stay as they are."""

    operands = (present(1), as_many_bytes)
    dtype: DType = DType.FLOAT32

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType(given(inputs, 0).shape, self.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = np.ascontiguousarray(given(inputs, 0))
        return (x.reshape(-1).view(self.dtype.numpy).reshape(layer.output.shape),)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self


class CastLoop(InPlace[Cast]):
    """One conversion per element."""

    name = "cast loop"
    in_bands = True

    def emit(self, layer: Layer[Cast], sheet: Sheet) -> None:
        x, y = layer.input(0).dtype, layer.output.dtype

        def value(operands: Sequence[str]) -> str:
            if y is DType.BOOL:
                return f"{operands[0]} != 0"
            if y.is_integer and x.is_float:
                return f"tinyml_{y.value}_from_{x.c}({operands[0]})"
            return f"({y.c}){operands[0]}"

        emit_loops(layer, sheet, value)

    def play(self, layer: Layer[Cast], sheet: Sheet) -> None:
        x, y = layer.input(0).dtype, layer.output.dtype
        if DType.FLOAT64 in (x, y) or DType.UINT64 in (x, y):
            raise NotPlayableError(f"the player has no cast from {x.value} to {y.value}")
        if x is y:
            copied = {".rows": 1, ".bytes": layer.output.bytes, ".from_step": 0, ".to_step": 0}
            sheet.note("tinyml_play_copy", copied, sheet.x(), sheet.y())
            return
        members = {".count": layer.output.elements, ".from": x.code, ".to": y.code}
        kind = "from_f32" if x.is_float else "to_f32" if y.is_float else "integers"
        sheet.note(f"tinyml_play_cast_{kind}", members, sheet.x(), sheet.y())


class BitCastCopy(Kernel[BitCast]):
    """One copy: C does not allow the two types to share memory."""

    name = "copy"

    def emit(self, layer: Layer[BitCast], sheet: Sheet) -> None:
        sheet.include("<string.h>")
        sheet.line(f"memcpy({sheet.y()}, {sheet.x()}, {layer.output.bytes});")

    def play(self, layer: Layer[BitCast], sheet: Sheet) -> None:
        members = {".rows": 1, ".bytes": layer.output.bytes, ".from_step": 0, ".to_step": 0}
        sheet.note("tinyml_play_copy", members, sheet.x(), sheet.y())


register_kernels(Cast, CastLoop())
register_kernels(BitCast, BitCastCopy())


def onnx_type(code: int) -> DType:
    """The element type with ONNX's number ``code``; float16 is computed in float32."""
    from onnx import TensorProto, helper

    if code == TensorProto.FLOAT16:
        return DType.FLOAT32
    if code == TensorProto.STRING:
        raise UnsupportedError("strings are not supported", "numbers and booleans are")
    return dtype_of(helper.tensor_dtype_to_np_dtype(code).name)


def cast(build: Builder, x: Tensor, dtype: DType) -> Tensor:
    """``x`` as ``dtype``; ``x`` itself if it has that type."""
    return x if x.dtype is dtype else build.add1(Cast(dtype), [x])


@onnx_op("BitCast")
def read_bit_cast(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, dtype = node.input(0), onnx_type(int(node.attr("to")))
    if x.dtype.bytes != dtype.bytes:
        raise UnsupportedError(
            f"BitCast from {x.dtype.value} to {dtype.value}", "both types must have the same size"
        )
    return [build.add1(BitCast(dtype), [x])]


@tflite_op("CAST")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return [cast(build, node.input(0), node.outputs[0].dtype)]


@onnx_writer(Cast)
def write_onnx(op: Cast, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("Cast", x, y, to=element_type(op.dtype))
