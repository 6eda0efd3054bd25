# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The mean of a window, from the sum of its stored integers.

TensorFlow Lite quantises input and output alike and rounds the quotient of stored integers to nearest,
halves away from zero; so those of uint8, which have no sign, go up. ONNX defines the mean in real numbers,
quantised with halves to even.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np

from tinyml.ir import Array, DType, Quant, Tensor, TensorType
from tinyml.ops.shared import linear
from tinyml.ops.shared.linear import Linear
from tinyml.ops.shared.quant import is_quantized

BYTES = (DType.INT8, DType.UINT8)
Halves = Literal["away", "even", "up"]


def alike(x: Tensor | None, y: Tensor) -> bool:
    """Whether the stored integers of both mean the same, so that their mean is the mean."""
    return (
        x is not None and is_quantized(x, *BYTES, DType.INT16) and x.quant == y.quant and x.dtype is y.dtype
    )


def sums_fit(x: Tensor, count: int) -> bool:
    """Whether 32 bits hold the sum of so many elements, with or without the zero point."""
    low, high = x.dtype.limits
    zeros = (0, *(x.quant.zero_points if x.quant is not None else ()))
    return count * max(max(high - zero, zero - low) for zero in zeros) < 1 << 31


def from_sum(total: Array, count: Array | int, x: Quant, y: Quant, halves: Halves) -> Array:
    """The means of windows, before they are clamped."""
    if x == y and halves == "up":
        return np.asarray((total + count // 2) // count)
    if x == y and halves == "away":
        return np.asarray(np.sign(total) * ((np.abs(total) + count // 2) // count))
    real = (total - count * x.zero_point) * (x.scale / y.scale) / count
    return np.asarray(np.rint(real).astype(np.int64) + y.zero_point)


def linear_mean(
    counts: Array, x: Tensor | None, y: Tensor | TensorType, limits: tuple[int, int], halves: Halves
) -> Linear | None:
    """From the sum to the clamped mean in one step, for bytes, if all windows have as many elements."""
    if x is None or x.quant is None or y.quant is None or x.quant.per_channel or y.quant.per_channel:
        return None
    count = int(counts.reshape(-1)[0])
    if x.dtype not in BYTES or x.dtype is not y.dtype or not count or np.any(counts != count):
        return None
    return _line(count, x.quant, y.quant, x.dtype, limits, halves)


@cache
def _line(
    count: int, x: Quant, y: Quant, dtype: DType, limits: tuple[int, int], halves: Halves
) -> Linear | None:
    low, high = dtype.limits
    if count * (high - low) > 1 << 20:  # so many sums that looking at all takes too long
        return None

    def mean(total: Array) -> Array:
        return np.clip(from_sum(total, count, x, y, halves), *limits)

    sums = np.arange(count * low, count * high + 1)
    return linear.find(mean, sums, [x.scale / (count * y.scale)], limits)
