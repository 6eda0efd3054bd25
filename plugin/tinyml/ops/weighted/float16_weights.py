# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float layers whose weights are float16 numbers, which flash holds as such: half the bytes of float32.

The C widens them before it multiplies, so the results are those of floats, bit for bit. The form is found in
the numbers themselves, whatever format they came from, and only layers with exactly such weights have it.
"""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, Layer
from tinyml.ops.framework.kernel import Sheet

ALIGNMENT = 4
"""Bytes: assembly reads two float16 numbers at once."""


def are_float16(values: Array) -> bool:
    """Whether float16 holds all of these numbers exactly, and they are finite, as vectors require."""
    with np.errstate(over="ignore"):
        halves = values.astype(np.float16)
    return bool(np.isfinite(halves).all()) and np.array_equal(halves.astype(np.float32), values)


def float16_weights(layer: Layer) -> bool:
    """All weights are float16 numbers."""
    return are_float16(layer.input(1).value)


def float16_table(sheet: Sheet, name: str, values: Array, holds: str) -> str:
    """A table of float16 numbers, which C knows as 16 bits each."""
    bits = values.astype(np.float16).view(np.uint16)
    return sheet.table(name, bits, ALIGNMENT, f"float16 numbers as their bits: {holds}")


def even(values: Array, axis: int) -> Array:
    """With a zero at the end of an axis of odd length, so that what follows is aligned too."""
    spare = [(0, 0)] * values.ndim
    spare[axis] = (0, values.shape[axis] % 2)
    return np.pad(values, spare)
