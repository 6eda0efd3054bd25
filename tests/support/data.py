# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arrays for cases: random, but the same in every run."""

from __future__ import annotations

import zlib

import numpy as np

from tinyml.ir import Array


def real(*shape: int, low: float = -3.0, high: float = 3.0, dtype: str = "float32", seed: int = 0) -> Array:
    return _generator(shape, dtype, seed).uniform(low, high, shape).astype(dtype)


def whole(*shape: int, low: int = -100, high: int = 100, dtype: str = "int32", seed: int = 0) -> Array:
    """Integers from ``low`` to ``high``, ends included; unsigned types start at 0."""
    low = max(low, int(np.iinfo(dtype).min))
    return _generator(shape, dtype, seed).integers(low, high, shape, dtype=dtype, endpoint=True)


def truth(*shape: int, seed: int = 0) -> Array:
    return _generator(shape, "bool", seed).integers(0, 2, shape).astype(np.bool_)


def _generator(shape: tuple[int, ...], dtype: str, seed: int) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(f"{shape} {dtype} {seed}".encode()))
