# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Directed inputs: values at which two computations are likely to differ, always the same ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.ir import Array, DType, Tensor

DIRECTED = 12  # of them
SEED = 38


def directed(tensors: Sequence[Tensor]) -> list[dict[str, Array]]:
    """Zeros, both ends, ends in turn, and random values, for all tensors together."""
    rng = np.random.default_rng(SEED)
    return [{tensor.name: _filled(tensor, kind, rng) for tensor in tensors} for kind in range(DIRECTED)]


def _filled(tensor: Tensor, kind: int, rng: np.random.Generator) -> Array:
    low, high = (-4.0, 4.0) if tensor.dtype.is_float else tensor.dtype.limits
    if tensor.dtype is DType.BOOL:
        return np.asarray(rng.random(tensor.shape) < 0.5)
    if not tensor.dtype.is_float and high > 1 << 20:
        low, high = -100, 100  # counts and indices
    zero = tensor.quant.zero_point if tensor.quant is not None and not tensor.quant.per_channel else 0
    if kind < 3:
        values = np.full(tensor.shape, (zero, low, high)[kind], np.float64)
    elif kind == 3:
        values = np.where(np.arange(tensor.elements) % 2, low, high).reshape(tensor.shape)
    else:
        values = rng.uniform(low, high, tensor.shape)
    values = values if tensor.dtype.is_float else np.rint(values)
    return np.asarray(values, tensor.dtype.numpy)
