# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Int16Activation: activations on int16 tensors, in the integer arithmetic of TensorFlow Lite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Constraint, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.shared.clamped import Clamped
from tinyml.ops.shared.operands import present
from tinyml.ops.shared.quant import clamp_range, quant_of


def takes(x: Tensor, y: Tensor | TensorType) -> bool:
    """Whether input and output are int16 with zero points of 0, quantised per tensor."""
    return all(
        t.dtype is DType.INT16 and t.quant is not None and not t.quant.per_channel and not t.quant.zero_point
        for t in (x, y)
    )


def is_unit(y: Tensor | TensorType) -> bool:
    """Whether an int16 output covers [-1, 1), as that of a sigmoid in TensorFlow Lite always does."""
    return y.quant is not None and y.quant.scale == 2.0**-15


def symmetric_int16(layer: Layer) -> bool:
    """Input and output are int16 with zero points of 0."""
    return takes(layer.input(0), layer.output.type)


def of_int16(layer: Layer) -> bool:
    """The input is int16."""
    return layer.input(0).dtype is DType.INT16


@dataclass(frozen=True)
class Int16Activation(Op):
    """Base: one int16 in, one int16 out."""

    operands: ClassVar[tuple[Constraint, ...]] = (present(1), of_int16)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self


def sigmoid_table() -> Array:
    """65536 * sigmoid(i / 24), moved half way towards what makes the middle of each interval right."""

    def exact(i: Array) -> Array:
        return 65536 / (1 + np.exp(-i / 24))

    i = np.arange(256.0)
    bend = exact(i + 0.5) - (exact(i) + exact(i + 1)) / 2
    table = np.floor(exact(i) + bend / 2 + 0.5)
    table[255] = 65535
    return table.astype(np.uint16)


@dataclass(frozen=True)
class SigmoidInt16(Int16Activation):
    """The logistic function or tanh: a table of 256 values of sigmoid, interpolated. Output scale 2**-15."""

    tanh: bool = False

    def label(self) -> str:
        return "tanh" if self.tanh else "sigmoid"

    def factor(self, layer: Layer) -> tuple[int, int]:
        """Multiplier and right shift that bring the input to steps of 1 / 12288."""
        scale = quant_of(layer.input(0)).scale
        exponent = math.log2(scale)
        if exponent.is_integer() and int(exponent) + 12 in ((0, 1) if self.tanh else (0,)):
            return 3 << (int(exponent) + 12), 0
        multiplier, shift = scale * 4096.0 * 3.0, 0
        while multiplier <= 32767.0 / 2.0 and shift <= 30:
            shift += 1
            multiplier *= 2.0
        return int(multiplier), shift

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        multiplier, shift = self.factor(layer)
        half = 1 << (shift - 1) if shift else 0
        x = (given(inputs, 0).astype(np.int64) * multiplier + half) >> shift
        bits = 8 if self.tanh else 9
        size, table = np.abs(x), sigmoid_table().astype(np.int64)
        place = np.minimum(size >> bits, 254)
        step = table[place + 1] - table[place]
        found = (table[place] << bits) + (size & ((1 << bits) - 1)) * step
        beyond = (0xFFFF << 8) if self.tanh else (0x7FFF << 10)
        found = np.where(size >> bits >= 255, beyond, found)
        if self.tanh:
            y = np.where(x >= 0, found - (1 << 23) + 128, -found + (1 << 23) + 127) >> 8
        else:
            y = np.where(x >= 0, found + (1 << 9), (1 << 25) - found + (1 << 9) - 1) >> 10
        return (y.astype(np.int16),)


class SigmoidInt16Loop(InPlace[SigmoidInt16]):
    """One interpolation per element."""

    name = "sigmoid table"
    constraints = (symmetric_int16,)

    def emit(self, layer: Layer[SigmoidInt16], sheet: Sheet) -> None:
        op, y = layer.op, layer.output
        multiplier, shift = op.factor(layer)
        half = 1 << (shift - 1) if shift else 0
        table = sheet.table("sigmoid", sigmoid_table())
        sheet.include("<tinyml/sigmoid_s16.h>")
        with sheet.loops(c.nest(y.shape, {"i": c.Walk(c.contiguous(y.shape))})) as index:
            i = index["i"]
            scaled = f"((int64_t){sheet.x()}[{i}] * {multiplier} + {half}) >> {shift}"
            sheet.line(f"const int32_t v = (int32_t)({scaled});")
            sheet.line()
            sheet.line(f"{sheet.y()}[{i}] = tinyml_{op.label()}_s16_by_table(v, {table});")

    def play(self, layer: Layer[SigmoidInt16], sheet: Sheet) -> None:
        multiplier, shift = layer.op.factor(layer)
        members = {
            ".count": layer.output.elements,
            ".multiplier": multiplier,
            ".shift": shift,
            ".table": sheet.table("sigmoid", sigmoid_table()),
        }
        sheet.note(f"tinyml_play_{layer.op.label()}_s16", members, sheet.x(), sheet.y())


register_kernels(SigmoidInt16, SigmoidInt16Loop())


LARGEST_OFFSET = 1 << 29
"""In steps of the output: half of what products are limited to, so that 32 bits hold their sum."""


@dataclass(frozen=True)
class LeakyInt16(Int16Activation, Clamped):
    """Two slopes, each a fixed-point factor, within limits. Both slopes alike: a clamp."""

    alpha: float = 0.01  # below zero
    slope: float = 1.0  # above
    offset: float = 0.0
    round_once: bool = False  # halves to even, as ONNX does; else as TensorFlow Lite does

    def label(self) -> str:
        if self.alpha == self.slope:
            return "clamp" if self.slope > 0 else "neg"
        return "abs" if self.alpha == -self.slope else "leaky_relu"

    def factors(self, layer: Layer) -> tuple[tuple[int, int], tuple[int, int]]:
        """Above and below zero."""
        x, y = (np.float32(quant_of(t).scale) for t in (layer.input(0), layer.output))
        slopes = (np.float32(self.slope), np.float32(self.alpha))
        above, below = (fp.quantize_multiplier(float(x * slope / y)) for slope in slopes)
        return above, below

    def steps(self, layer: Layer) -> int:
        """The offset in steps of the output."""
        return round(self.offset / quant_of(layer.output).scale)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0).astype(np.int64)
        multiply = fp.multiply_by_quantized_multiplier
        if self.round_once:
            multiply = fp.multiply_by_quantized_multiplier_to_even
        above, below = (multiply(x, *factor) for factor in self.factors(layer))
        limits = clamp_range(self.clamp, layer.output)
        y = np.where(x >= 0, above, below) + self.steps(layer)
        return (np.clip(y, *limits).astype(np.int16),)


class LeakyInt16Loop(InPlace[LeakyInt16]):
    """One rescale per element."""

    name = "leaky relu loop"
    constraints = (symmetric_int16,)

    def emit(self, layer: Layer[LeakyInt16], sheet: Sheet) -> None:
        op, y = layer.op, layer.output
        low, high = clamp_range(op.clamp, y)
        function = "tinyml_rescale_to_even" if op.round_once else "tinyml_rescale"
        above, below = (f"{function}(v, {m}, {s})" for m, s in op.factors(layer))
        sheet.include("<tinyml/fixed_point.h>")
        with sheet.loops(c.nest(y.shape, {"i": c.Walk(c.contiguous(y.shape))})) as index:
            sheet.line(f"const int32_t v = {sheet.x()}[{index['i']}];")
            sheet.line(
                f"const int32_t scaled = {above if above == below else f'v >= 0 ? {above} : {below}'};"
            )
            sheet.line()
            value = f"scaled + {op.steps(layer)}" if op.steps(layer) else "scaled"
            sheet.line(f"{sheet.y()}[{index['i']}] = (int16_t)tinyml_clamp({value}, {low}, {high});")

    def play(self, layer: Layer[LeakyInt16], sheet: Sheet) -> None:
        op, y = layer.op, layer.output
        low, high = clamp_range(op.clamp, y)
        above, below = op.factors(layer)
        members = {
            ".count": y.elements,
            ".multiplier": above[0],
            ".below_multiplier": below[0],
            ".offset": op.steps(layer),
            ".shift": above[1],
            ".below_shift": below[1],
            ".out_min": low,
            ".out_max": high,
            ".to_even": int(op.round_once),
        }
        sheet.note("tinyml_play_leaky_s16", members, sheet.x(), sheet.y())


register_kernels(LeakyInt16, LeakyInt16Loop())
