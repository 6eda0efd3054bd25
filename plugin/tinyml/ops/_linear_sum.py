"""Sums of bytes as one linear form: y = clamp((a * a_factor + b * b_factor + offset) >> shift).

The fixed-point arithmetic of TensorFlow Lite rescales both operands and then their sum, and rounds each
time. But bytes make only 65,536 pairs. Where a linear form in 32 bits gives the right byte for every pair,
it is the same function at a fraction of the cost. It is found by trying, and exact because all pairs are
looked at. Where none is found, the fixed-point arithmetic remains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tinyml.ir import Array

LARGEST = (1 << 31) - 1
NEIGHBOURS = (0, -1, 1, -2, 2)


@dataclass(frozen=True)
class LinearSum:
    """The four numbers of the form."""

    a_factor: int
    b_factor: int
    offset: int
    shift: int

    def c(self, a: str, b: str) -> str:
        """The sum as a C expression, before it is clamped."""
        products = f"{a} * {_number(self.a_factor)} + {b} * {_number(self.b_factor)}"
        return f"({products} + {_number(self.offset)}) >> {self.shift}"


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"


def find(
    function: Callable[[Array, Array], Array], bytes_: Array, slopes: tuple[float, float]
) -> LinearSum | None:
    """The form of ``function``, which maps two bytes to a byte, or None if there is none.

    ``bytes_`` are all values of an operand; the factors are near ``slopes``.
    """
    a, b = bytes_.astype(np.int64)[:, None], bytes_.astype(np.int64)[None, :]
    wanted = function(a, b).astype(np.int64)
    inside = float(np.abs(bytes_.astype(np.int64)).max()) * sum(abs(slope) for slope in slopes)
    shift = min(math.floor(math.log2(LARGEST / (2 * inside + 2 * np.abs(wanted).max() + 2))), 24)
    if shift < 1:
        return None
    for a_factor, b_factor in _factors(slopes, shift):
        products = a * a_factor + b * b_factor
        offset = _offset(products, wanted, shift)
        if offset is not None and np.abs(products).max() + abs(offset) <= LARGEST:
            return LinearSum(a_factor, b_factor, offset, shift)
    return None


def _factors(slopes: tuple[float, float], shift: int) -> Iterator[tuple[int, int]]:
    for i in NEIGHBOURS:
        for j in NEIGHBOURS:
            yield round(slopes[0] * (1 << shift)) + i, round(slopes[1] * (1 << shift)) + j


def _offset(products: Array, wanted: Array, shift: int) -> int | None:
    """What to add so that every sum ends in its byte; at the limits, anything beyond will do as well."""
    first = (wanted << shift) - products
    low, high = wanted.min(), wanted.max()
    least = int(first[wanted > low].max(initial=-LARGEST))
    most = int(first[wanted < high].min(initial=LARGEST)) + (1 << shift) - 1
    return (least + most) // 2 if least <= most else None
