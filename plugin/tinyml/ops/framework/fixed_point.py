# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Integer arithmetic of TensorFlow Lite's reference kernels, bit for bit, on numpy arrays.

Real multipliers become ``(multiplier, shift)``: a Q31 mantissa and a power of two. Products are rounded
twice (first the doubling high multiply, then the shift), as TensorFlow Lite Micro and CMSIS-NN do.
Models that do not come from TensorFlow Lite round once, which is closer to the real numbers.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[Any]

INT32_MIN = -(1 << 31)
INT32_MAX = (1 << 31) - 1


@lru_cache(maxsize=4096)  # kernels, constraints and cost models ask for those of every channel
def quantize_multiplier(real: float) -> tuple[int, int]:
    """``real`` as ``multiplier * 2**(shift - 31)`` with multiplier in [2**30, 2**31)."""
    if real == 0.0 or math.isnan(real):
        return 0, 0
    if math.isinf(real):
        return (INT32_MAX if real > 0 else INT32_MIN), 30
    mantissa, shift = math.frexp(real)
    multiplier = math.floor(mantissa * (1 << 31) + 0.5)  # TfLiteRound: halves go up
    if multiplier == 1 << 31:
        multiplier //= 2
        shift += 1
    if shift < -31:
        return 0, 0
    if shift > 30:
        return INT32_MAX, 30
    return multiplier, shift


def doubling_high_multiply(a: Ints, b: Ints | int) -> Ints:
    """(a * b * 2 + rounding) >> 32, saturating in the single case that overflows."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    nudged = (product + (1 << 30)) >> 31
    return np.minimum(nudged, INT32_MAX)


def rounding_divide_by_pot(x: Ints, exponent: Ints | int) -> Ints:
    """x / 2**exponent, halves away from zero."""
    x = np.asarray(x, np.int64)
    exponent = np.asarray(exponent, np.int64)
    mask = (np.int64(1) << exponent) - 1
    remainder = x & mask
    threshold = (mask >> 1) + (x < 0)
    return (x >> exponent) + (remainder > threshold)


def multiply_by_quantized_multiplier(x: Ints, multiplier: Ints | int, shift: Ints | int) -> Ints:
    """x * multiplier * 2**(shift - 31) in int32 arithmetic, rounded twice."""
    shift = np.asarray(shift, np.int64)
    left = np.maximum(shift, 0)
    right = np.maximum(-shift, 0)
    shifted = wrap_int32(np.asarray(x, np.int64) << left)
    return rounding_divide_by_pot(doubling_high_multiply(shifted, multiplier), right)


def multiply_by_quantized_multiplier_once(x: Ints, multiplier: Ints | int, shift: Ints | int) -> Ints:
    """The same rounded once, halves up: closest to arithmetic in real numbers."""
    exponent = 31 - np.asarray(shift, np.int64)
    product = np.asarray(x, np.int64) * np.asarray(multiplier, np.int64)
    return ((product >> (exponent - 1)) + 1) >> 1


def shift_right_to_even(product: Ints, exponent: Ints | int, slack: Ints | int) -> Ints:
    """product / 2**exponent, rounded once, halves to even.

    ``slack`` bounds how far the rounding of the multipliers may have moved ``product``. A result that lies
    this close to a half counts as one: 3 * (1 / 6) is a half although 1 / 6 is not exact.
    """
    exponent = np.asarray(exponent, np.int64)
    raised = np.asarray(product, np.int64) + (np.int64(1) << (exponent - 1))
    rounded = raised >> exponent
    rest = raised - (rounded << exponent)
    odd = rounded & 1
    above = rest <= slack
    below = (np.int64(1) << exponent) - rest <= slack
    return rounded - (above & (odd == 1)) + (~above & below & (odd == 1))


def multiply_by_quantized_multiplier_to_even(x: Ints, multiplier: Ints | int, shift: Ints | int) -> Ints:
    """x * multiplier * 2**(shift - 31), rounded once, halves to even, as ONNX's QuantizeLinear rounds."""
    x = np.asarray(x, np.int64)
    return shift_right_to_even(x * np.asarray(multiplier, np.int64), 31 - np.asarray(shift), np.abs(x))


def multiply_by_quantized_multiplier_away(x: Ints, multiplier: int, shift: int) -> Ints:
    """x * multiplier * 2**(shift - 31), rounded once, halves away from zero, as TensorFlow Lite's sums round.

    A result as close to a half as the rounded multiplier allows counts as one.
    """
    size = np.abs(np.asarray(x, np.int64))
    half = (1 << (31 - shift)) >> 1
    return np.sign(x) * ((size * multiplier + size + half) >> (31 - shift))


def multiply_int64_by_quantized_multiplier(x: Ints, multiplier: Ints | int, shift: Ints | int) -> Ints:
    """The variant for 64-bit accumulators (int16 activations): 16-bit multiplier, one rounding."""
    shift = np.asarray(shift, np.int64)
    multiplier = np.asarray(multiplier, np.int64)
    reduced = np.where(multiplier < 0x7FFF0000, (multiplier + (1 << 15)) >> 16, 0x7FFF)
    total_shift = 15 - shift
    rounding = np.int64(1) << (total_shift - 1)
    return (np.asarray(x, np.int64) * reduced + rounding) >> total_shift


def multiply_int64_by_quantized_multiplier_once(x: Ints, multiplier: Ints | int, shift: Ints | int) -> Ints:
    """For 64-bit accumulators (below 2**47) with all bits of the multiplier, rounded once, halves up."""
    exponent = 31 - np.asarray(shift, np.int64)  # 17 or more
    multiplier = np.asarray(multiplier, np.int64)
    wide = np.asarray(x, np.int64)
    product = (wide >> 16) * multiplier + ((wide & 0xFFFF) * multiplier >> 16)  # the lowest 16 bits are gone
    return (product + (np.int64(1) << (exponent - 17))) >> (exponent - 16)


def wrap_int32(x: Ints) -> Ints:
    """What a C int32_t would hold."""
    return np.asarray(x, np.int64).astype(np.int32).astype(np.int64)


def round_half_away(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """std::round: halves away from zero. The sum of a half and the number below a half would be 1."""
    size = np.abs(x)
    below = np.floor(size)
    with np.errstate(invalid="ignore"):  # infinities have no part below the point
        return np.copysign(np.where(size - below >= 0.5, below + 1, below), x)


def quantize_scalar(real: float, scale: float, zero_point: int, low: int, high: int) -> int:
    """One real number on a quantised axis, clamped to [low, high] (infinities included)."""
    # float32 division and std::round, as the TensorFlow Lite kernels compute activation ranges
    with np.errstate(over="ignore"):
        steps = float(np.float32(real) / np.float32(scale))
    if math.isinf(steps):  # also if the scale is so small that no float32 holds the result
        return high if steps > 0 else low
    rounded = math.copysign(math.floor(abs(steps) + 0.5), steps)
    return int(min(max(zero_point + rounded, low), high))
