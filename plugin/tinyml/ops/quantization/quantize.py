# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Quantize and Dequantize: conversions between real numbers and integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, DType, Layer, Op, Quant, Tensor, TensorType, given
from tinyml.ir.hook_types import RowWindow
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import InPlace, Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.shared.operands import present
from tinyml.ops.shared.quant import dequantize, quant_of

IDENTITY = Quant((1.0,), (0,))


@dataclass(frozen=True)
class Quantize(Op):
    """Real numbers to integers: round(x / scale) + zero_point, saturated.

    ONNX rounds halves to even, TFLite away from zero.
    """

    operands = (present(1),)
    elementwise: ClassVar[bool] = True
    dtype: DType = DType.INT8
    quant: Quant = IDENTITY
    halves_to_even: bool = True

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, self.dtype, self.quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        scales = np.asarray(self.quant.scales, np.float32)
        zero_points = np.asarray(self.quant.zero_points, np.float64)
        if self.quant.axis is not None:
            shape = [1] * x.ndim
            shape[self.quant.axis] = -1
            scales, zero_points = scales.reshape(shape), zero_points.reshape(shape)
        steps = x.astype(np.float32) / scales
        rounded = np.rint(steps) if self.halves_to_even else fp.round_half_away(steps)
        low, high = self.dtype.limits
        return (np.clip(rounded.astype(np.float64) + zero_points, low, high).astype(self.dtype.numpy),)

    def row_window(self, layer: Layer, axis: int) -> RowWindow | None:
        per_row = self.quant.axis == axis
        return None if per_row else RowWindow.row_by_row(layer.output.shape[axis])

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        if self.quant.axis is None:
            return self
        return replace(self, quant=replace(self.quant, axis=perm.index(self.quant.axis)))


@dataclass(frozen=True)
class Dequantize(Op):
    """Integers to real numbers: scale * (x - zero_point), with the quantisation of the input tensor."""

    operands = (present(1),)
    elementwise: ClassVar[bool] = True
    folds: ClassVar[bool] = False  # the QDQ fusion must see the integers first

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, DType.FLOAT32),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (dequantize(given(inputs, 0), quant_of(layer.input(0))),)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self


def float_input(layer: Layer) -> bool:
    """The input is float32."""
    return layer.input(0).dtype is DType.FLOAT32


def per_tensor_output(layer: Layer) -> bool:
    """The output is quantised per tensor."""
    return layer.output.quant is not None and not layer.output.quant.per_channel


def per_tensor_input(layer: Layer) -> bool:
    """The input is quantised per tensor."""
    return layer.input(0).quant is not None and not quant_of(layer.input(0)).per_channel


class QuantizeKernel(InPlace[Quantize]):
    """One division, one rounding, one clamp per element."""

    name = "quantize loop"
    in_bands = True
    constraints: ClassVar[tuple[Constraint, ...]] = (float_input, per_tensor_output)

    def emit(self, layer: Layer[Quantize], sheet: Sheet) -> None:
        walk = c.Walk(c.contiguous(layer.output.shape))
        with sheet.loops(c.nest(layer.output.shape, {"i": walk})) as index:
            self.emit_element(layer, sheet, str(index["i"]))

    def emit_element(self, layer: Layer[Quantize], sheet: Sheet, i: str) -> None:
        op = layer.op
        low, high = op.dtype.limits
        sheet.include("<tinyml/quantize.h>")
        function = "tinyml_quantize_even" if op.halves_to_even else "tinyml_quantize_away"
        arguments = f"{sheet.number(op.quant.scale)}, {op.quant.zero_point}, {low}, {high}"
        sheet.line(f"{sheet.y()}[{i}] = ({op.dtype.c}){function}({sheet.x()}[{i}], {arguments});")

    def play(self, layer: Layer[Quantize], sheet: Sheet) -> None:
        if layer.op.dtype.bytes != 1 and layer.op.dtype is not DType.INT16:
            self.emit(layer, sheet)
            return
        self.play_elements(layer, sheet, 0, layer.output.elements)

    def play_elements(self, layer: Layer[Quantize], sheet: Sheet, first: int, count: int) -> None:
        op = layer.op
        low, high = op.dtype.limits
        members = {
            ".count": count,
            ".scale": sheet.number(op.quant.scale),
            ".zero": op.quant.zero_point,
            ".out_min": low,
            ".out_max": high,
            ".to_even": int(op.halves_to_even),
        }
        kind = "bytes" if op.dtype.bytes == 1 else "s16"
        places = (sheet.element(name, first, 0) for name in (sheet.x(), sheet.y()))
        sheet.note(f"tinyml_play_quantize_{kind}", members, *places)


KINDS = {DType.INT8: "s8", DType.UINT8: "u8", DType.INT16: "s16"}


def int8_or_int16(layer: Layer) -> bool:
    """The output is int8 or int16."""
    return layer.output.dtype in (DType.INT8, DType.INT16)


WORTHWHILE = 32  # elements: below, the function takes more flash than it saves


def many_elements(layer: Layer) -> bool:
    """The tensor has 32 elements or more."""
    return layer.output.elements >= WORTHWHILE


def ordinary_scale(layer: Layer) -> bool:
    """The scale is from 2⁻⁶⁰ to 2⁶⁰."""
    return 2.0**-60 <= quant_of(layer.output).scale <= 2.0**60


class QuantizeFourFloats(QuantizeKernel):
    """Four elements at a time: conversions of the FPU, or of Helium, that round as the operator does.

    The last elements, fewer than four, are a loop in the model's own C, so that others do not link one.
    """

    name = "tinyml_quantize_f32"
    library = Library.PORTABLE
    sources = ("quantization/quantize_f32.c",)
    constraints = (*QuantizeKernel.constraints, int8_or_int16, many_elements, ordinary_scale)
    for_few = QuantizeKernel()

    def runs_on(self, target: Target) -> bool:
        return target.dsp and target.fpu

    def functions(self, layer: Layer[Quantize]) -> tuple[str, ...]:
        return (self._function(layer),)

    def emit(self, layer: Layer[Quantize], sheet: Sheet) -> None:
        whole, rest = self._parts(layer)
        sheet.include("<tinyml/quantize_f32.h>")
        name = sheet.record("struct tinyml_quantize_f32", "params", self._members(layer, sheet))
        sheet.call(self._function(layer), name, sheet.x(), sheet.y())
        if rest:
            with sheet.loop("i", rest):
                self.emit_element(layer, sheet, f"{whole} + i")

    def _function(self, layer: Layer[Quantize]) -> str:
        way = "even" if layer.op.halves_to_even else "away"
        return f"tinyml_quantize_{way}_f32_{KINDS[layer.op.dtype]}"

    def play(self, layer: Layer[Quantize], sheet: Sheet) -> None:
        whole, rest = self._parts(layer)
        sheet.note(self._function(layer), self._members(layer, sheet), sheet.x(), sheet.y())
        if rest:
            self.play_elements(layer, sheet, whole, rest)

    def _parts(self, layer: Layer[Quantize]) -> tuple[int, int]:
        """The elements that the function takes, and the others."""
        rest = layer.output.elements % 4
        return layer.output.elements - rest, rest

    def _members(self, layer: Layer[Quantize], sheet: Sheet) -> dict[str, object]:
        quant = layer.op.quant
        count, _ = self._parts(layer)
        return {".count": count, ".zero": quant.zero_point, ".scale": sheet.number(quant.scale)}


class DequantizeKernel(Kernel[Dequantize]):
    """One subtraction and one multiplication per element."""

    name = "dequantize loop"
    constraints = (per_tensor_input,)

    def emit(self, layer: Layer[Dequantize], sheet: Sheet) -> None:
        quant = quant_of(layer.input(0))
        walk = c.Walk(c.contiguous(layer.output.shape))
        with sheet.loops(c.nest(layer.output.shape, {"i": walk})) as index:
            i = index["i"]
            stored = f"{sheet.x()}[{i}]"
            centred = f"({stored} - {sheet.number(quant.zero_point, DType.INT32)})"
            sheet.line(f"{sheet.y()}[{i}] = {sheet.number(quant.scale)} * (float){centred};")

    def play(self, layer: Layer[Dequantize], sheet: Sheet) -> None:
        x, quant = layer.input(0), quant_of(layer.input(0))
        kind = KINDS.get(x.dtype)
        if kind is None:
            self.emit(layer, sheet)
            return
        members = {
            ".count": x.elements,
            ".scale": sheet.number(quant.scale),
            ".zero": quant.zero_point,
        }
        sheet.note(f"tinyml_play_dequantize_{kind}", members, sheet.x(), sheet.y())


register_kernels(Quantize, QuantizeFourFloats(), QuantizeKernel())
register_kernels(Dequantize, DequantizeKernel())


@tflite_op("DEQUANTIZE")
def read_tflite_dequantize(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    if x.dtype.is_float:  # float16 weights arrive here already widened
        return [x]
    if x.is_constant and x.quant is not None:
        return [build.constant(dequantize(x.value, x.quant), node.name)]
    return [build.add1(Dequantize(), [x])]
