# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The coefficients and tables of runtime/include/tinyml/maths_*.h.

``python -m tools.maths_coefficients`` prints them all, with the largest relative error of each polynomial.
Each is close to the polynomial with the smallest largest error: weighted least squares, with the weights
raised where the error is large until it is level (Lawson's algorithm).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
ROUNDS = 200
POINTS = 500


@dataclass(frozen=True)
class Polynomial:
    """``function`` on [low, high]; ``weight`` turns an error of the polynomial into one of the result."""

    name: str
    function: Callable[[Reals], Reals]
    weight: Callable[[Reals], Reals]
    low: float
    high: float
    degree: int
    fraction_bits: int | None = None  # fixed point with as many bits; None: float

    def fit(self) -> tuple[list[float], float]:
        """Coefficients, that of the lowest power first, and the largest weighted error."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        t = np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
        x = middle + half * t
        values, weights = self.function(x), self.weight(x)
        basis = np.polynomial.chebyshev.chebvander(t, self.degree)
        level = np.full(POINTS, 1.0 / POINTS)
        for _ in range(ROUNDS):
            scale = np.sqrt(level) * weights
            found = np.linalg.lstsq(basis * scale[:, None], values * scale, rcond=None)[0]
            errors = np.abs((basis @ found - values) * weights)
            level *= errors / errors.max() + 1e-9
            level /= level.sum()
        series = np.polynomial.chebyshev.Chebyshev(found, domain=[self.low, self.high])
        plain = series.convert(kind=np.polynomial.Polynomial).coef
        return [float(c) for c in plain], float(errors.max())


def odd(name: str, function: Callable[[Reals], Reals], high: float, degree: int) -> Polynomial:
    """f(x) = x + x * z * p(z) with z = x * x: an odd function with slope 1, relative error."""

    def rest(z: Reals) -> Reals:
        x = np.sqrt(z)
        return (function(x) - x) / (x * z)

    return Polynomial(name, rest, lambda z: z * np.sqrt(z) / function(np.sqrt(z)), 1e-5, high * high, degree)


def erfc(x: Reals) -> Reals:
    return np.vectorize(math.erfc, otypes=[np.float64])(x)


def erf(x: Reals) -> Reals:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def log2_slope(z: Reals) -> Reals:
    """log2(1 + z) / z, with its limit at 0."""
    safe = np.where(np.abs(z) < 1e-9, 1e-9, z)
    return np.log1p(safe) / safe / math.log(2.0)


POLYNOMIALS = (
    Polynomial("exp2", lambda f: np.expm1(f * math.log(2)) / f, lambda f: f, 1e-9, 1.0, 6, 32),
    Polynomial("log2", log2_slope, np.ones_like, -0.0316, 0.0316, 5, 30),
    Polynomial("expm1", lambda x: (np.expm1(x) - x) / x**2, lambda x: x**2 / np.expm1(x), -0.4, 0.7, 6),
    Polynomial(
        "log1p", lambda x: (np.log1p(x) - x + x * x / 2) / x**3, lambda x: x**3 / np.log1p(x), -0.3, 0.42, 8
    ),
    odd("sin", np.sin, math.pi / 4, 2),
    Polynomial("cos", lambda z: (np.cos(np.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2, 1e-3, 0.617, 2),
    odd("tan", np.tan, math.pi / 4, 6),
    odd("asin", np.arcsin, 0.55, 5),
    odd("atan", np.arctan, 0.55, 5),
    odd("sinh", np.sinh, 1.0, 3),
    odd("tanh", np.tanh, 0.6, 4),
    odd("asinh", np.arcsinh, 0.5, 4),
    odd("atanh", np.arctanh, 0.5, 5),
    Polynomial(
        "acosh",
        lambda t: (np.arccosh(1 + t) / np.sqrt(2 * t) - 1) / t,
        lambda t: t * np.sqrt(2 * t) / np.arccosh(1 + t),
        1e-4,
        0.5,
        5,
    ),
    Polynomial(
        "erf",
        lambda z: erf(np.sqrt(z)) / np.sqrt(z) - 1,
        lambda z: np.sqrt(z) / erf(np.sqrt(z)),
        1e-6,
        0.86,
        6,
    ),
    Polynomial("erfc", lambda x: -np.log(erfc(x)), lambda x: erfc(x) / erf(x), 0.92, 4.0, 7),
)


def printed(value: float, fraction_bits: int | None) -> str:
    return f"{np.float32(value):.9g}f" if fraction_bits is None else str(round(value * 2**fraction_bits))


def log2_table(steps: int = 16, factor_bits: int = 12, fraction_bits: int = 54) -> list[tuple[int, int]]:
    """For each mantissa 1 + i / steps: a factor that brings it close to 1, and minus its logarithm."""
    factors = [round(2**factor_bits / (1 + i / steps)) for i in range(steps + 1)]
    return [(f, _fixed_log2(2**factor_bits, f, fraction_bits)) for f in factors]


def _fixed_log2(numerator: int, denominator: int, fraction_bits: int) -> int:
    """log2(numerator / denominator), between 0 and 1, by squaring: one binary digit at a time."""
    guard = 128
    ratio, result = (numerator << guard) // denominator, 0
    if ratio == 2 << guard:
        return 1 << fraction_bits
    for _ in range(fraction_bits):
        ratio = ratio * ratio >> guard
        result <<= 1
        if ratio >= 2 << guard:
            ratio >>= 1
            result |= 1
    return result


def main() -> None:
    for polynomial in POLYNOMIALS:
        found, error = polynomial.fit()
        print(f"{polynomial.name}: largest error 2^{math.log2(error):.1f}")
        print("  " + ", ".join(printed(c, polynomial.fraction_bits) for c in found))
    print("log2 table:")
    for factor, minus_log2 in log2_table():
        print(f"  {{{factor}, {minus_log2}}},")


if __name__ == "__main__":
    main()
