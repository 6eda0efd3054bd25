# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dense layers whose quantised weights another layer computes, as generated loops."""

from __future__ import annotations

from typing import ClassVar

from tinyml.base import c
from tinyml.ir import Constraint, DType, Layer
from tinyml.ops.framework.kernel import Kernel, Sheet
from tinyml.ops.shared.quant import clamp_range, is_quantized, quant_of
from tinyml.ops.weighted.int16 import small_factors, wide_bias
from tinyml.ops.weighted.records import one_weight_zero
from tinyml.ops.weighted.weighted import Weighted, channel_multipliers


def computed_weights(layer: Layer) -> bool:
    """The weights are computed, and quantised per tensor."""
    w = layer.input(1)
    return not w.is_constant and w.quant is not None and not w.quant.per_channel


def bytes_or_halves(layer: Layer) -> bool:
    """The weights are int8; input and output are int8, or int16 with zero points of 0."""
    ends = (layer.input(0), layer.output)
    wide = all(is_quantized(t, DType.INT16) and quant_of(t).zero_point == 0 for t in ends)
    narrow = all(is_quantized(t, DType.INT8) for t in ends)
    return is_quantized(layer.input(1), DType.INT8) and (wide or narrow)


def narrow_or_small(layer: Layer[Weighted]) -> bool:
    """With int16, the bias is int64 and the factor from sums to outputs is below 2¹⁴."""
    return layer.input(0).dtype is DType.INT8 or (wide_bias(layer) and small_factors(layer))


class DenseComputed(Kernel[Weighted]):
    """A sum for each output, one after the other."""

    name = "dense loops"
    constraints: ClassVar[tuple[Constraint, ...]] = (
        computed_weights,
        bytes_or_halves,
        one_weight_zero,
        narrow_or_small,
    )

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        x, w, y = layer.input(0), layer.input(1), layer.output
        outputs, inputs = w.shape
        wide = x.dtype is DType.INT16
        multiplier, shift = (int(part[0]) for part in channel_multipliers(layer))
        low, high = clamp_range(layer.op.clamp, y)
        once = "_once" if layer.op.round_once else ""
        sheet.include("<tinyml/conv_s16.h>" if wide else "<tinyml/fixed_point.h>")
        walks = {"x": c.Walk((inputs, 0)), "w": c.Walk((0, inputs)), "o": c.Walk((0, 1))}
        walks["y"] = c.Walk((outputs, 1))
        with sheet.loops(c.nest((y.elements // outputs, outputs), walks)) as at:
            start = f"{sheet.x(2)}[{at['o']}]" if layer.has_input(2) else "0"
            sheet.line(f"{'int64_t' if wide else 'int32_t'} acc = {start};")
            sheet.line()
            with sheet.loop("k", inputs):
                left = self.operand(layer, sheet, 0, at["x"] + "k")
                right = self.operand(layer, sheet, 1, at["w"] + "k")
                sheet.line(f"acc += {left} * {right};")
            if wide:
                value = f"tinyml_narrow_s64{once}(acc, {multiplier}, {shift}, {low}, {high})"
            else:
                scaled = f"tinyml_rescale{once}(acc, {multiplier}, {shift}) + ({quant_of(y).zero_point})"
                value = f"(int8_t)tinyml_clamp({scaled}, {low}, {high})"
            sheet.line(f"{sheet.y()}[{at['y']}] = {value};")

    def operand(self, layer: Layer[Weighted], sheet: Sheet, index: int, place: c.Expr) -> str:
        zero = quant_of(layer.input(index)).zero_point
        element = f"{sheet.x(index)}[{place}]"
        return f"({element} - ({zero}))" if zero else element
