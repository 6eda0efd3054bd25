# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Functions of small integers as one linear form: y = clamp((a * factor + b * factor + offset) >> shift).

Fixed-point arithmetic rescales and rounds, often more than once; a mean divides. But there are only 65,536
pairs of bytes, and the sums of a window are few as well. A linear form in 32 bits that gives the right result
for all of them is the same function at a fraction of the cost. The search tries forms on all arguments, so a
form that it finds is exact. If it finds none, the kernel uses fixed-point arithmetic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array

LARGEST = (1 << 31) - 1
NEIGHBOURS = (0, -1, 1, -2, 2)


@dataclass(frozen=True)
class Linear:
    """The numbers of the form: a factor for each argument."""

    factors: tuple[int, ...]
    offset: int
    shift: int

    def c(self, *arguments: str) -> str:
        """The form as a C expression, before it is clamped."""
        terms = [f"{a} * {_number(factor)}" for a, factor in zip(arguments, self.factors, strict=True)]
        return f"({' + '.join([*terms, _number(self.offset)])}) >> {self.shift}"


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"


def find(
    function: Callable[..., Array], values: Array, slopes: Sequence[float], limits: tuple[int, int]
) -> Linear | None:
    """The form of ``function``, or None if there is none.

    ``values`` are all that an argument can be; the results are clamped to ``limits`` already, as those of
    the form will be. There is an argument for each of ``slopes``, the factors in real numbers.
    """
    arguments = np.ix_(*[values.astype(np.int64)] * len(slopes))
    wanted = function(*arguments).astype(np.int64)
    reach = float(np.abs(values).max()) * sum(abs(slope) for slope in slopes)
    shift = min(math.floor(math.log2(LARGEST / (2 * reach + 2 * np.abs(wanted).max() + 2))), 30)
    if shift < 1:
        return None
    for steps in itertools.product(NEIGHBOURS, repeat=len(slopes)):
        factors = tuple(round(slope * (1 << shift)) + step for slope, step in zip(slopes, steps, strict=True))
        products = sum(
            (argument * factor for argument, factor in zip(arguments, factors, strict=True)),
            np.zeros((), np.int64),
        )
        offset = _offset(products, wanted, shift, limits)
        if offset is not None and np.abs(products).max() + abs(offset) <= LARGEST:
            return Linear(factors, offset, shift)
    return None


def _offset(products: Array, wanted: Array, shift: int, limits: tuple[int, int]) -> int | None:
    """What to add so that all end where they should; at the limits, anything beyond will do as well."""
    first = (wanted << shift) - products
    low, high = limits
    least = int(first[wanted > low].max(initial=-LARGEST))
    most = int(first[wanted < high].min(initial=LARGEST)) + (1 << shift) - 1
    return (least + most) // 2 if least <= most else None
