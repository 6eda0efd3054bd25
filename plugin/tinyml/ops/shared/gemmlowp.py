# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Transcendental functions in fixed point, on numpy arrays: bit for bit what gemmlowp computes.

TensorFlow Lite's integer softmax, LSTM and logistic are defined by these polynomials and bit tricks.
A raw value r with i integer bits means r / 2**(31 - i), or r / 2**(15 - i) for 16-bit values.
"""

from __future__ import annotations

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.fixed_point import Ints

EXP_OF_MINUS_POWERS = (
    1672461947,  # exp(-1/4)
    1302514674,  # exp(-1/2)
    790015084,  # exp(-1)
    290630308,  # exp(-2)
    39332535,  # exp(-4)
    720401,  # exp(-8)
    242,  # exp(-16)
)


@dataclass(frozen=True)
class FixedPoint:
    """The functions on values of ``bits`` bits, 32 or 16."""

    bits: int

    @property
    def one(self) -> int:
        """1.0 with no integer bits, as close as possible."""
        return (1 << (self.bits - 1)) - 1

    def constant(self, raw: int) -> int:
        """A 32-bit raw constant, rounded to fewer bits where there are fewer."""
        return int(fp.rounding_divide_by_pot(np.asarray(raw), 32 - self.bits))

    def multiply(self, a: Ints, b: Ints | int) -> Ints:
        """The high half of 2 a b, rounded, saturated."""
        product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
        return np.asarray(np.minimum((product + (1 << (self.bits - 2))) >> (self.bits - 1), self.one))

    def shift_left(self, x: Ints, bits: int) -> Ints:
        """x * 2**bits, saturated."""
        return np.asarray(np.clip(np.asarray(x, np.int64) << bits, -self.one - 1, self.one))

    def _exp_near_zero(self, a: Ints) -> Ints:
        """exp(a) for a in [-1/4, 0), no integer bits: a polynomial around -1/8."""
        exp_minus_eighth, third = self.constant(1895147668), self.constant(715827883)
        x = a + (1 << (self.bits - 4))
        x2 = self.multiply(x, x)
        x3 = self.multiply(x2, x)
        x4 = self.multiply(x2, x2)
        tail = self.multiply(fp.rounding_divide_by_pot(x4, 2) + x3, third) + x2
        return exp_minus_eighth + self.multiply(x + fp.rounding_divide_by_pot(tail, 1), exp_minus_eighth)

    def exp_on_negative_values(self, a: Ints, integer_bits: int) -> Ints:
        """exp(a) for a <= 0 with ``integer_bits``; the result has none."""
        a = np.asarray(a, np.int64)
        fraction_bits = self.bits - 1 - integer_bits
        quarter = 1 << (fraction_bits - 2)
        rest = (a & (quarter - 1)) - quarter
        result = self._exp_near_zero(self.shift_left(rest, integer_bits))
        remainder = rest - a
        for place, factor in enumerate(EXP_OF_MINUS_POWERS):
            exponent = place - 2
            if exponent < integer_bits:
                bit = (remainder >> (fraction_bits + exponent)) & 1
                result = np.where(bit == 1, self.multiply(result, self.constant(factor)), result)
        if integer_bits > 5:  # exp(-32) rounds to 0
            result = np.where(a < -(1 << (self.bits + 4 - integer_bits)), 0, result)
        return np.where(a == 0, self.one, result)

    def _twice_one_over_one_plus(self, a: Ints) -> Ints:
        """2 / (1 + a) for a in [0, 1], with two integer bits: three steps of Newton and Raphson."""
        half = (np.asarray(a, np.int64) + self.one + 1) // 2  # of 1 + a
        x = self.constant(1515870810) + self.multiply(half, self.constant(-1010580540))  # 48/17 - 32/17 d
        for _ in range(3):
            error = (1 << (self.bits - 3)) - self.multiply(half, x)
            x = x + self.shift_left(self.multiply(x, error), 2)
        return x

    def one_over_one_plus(self, a: Ints) -> Ints:
        """1 / (1 + a) for a in [0, 1], no integer bits."""
        return self.shift_left(self._twice_one_over_one_plus(a), 1)

    def _one_minus_over_one_plus(self, a: Ints) -> Ints:
        """(1 - a) / (1 + a) for a in [0, 1], no integer bits."""
        return self.shift_left(self._twice_one_over_one_plus(a) - (1 << (self.bits - 3)), 2)

    def logistic(self, a: Ints, integer_bits: int) -> Ints:
        """1 / (1 + exp(-a)); the result has no integer bits."""
        a = np.asarray(a, np.int64)
        positive = self.one_over_one_plus(self.exp_on_negative_values(-np.abs(a), integer_bits))
        return np.where(a == 0, 1 << (self.bits - 2), np.where(a > 0, positive, self.one - positive))

    def tanh(self, a: Ints, integer_bits: int) -> Ints:
        """tanh(a), no integer bits. exp takes -2 |a|: the same bits with one integer bit more."""
        a = np.asarray(a, np.int64)
        exp = self.exp_on_negative_values(-np.abs(a), integer_bits + 1)
        positive = self._one_minus_over_one_plus(exp)
        return np.where(a == 0, 0, np.where(a > 0, positive, -positive))


Q31 = FixedPoint(32)
Q15 = FixedPoint(16)


def reciprocal(x: Ints, integer_bits: int) -> tuple[Ints, Ints]:
    """1 / x for 32-bit x > 0: a mantissa with no integer bits, and by how many bits x exceeds 1."""
    x = np.asarray(x, np.int64)
    leading_zeros = 32 - np.frexp(x.astype(np.float64))[1].astype(np.int64)
    fraction = (x << leading_zeros) - (1 << 31)
    return Q31.one_over_one_plus(fraction), integer_bits - leading_zeros
