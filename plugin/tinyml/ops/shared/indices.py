# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Indices that arrive at run time, in numpy: as <tinyml/index.h> treats them."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array


def in_range(indices: Array, size: Array | int) -> Array:
    """Negative indices count from the end; others are kept inside, as the generated C does."""
    wide = indices.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + size, wide), 0, np.asarray(size) - 1)
