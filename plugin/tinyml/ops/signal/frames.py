# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow Lite Micro does around a Fourier transform in int16: window, scaling, energy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import InPlace, Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_custom_op
from tinyml.ops.shared.flexbuffer_options import option
from tinyml.ops.shared.operands import at_least_rank, not_empty, numbers_from, of_rank, of_type, present


def one_weight_per_sample(layer: Layer[Window]) -> bool:
    """There is one weight for each number of the last axis."""
    return layer.input(1).shape == layer.input(0).shape[-1:]


@dataclass(frozen=True)
class Window(Op):
    """Samples times weights, shifted to the right, limited to int16."""

    operands = (
        present(2),
        at_least_rank(0, 1),
        not_empty(0),
        of_type(0, DType.INT16),
        of_type(1, DType.INT16),
        one_weight_per_sample,
    )
    shift: int = 0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        products = given(inputs, 0).astype(np.int32) * given(inputs, 1).astype(np.int32)
        return ((products >> self.shift).clip(-32768, 32767).astype(np.int16),)


class WindowLoops(InPlace[Window]):
    """A product per sample."""

    name = "window loops"

    def emit(self, layer: Layer[Window], sheet: Sheet) -> None:
        length = layer.output.shape[-1]
        count = layer.output.elements // length
        with (
            sheet.loop("i", count),
            sheet.loop("k", length),
        ):
            place = f"i * {length} + k" if count > 1 else "k"
            sheet.line(f"int32_t v = ({sheet.x(0)}[{place}] * {sheet.x(1)}[k]) >> {layer.op.shift};")
            sheet.line()
            sheet.line("v = v < INT16_MIN ? INT16_MIN : v;")
            sheet.line(f"{sheet.y()}[{place}] = (int16_t)(v > INT16_MAX ? INT16_MAX : v);")


@dataclass(frozen=True)
class AutoScale(Op):
    """A signal enlarged by as many bits as are free, and the number of these bits; 0 for silence."""

    operands = (present(1), of_rank(0, 1), not_empty(0), of_type(0, DType.INT16))

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return TensorType(x.shape, x.dtype), TensorType((), DType.INT32)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0).astype(np.int32)
        largest = 0
        for value in x.tolist():
            if value > largest:
                largest = value
            elif -value > largest:
                largest = -value if value > -32768 else value  # 32768 in int16; smaller than what follows
        bits = max(15 - largest.bit_length(), 0) if largest > 0 else 0
        return (x << bits).astype(np.int16), np.array(bits, np.int32)


class AutoScaleLoops(InPlace[AutoScale]):
    """One loop for the largest number, one to enlarge."""

    name = "scaling loops"

    def emit(self, layer: Layer[AutoScale], sheet: Sheet) -> None:
        count = layer.output.elements
        sheet.line("int32_t largest = 0;")
        sheet.line()
        with sheet.loop("i", count):
            sheet.line(f"const int32_t v = {sheet.x()}[i];")
            sheet.line()
            sheet.line("/* 32768 is -32768 in int16, and less than what follows */")
            sheet.line("largest = v > largest ? v : -v > largest ? (int16_t)-v : largest;")
        sheet.line("const int32_t bits = largest > 0 ? __builtin_clz((uint32_t)largest) - 17 : 0;")
        sheet.line()
        with sheet.loop("i", count):
            sheet.line(f"{sheet.y(0)}[i] = (int16_t)({sheet.x()}[i] * (1 << bits));")
        sheet.line(f"{sheet.y(1)}[0] = bits;")


def bins_exist(layer: Layer[Energy]) -> bool:
    """Start and end count complex numbers of the input, each a pair of int16."""
    count = layer.input(0).shape[-1]
    return count % 2 == 0 and 0 <= layer.op.start <= layer.op.end <= count // 2


@dataclass(frozen=True)
class Energy(Op):
    """The squared size of complex numbers, from number ``start`` to ``end``; zero outside."""

    operands = (
        present(1),
        of_rank(0, 1),
        not_empty(0),
        of_type(0, DType.INT16),
        numbers_from(0, "start"),
        bins_exist,
    )
    start: int = 0
    end: int = 0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType((given(inputs, 0).shape[0] // 2,), DType.UINT32),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        y = (given(inputs, 0).astype(np.int64).reshape(-1, 2) ** 2).sum(axis=1).astype(np.uint32)
        bins = np.arange(len(y))
        return (np.where((bins >= self.start) & (bins < self.end), y, np.uint32(0)),)


class EnergyLoops(Kernel[Energy]):
    """Two products per complex number."""

    name = "energy loops"

    def emit(self, layer: Layer[Energy], sheet: Sheet) -> None:
        op, bins, x = layer.op, layer.output.elements, sheet.x()
        if (op.start, op.end) != (0, bins):
            sheet.include("<string.h>")
            sheet.line(f"memset({sheet.y()}, 0, {layer.output.bytes});")
        with sheet.loop("i", op.end, start=op.start):
            sheet.line(f"const int32_t re = {x}[2 * i], im = {x}[2 * i + 1];")
            sheet.line()
            sheet.line(f"{sheet.y()}[i] = (uint32_t)(re * re) + (uint32_t)(im * im);")


register_kernels(Window, WindowLoops())
register_kernels(AutoScale, AutoScaleLoops())
register_kernels(Energy, EnergyLoops())


@tflite_custom_op("SignalWindow")
def read_window(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(Window(option(node, "shift", 0, 31)), [node.input(0), node.input(1)])]


@tflite_custom_op("SignalFftAutoScale")
def read_auto_scale(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return build.add(AutoScale(), [node.input(0)])


@tflite_custom_op("SignalEnergy")
def read_energy(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """TensorFlow Lite Micro leaves the bins outside as they were; here they are 0."""
    return [build.add1(Energy(option(node, "start_index"), option(node, "end_index")), [node.input(0)])]
