# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ln(1 + x) in float32, with the rounding errors that C libraries have.

The filter bank is made of such logarithms, rounded to 12 bits. The C libraries of embedded toolchains, and
GNU's up to version 2.40, evaluate the same polynomial in float32; a correctly rounded logarithm gives two
weights of the usual filter bank that are one step off.
"""

from __future__ import annotations

import math

import numpy as np

F32 = np.float32
SERIES = [F32(x) for x in (0.14798199, 0.15313838, 0.18183573, 0.22222199, 0.2857143, 0.4, 0.6666667)]
"""Of (ln(1 + f) - f + f²/2) / s in powers of s², s = f / (2 + f); the highest power first."""

LN2_HIGH, LN2_LOW = F32(0.6931381), F32(9.0580006e-06)
"""The first has zeros at the end: its products with small integers are exact."""


def log1p(x: np.float32) -> np.float32:
    """For x of 0 or more."""
    power, lost = 0, F32(0)
    fraction = x
    if x >= F32(math.sqrt(2) - 1):
        total = F32(1) + x
        power = math.frexp(float(total))[1] - 1
        lost = (F32(1) - (total - x) if power > 0 else x - (total - F32(1))) / total
        total = F32(math.ldexp(float(total), -power))
        if total >= F32(math.sqrt(2)):
            total, power = total / F32(2), power + 1
        fraction = total - F32(1)
    square = F32(0.5) * fraction * fraction
    s = fraction / (F32(2) + fraction)
    z = s * s
    sum_ = F32(0)
    for coefficient in SERIES:
        sum_ = sum_ * z + coefficient
    tail = s * (square + z * sum_)
    if power == 0:
        return fraction - (square - tail)
    k = F32(power)
    return k * LN2_HIGH - ((square - (tail + (k * LN2_LOW + lost))) - fraction)
