# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Two inputs in one word, h = 65536 p + q: when the sums of two products with weights can be taken apart."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Layer
from tinyml.ops.weighted.pairs import sum_limits
from tinyml.ops.weighted.weighted import Weighted

MOST = 255
"""Σ |w| of products with int8 that stay within int16: 255 · 128 is below 2¹⁵."""

SUM_LIMIT = 1 << 29
"""Of sums that kernels for Armv6-M multiply in 16-bit halves."""


def neighbours_fit(layer: Layer[Weighted]) -> bool:
    """No filter has two neighbouring weights of -128."""
    filters = layer.input(1).value
    rows = np.abs(filters.reshape(filters.shape[0], -1).astype(np.int64))
    rows = np.pad(rows, ((0, 0), (0, rows.shape[1] % 2)))
    return bool((rows[:, ::2] + rows[:, 1::2]).max(initial=0) <= MOST)


def moderate_sums(layer: Layer[Weighted]) -> bool:
    """Accumulators stay below 2²⁹ for every input."""
    low, high = sum_limits(layer)
    return bool(low.min() >= -SUM_LIMIT and high.max() < SUM_LIMIT)
