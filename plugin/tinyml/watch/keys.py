# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The integers by which elements are compared, and an integer logarithm: as in runtime/watch/watch.c."""

from __future__ import annotations

import math

import numpy as np

from tinyml.ir import Array, DType

COUNTED = frozenset(
    (DType.INT8, DType.UINT8, DType.BOOL, DType.INT16, DType.UINT16, DType.INT32, DType.FLOAT32)
)
"""Types whose order fits an int32."""

_TABLE = tuple(round(65536 * math.log2(1 + step / 16)) for step in range(17))


def keys(array: Array) -> Array:
    """The place of each element in the order of its type; floats by their bits."""
    if array.dtype.kind != "f":
        return array.astype(np.int64)
    bits = np.ascontiguousarray(array, np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


def value_of(key: int, dtype: DType) -> float:
    """The element with this key."""
    if dtype is not DType.FLOAT32:
        return float(key)
    bits = np.array([key ^ 0x7FFFFFFF if key < 0 else key], np.int64).astype(np.int32)
    return float(bits.view(np.float32)[0])


def log2(x: int) -> int:
    """log2(x) in 1/65536, for 1 <= x <= 65536."""
    whole = x.bit_length() - 1
    fraction = ((x << 16) >> whole) & 0xFFFF
    index = fraction >> 12
    low, high = _TABLE[index], _TABLE[index + 1]
    return (whole << 16) + low + (((high - low) * (fraction & 0xFFF)) >> 12)
