# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Built-in kernels for RISC-V's vectors: the layout of their tables, and their constraints."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, Layer


def channels_last(filters: Array) -> Array:
    """Weights (elements, channels): those that one element of the input is multiplied by lie together."""
    return np.ascontiguousarray(filters.reshape(filters.shape[0], -1).T).reshape(-1)


def several_channels(layer: Layer) -> bool:
    """There are at least 4 output channels, one per vector lane."""
    return layer.output.shape[-1] >= 4
