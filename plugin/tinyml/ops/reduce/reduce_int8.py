# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sums and means of quantised tensors, in the integer arithmetic of TensorFlow Lite."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, DType, Layer, Tensor, TensorType
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.framework.play_loops import nests
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.pool.integer_mean import sums_fit
from tinyml.ops.shared.axes import Split, count, inner_loop
from tinyml.ops.shared.quant import quant_of

FUNCTIONS = ("sum", "mean")


def has_integer_form(function: str, axes: tuple[int, ...], x: Tensor | None, y: Tensor | TensorType) -> bool:
    """Whether a reduction of these tensors can be computed on their integers."""
    if function not in FUNCTIONS or x is None or x.quant is None or y.quant is None:
        return False
    if x.dtype is not y.dtype or x.dtype not in (DType.INT8, DType.UINT8, DType.INT16):
        return False
    return not x.quant.per_channel and not y.quant.per_channel and sums_fit(x, count(x.shape, axes))


def rescale(function: str, number: int, layer: Layer, once: bool) -> tuple[int, int]:
    """From a sum of ``number`` elements to the output; the mean's division is in the multiplier."""
    x, y = quant_of(layer.input(0)).scale, quant_of(layer.output).scale
    if once:
        return fp.quantize_multiplier(x / (y * number) if function == "mean" else x / y)
    multiplier, shift = fp.quantize_multiplier(x / y)
    if function == "sum":
        return multiplier, shift
    raised = min(number.bit_length() - 1, 32, 31 + shift)
    return (multiplier << raised) // number, shift - raised


def _rounding(function: str, once: bool) -> str:
    """TensorFlow Lite rounds means twice. Its sums are float numbers, rounded once."""
    if once:
        return "to_even"
    return "away" if function == "sum" else "twice"


def evaluate(function: str, axes: tuple[int, ...], layer: Layer, x: Array, once: bool) -> Array:
    number = count(x.shape, axes)
    total = x.astype(np.int64).sum(axis=axes, keepdims=True) - quant_of(layer.input(0)).zero_point * number
    multiply = {
        "twice": fp.multiply_by_quantized_multiplier,
        "to_even": fp.multiply_by_quantized_multiplier_to_even,
        "away": fp.multiply_by_quantized_multiplier_away,
    }[_rounding(function, once)]
    scaled = multiply(total, *rescale(function, number, layer, once))
    dtype = layer.output.dtype
    found: Array = np.clip(scaled + quant_of(layer.output).zero_point, *dtype.limits).astype(dtype.numpy)
    return found


def emit(function: str, axes: tuple[int, ...], layer: Layer, sheet: Sheet, once: bool) -> None:
    x, y = layer.input(0), layer.output
    number = count(x.shape, axes)
    multiplier, shift = rescale(function, number, layer, once)
    offset = quant_of(x).zero_point * number
    low, high = y.dtype.limits
    sheet.include("<tinyml/fixed_point.h>")
    split = Split(x.shape, axes)
    with sheet.loops(split.outer()) as index:
        sheet.line(f"int32_t sum = {-offset};")
        sheet.line()
        with inner_loop(sheet, split, index["x"]) as place:
            sheet.line(f"sum += {sheet.x()}[{place}];")
        rescaling = {"twice": "rescale", "to_even": "rescale_to_even", "away": "rescale_away"}
        scaled = f"tinyml_{rescaling[_rounding(function, once)]}(sum, {multiplier}, {shift})"
        value = f"{scaled} + ({quant_of(y).zero_point})"
        sheet.line(f"{sheet.y()}[{index['y']}] = ({y.dtype.c})tinyml_clamp({value}, {low}, {high});")


def play(function: str, axes: tuple[int, ...], layer: Layer, sheet: Sheet, once: bool) -> None:
    x, y = layer.input(0), layer.output
    if x.dtype not in (DType.INT8, DType.INT16):
        raise NotPlayableError(f"the player has no {function} of {x.dtype.value} along axes")
    number = count(x.shape, axes)
    multiplier, shift = rescale(function, number, layer, once)
    low, high = y.dtype.limits
    members = {
        **nests(x.shape, axes),
        ".offset": -quant_of(x).zero_point * number,
        ".multiplier": multiplier,
        ".shift": shift,
        ".out_zero": quant_of(y).zero_point,
        ".out_min": low,
        ".out_max": high,
        ".rounding": ("twice", "to_even", "away").index(_rounding(function, once)),
    }
    kind = "s16" if x.dtype is DType.INT16 else "s8"
    sheet.note(f"tinyml_play_reduce_{kind}", members, sheet.x(), sheet.y())
