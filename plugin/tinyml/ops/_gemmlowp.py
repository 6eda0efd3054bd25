"""Transcendental functions in fixed point, on numpy arrays: bit for bit what gemmlowp computes.

TensorFlow Lite's integer softmax, LSTM and logistic are defined by these polynomials and bit tricks.
A raw value r with i integer bits means r / 2**(31 - i), or r / 2**(15 - i) for 16-bit values.
"""

from __future__ import annotations

import numpy as np

from tinyml import fixed_point as fp
from tinyml.fixed_point import Ints

ONE = fp.INT32_MAX  # 1.0 with no integer bits, as near as it gets


def saturating_shift_left(x: Ints, bits: int) -> Ints:
    return np.clip(np.asarray(x, np.int64) << bits, fp.INT32_MIN, fp.INT32_MAX)


def _exp_between_minus_quarter_and_zero(a: Ints) -> Ints:
    """exp(a) for a in [-1/4, 0), no integer bits: a polynomial around -1/8."""
    exp_minus_eighth, third = 1895147668, 715827883
    x = a + (1 << 28)
    x2 = fp.doubling_high_multiply(x, x)
    x3 = fp.doubling_high_multiply(x2, x)
    x4 = fp.doubling_high_multiply(x2, x2)
    tail = fp.doubling_high_multiply(fp.rounding_divide_by_pot(x4, 2) + x3, third) + x2
    return exp_minus_eighth + fp.doubling_high_multiply(
        x + fp.rounding_divide_by_pot(tail, 1), exp_minus_eighth
    )


EXP_OF_MINUS_POWERS = (
    1672461947,  # exp(-1/4)
    1302514674,  # exp(-1/2)
    790015084,  # exp(-1)
    290630308,  # exp(-2)
    39332535,  # exp(-4)
    720401,  # exp(-8)
    242,  # exp(-16)
)


def exp_on_negative_values(a: Ints, integer_bits: int) -> Ints:
    """exp(a) for a <= 0 with ``integer_bits`` (at most 5); the result has none."""
    a = np.asarray(a, np.int64)
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    rest = (a & (quarter - 1)) - quarter
    result = _exp_between_minus_quarter_and_zero(saturating_shift_left(rest, integer_bits))
    remainder = rest - a
    for place, factor in enumerate(EXP_OF_MINUS_POWERS):
        exponent = place - 2
        if exponent < integer_bits:
            bit = (remainder >> (fraction_bits + exponent)) & 1
            result = np.where(bit == 1, fp.doubling_high_multiply(result, factor), result)
    return np.where(a == 0, ONE, result)


def _twice_one_over_one_plus(a: Ints) -> Ints:
    """2 / (1 + a) for a in [0, 1]; the result has two integer bits. Three steps of Newton and Raphson."""
    half = (np.asarray(a, np.int64) + ONE + 1) // 2  # half of 1 + a
    x = 1515870810 + fp.doubling_high_multiply(half, -1010580540)  # 48/17 - 32/17 * half
    for _ in range(3):
        error = (1 << 29) - fp.doubling_high_multiply(half, x)
        x = x + saturating_shift_left(fp.doubling_high_multiply(x, error), 2)
    return x


def one_over_one_plus(a: Ints) -> Ints:
    """1 / (1 + a) for a in [0, 1], no integer bits."""
    return saturating_shift_left(_twice_one_over_one_plus(a), 1)


def reciprocal(x: Ints, integer_bits: int) -> tuple[Ints, Ints]:
    """1 / x for x > 0: a mantissa with no integer bits, and by how many bits x exceeds 1."""
    x = np.asarray(x, np.int64)
    leading_zeros = 32 - np.frexp(x.astype(np.float64))[1].astype(np.int64)
    fraction = (x << leading_zeros) - (1 << 31)
    return one_over_one_plus(fraction), integer_bits - leading_zeros


def _one_minus_over_one_plus(a: Ints) -> Ints:
    """(1 - a) / (1 + a) for a in [0, 1], no integer bits."""
    x = _twice_one_over_one_plus(a)
    return saturating_shift_left(x - (1 << 29), 2)


def logistic(a: Ints, integer_bits: int) -> Ints:
    """1 / (1 + exp(-a)); the result has no integer bits."""
    a = np.asarray(a, np.int64)
    positive = one_over_one_plus(exp_on_negative_values(-np.abs(a), integer_bits))
    return np.where(a == 0, 1 << 30, np.where(a > 0, positive, ONE - positive))


def tanh(a: Ints, integer_bits: int) -> Ints:
    """tanh(a); the result has no integer bits. exp takes -2 |a|: the same bits, one integer bit more."""
    a = np.asarray(a, np.int64)
    positive = _one_minus_over_one_plus(exp_on_negative_values(-np.abs(a), integer_bits + 1))
    return np.where(a == 0, 0, np.where(a > 0, positive, -positive))
