# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Constraints on element types that kernels of many operators share."""

from __future__ import annotations

from tinyml.ir import DType, Layer


def real_numbers(layer: Layer) -> bool:
    """Input and output are floating point."""
    return layer.input(0).dtype.is_float and layer.output.dtype.is_float


def single_precision(layer: Layer) -> bool:
    """Input and output are float32."""
    return layer.input(0).dtype is DType.FLOAT32 and layer.output.dtype is DType.FLOAT32
