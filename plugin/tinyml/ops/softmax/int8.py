# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Softmax on int8, in the fixed-point arithmetic of TensorFlow Lite: output scale 1/256, zero point -128."""

from __future__ import annotations

import math

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Tensor, TensorType
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.shared import gemmlowp
from tinyml.ops.shared.quant import quant_of

DIFF_INTEGER_BITS = 5
SUM_INTEGER_BITS = 12
MOST = (1 << SUM_INTEGER_BITS) - 1
"""Elements of a row whose sum has these bits, however large they are."""


def has_integer_form(x: Tensor | None, y: Tensor | TensorType, beta: float) -> bool:
    """Whether the integer softmax supports these tensors."""
    if x is None or x.quant is None or y.quant is None or x.quant.per_channel or y.quant.per_channel:
        return False
    if x.shape[-1] > MOST or _step(x.quant.scale, beta) < 1:
        return False
    signed = x.dtype is y.dtype is DType.INT8 and y.quant.zero_point == -128
    unsigned = x.dtype is y.dtype is DType.UINT8 and y.quant.zero_point == 0
    return (signed or unsigned) and y.quant.scale == 1 / 256


@dataclass(frozen=True)
class Scaling:
    """From differences of stored integers to the argument of exp, with five integer bits."""

    multiplier: int
    left_shift: int
    least_difference: int  # exp of anything below counts as 0


def _step(scale: float, beta: float) -> float:
    """A step of the input with five integer bits."""
    return beta * scale * (1 << (31 - DIFF_INTEGER_BITS))


def scaling(layer: Layer, beta: float) -> Scaling:
    real = _step(quant_of(layer.input(0)).scale, beta)
    multiplier, left_shift = fp.quantize_multiplier(min(real, (1 << 31) - 1.0))
    radius = ((1 << DIFF_INTEGER_BITS) - 1) * (1 << (31 - DIFF_INTEGER_BITS)) / (1 << left_shift)
    return Scaling(multiplier, left_shift, -math.floor(radius))


def evaluate(layer: Layer, beta: float, x: Array) -> Array:
    """Softmax along the last axis."""
    difference = x.astype(np.int64) - x.max(axis=-1, keepdims=True)
    counts = difference >= scaling(layer, beta).least_difference
    exps = exponentials(layer, beta, difference)
    terms = fp.rounding_divide_by_pot(exps, SUM_INTEGER_BITS)
    factor, over = gemmlowp.reciprocal(terms.sum(axis=-1, keepdims=True), SUM_INTEGER_BITS)
    found = fp.rounding_divide_by_pot(fp.doubling_high_multiply(exps, factor), over + 31 - 8)
    low, high = layer.output.dtype.limits
    return np.where(counts, np.clip(found + low, low, high), low).astype(layer.output.dtype.numpy)


def exponentials(layer: Layer, beta: float, difference: Array) -> Array:
    """exp of differences to the largest element, from 0 to 2^31; 0 for those that do not count."""
    s = scaling(layer, beta)
    counts = difference >= s.least_difference
    shifted = np.where(counts, difference, 0) << s.left_shift
    scaled = fp.doubling_high_multiply(shifted, s.multiplier)
    exps = gemmlowp.Q31.exp_on_negative_values(scaled, DIFF_INTEGER_BITS)
    return np.where(counts, exps, 0)


def loop_counts(layer: Layer, beta: float) -> Work:
    """How often its loops run. How many elements count depends on them: as many as of evenly spread ones."""
    depth = layer.input(0).shape[-1]
    rows = layer.output.elements // depth
    near = min(1 - scaling(layer, beta).least_difference, 256) / 256
    # The largest of evenly spread ones is m with a density of depth * m ** (depth - 1); the others are below.
    others = near * depth * (1 - near ** (depth - 1)) + near**depth * (depth - 1) if depth > 1 else 0.0
    return {"calls": 1, "rows": rows, "elements": rows * depth, "elements that count": rows * (1 + others)}


def emit(layer: Layer, beta: float, sheet: Sheet) -> None:
    """A call of the runtime."""
    s = scaling(layer, beta)
    depth = layer.input(0).shape[-1]
    sheet.include("<tinyml/softmax.h>")
    name = sheet.record(
        "struct tinyml_softmax_s8",
        "params",
        {
            ".rows": layer.output.elements // depth,
            ".depth": depth,
            ".multiplier": s.multiplier,
            ".left_shift": s.left_shift,
            ".least_difference": s.least_difference,
        },
    )
    sheet.call("tinyml_softmax_s8", name, sheet.x(), sheet.y())
