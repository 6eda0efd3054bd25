# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""tanh and the logistic function of int16 with three integer bits, from one interpolated table.

``runtime/recurrent/gates_s16.c`` and ``gates_steps_s16.c`` have the same table; a test compares them.
"""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array

STEPS = 512
"""Of the table, from -8 to 8."""

TANH = np.clip(np.rint(32768 * np.tanh((np.arange(STEPS + 1) - STEPS // 2) / 32)), -32767, 32767).astype(
    np.int64
)


def tanh(x: Array) -> Array:
    """In units of 2^-15; ``x`` is int16 in units of 2^-12."""
    return _interpolated(x + (1 << 15), 7)


def logistic(x: Array) -> Array:
    """(1 + tanh(x / 2)) / 2, in units of 2^-15: from 0 to 32767."""
    return np.asarray((_interpolated(x + (1 << 16), 8) + (1 << 15)) >> 1)


def _interpolated(place: Array, bits: int) -> Array:
    first = place >> bits
    share = place & ((1 << bits) - 1)
    step = TANH[first + 1] - TANH[first]
    return np.asarray(TANH[first] + ((step * share + (1 << (bits - 1))) >> bits))


def saturated(x: Array) -> Array:
    """As int16."""
    return np.asarray(np.clip(x, -32768, 32767))
