# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Products of two quantised matrices, neither a constant, rounded as TensorFlow Lite or as ONNX does."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyml.base import c
from tinyml.ir import Array, DType, Layer, Tensor, TensorType
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.shared.quant import LARGEST_SHIFT_INT16, quant_of, scale_product

MOST_PRODUCTS = 1 << 15
"""Of differences of bytes, whose sum 32 bits hold."""


def has_integer_form(a: Tensor | None, b: Tensor | None, y: Tensor | TensorType) -> bool:
    """Whether the product can be computed on integers: one type of int8 or int16, per tensor.

    Sums of bytes fit 32 bits, and the factor from sums to int16 is below 2**14.
    """
    if a is None or b is None or any(t.quant is None or t.quant.per_channel for t in (a, b, y)):
        return False
    if not a.dtype is b.dtype is y.dtype:
        return False
    assert a.quant is not None and b.quant is not None and y.quant is not None
    if y.dtype is DType.INT16:
        _, shift = fp.quantize_multiplier(a.quant.scale * b.quant.scale / y.quant.scale)
        return not (a.quant.zero_point or b.quant.zero_point) and shift <= LARGEST_SHIFT_INT16
    return y.dtype in (DType.INT8, DType.UINT8) and a.shape[-1] < MOST_PRODUCTS


def rescale(layer: Layer, once: bool) -> tuple[int, int]:
    """From sums to the output; TFLite multiplies the two scales in float32."""
    a, b = (quant_of(layer.input(i)).scale for i in (0, 1))
    return fp.quantize_multiplier(scale_product(a, b, single=not once) / quant_of(layer.output).scale)


def evaluate(layer: Layer, a: Array, b: Array, once: bool) -> Array:
    left, right = (x.astype(np.int64) - quant_of(layer.input(i)).zero_point for i, x in enumerate((a, b)))
    total = np.matmul(left, right)
    if layer.output.dtype is DType.INT16:
        wide = fp.multiply_int64_by_quantized_multiplier
        multiply = fp.multiply_int64_by_quantized_multiplier_once if once else wide
    else:
        narrow = fp.multiply_by_quantized_multiplier
        multiply = fp.multiply_by_quantized_multiplier_to_even if once else narrow
    scaled = multiply(total, *rescale(layer, once))
    dtype = layer.output.dtype
    found: Array = np.clip(scaled + quant_of(layer.output).zero_point, *dtype.limits).astype(dtype.numpy)
    return found


def emit(layer: Layer, sheet: Sheet, nest: c.Nest, inner: int, stride: int, once: bool) -> None:
    """The loops of ``nest`` around a sum of ``inner`` products; b's rows are ``stride`` apart."""
    y = layer.output
    multiplier, shift = rescale(layer, once)
    wide = y.dtype is DType.INT16
    low, high = y.dtype.limits
    sheet.include("<tinyml/conv_s16.h>" if wide else "<tinyml/fixed_point.h>")

    def operand(index: int, place: c.Expr) -> str:
        zero = quant_of(layer.input(index)).zero_point
        element = f"{sheet.x(index)}[{place}]"
        return f"({element} - ({zero}))" if zero else element

    with sheet.loops(nest) as index:
        sheet.line(f"{'int64_t' if wide else 'int32_t'} acc = 0;")
        sheet.line()
        with sheet.loop("k", inner):
            left, right = index["a"] + "k", index["b"] + c.Expr("k") * stride
            sheet.line(f"acc += {operand(0, left)} * {operand(1, right)};")
        if wide:
            value = f"tinyml_narrow_s64{'_once' if once else ''}(acc, {multiplier}, {shift}, {low}, {high})"
        else:
            rescaled = f"tinyml_rescale{'_to_even' if once else ''}(acc, {multiplier}, {shift})"
            scaled = f"{rescaled} + ({quant_of(y).zero_point})"
            value = f"({y.dtype.c})tinyml_clamp({scaled}, {low}, {high})"
        sheet.line(f"{sheet.y()}[{index['y']}] = {value};")


def play(layer: Layer, sheet: Sheet, loops: Mapping[str, object], once: bool) -> None:
    """The same as a call of the player."""
    multiplier, shift = rescale(layer, once)
    members = {
        **loops,
        ".multiplier": multiplier,
        ".shift": shift,
        ".a_zero": quant_of(layer.input(0)).zero_point,
        ".b_zero": quant_of(layer.input(1)).zero_point,
        ".out_zero": quant_of(layer.output).zero_point,
        ".to_even": int(once),
    }
    kind = "s16" if layer.output.dtype is DType.INT16 else "s8"
    sheet.note(f"tinyml_play_matmul_{kind}", members, sheet.x(0), sheet.x(1), sheet.y())
