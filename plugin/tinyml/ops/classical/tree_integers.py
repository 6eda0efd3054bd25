# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Limits and leaves of trees as integers, where they give the same results as the real numbers."""

from __future__ import annotations

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Quant

EXACT = 1 << 24
"""Integers below this, and their sums, are exact in float32."""

MANTISSA = 24


def integer_limits(limits: Array, compared: Array, quant: Quant, dtype: DType) -> Array | None:
    """For each limit the largest stored integer that stands for at most as much; 0 in leaves.

    None if a limit is below all integers of ``dtype`` (NaN is below everything), or the quantisation is not
    per tensor.
    """
    if quant.per_channel or bool(np.isnan(limits).any()):
        return None
    low, high = dtype.limits
    scale = np.float32(quant.scale)
    with np.errstate(over="ignore"):
        steps = np.floor(limits.astype(np.float64) / float(scale))
    found = np.clip(steps, low - quant.zero_point - 1, high - quant.zero_point).astype(np.int64)
    for step in (1, 0):  # the division may have rounded across an integer
        above = found + step
        fits = (above <= high - quant.zero_point) & (above.astype(np.float32) * scale <= limits)
        found = np.where(fits, above, found if step else found - 1)
    found = np.where(compared, found + quant.zero_point, 0)
    return None if found.min(initial=0) < low else found.astype(np.int16)


@dataclass(frozen=True, eq=False)
class Weights:
    """Integers, and what 1 stands for: a power of two, so that sums are those of the real numbers."""

    values: Array
    scale: float


def integer_weights(weights: Array, starts: Array, targets: Array, trees: int) -> Weights | None:
    """The weights as multiples of a power of two, if 16 bits hold them and all sums are exact in float32."""
    sizes: Array = starts[1:].astype(np.int64) - starts[:-1]
    leaves = np.repeat(np.arange(len(starts) - 1), sizes)
    pairs = leaves * (int(targets.max(initial=0)) + 1) + targets[: len(leaves)]
    if len(np.unique(pairs)) != len(pairs):
        return None
    parts, exponents = np.frexp(weights[weights != 0].astype(np.float64))
    if not len(parts):
        return None
    whole = np.rint(np.ldexp(parts, MANTISSA)).astype(np.int64)
    zeros = np.log2((whole & -whole).astype(np.float64)).astype(np.int64)  # at the end of the mantissa
    exponent = int((exponents.astype(np.int64) - MANTISSA + zeros).min())
    values = np.ldexp(weights.astype(np.float64), -exponent)
    if np.abs(values).max() * trees >= EXACT:
        return None
    for kind in (np.uint8, np.int8, np.int16):
        limits = np.iinfo(kind)
        if limits.min <= values.min() and values.max() <= limits.max:
            return Weights(values.astype(kind), float(np.ldexp(1.0, exponent)))
    return None
