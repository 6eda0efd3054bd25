# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Products added up in float16, for ``arithmetic: float16``: what kernels share, and the same in numpy.

Eight sums fit into a vector of Helium, where four floats do. To bound what rounding loses, no more than
``BLOCK`` products are added up in float16; the sums of blocks are added as floats.
"""

from __future__ import annotations

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Array, Layer
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.weighted.float16_weights import float16_table
from tinyml.ops.weighted.weighted import Weighted

BLOCK = 32
"""TINYML_SUMS_F16_BLOCK"""

LARGEST_SUM = 62.0
"""Of the magnitudes of a block's weights: times 1,024, and with all roundings, that is less than 65,504."""

TOLERANCE = 0.02
"""How far outputs may be from those of float32 arithmetic, as a part of the largest."""

FEW_WEIGHTS = 192
"""Of a group: smaller ones take fewer instructions in float32."""

TILES = (16, 8)
"""Filters that are computed together; those that are left are a tile of their own."""

LANES = 8

WORDS = "by 16 filters, then 8, then the rest: an element of each in turn; of 8 the 1st, 5th, 2nd, 6th, .."


def sums_stay_finite(layer: Layer) -> bool:
    """The magnitudes of the weights in a block of 32 add up to less than 62, so that inputs up to 1,024 give
    finite sums."""
    filters = layer.input(1).value
    rows = np.abs(filters.reshape(filters.shape[0], -1).astype(np.float64))
    starts = np.arange(0, rows.shape[1], BLOCK)
    return bool(np.add.reduceat(rows, starts, axis=1).max(initial=0) < LARGEST_SUM)


def enough_weights(layer: Layer[Weighted]) -> bool:
    """A group has at least 192 weights: with fewer, float16 takes more instructions than float32."""
    return layer.input(1).elements >= FEW_WEIGHTS * getattr(layer.op, "groups", 1)


def adds_in_float16(target: Target) -> bool:
    """Whether a core has vectors of float16, or is a computer, which repeats what these compute."""
    return (target.mve and target.fpu) or target.name == "host"


def weights_table(sheet: Sheet, filters: Array, groups: int = 1) -> str:
    """The table of weights; a vector can be read from its last weight on."""
    values = tiles(filters.reshape(groups, filters.shape[0] // groups, -1))
    spare = LANES if filters.shape[0] // groups % LANES else 0
    return float16_table(sheet, "weights", np.pad(values, (0, spare)), WORDS)


def tiles(rows: Array) -> Array:
    """Filters of groups in the order of struct tinyml_sums_f16."""
    groups, left, size = rows.shape
    whole = left // LANES * LANES
    order = np.arange(left)
    order[:whole] = order[:whole].reshape(-1, 2, LANES // 2).swapaxes(1, 2).reshape(-1)
    rows = rows[:, order]
    parts, begin = [], 0
    for together in (*TILES, left - whole):
        end = begin + (left - begin) // together * together if together else begin
        found = rows[:, begin:end].reshape(groups, -1, max(together, 1), size)
        parts.append(found.swapaxes(2, 3).reshape(groups, -1))
        begin = end
    return np.concatenate(parts, axis=1).reshape(-1)


def window_bytes(elements: int, windows: int) -> int:
    """Scratch memory for windows as float16."""
    return windows * (elements + elements % 2) * 2


def summed(windows: Array, filters: Array, bias: Array | None) -> Array:
    """What the C computes, bit for bit: float32 sums of each window (…, elements) with each filter.

    The product of two float16 numbers is exact as a float64. So is its sum with a third, or rounding it to
    float16 gives the same as without the bits that it has lost (``sums_exact_f16.h`` says why).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        x = windows.astype(np.float16).astype(np.float64)[..., None, :]
        w = filters.astype(np.float64)
        total = np.zeros(np.broadcast_shapes(x.shape, w.shape)[:-1], np.float32)
        total = total if bias is None else total + bias.astype(np.float32)
        for start in range(0, w.shape[-1], BLOCK):
            block = np.zeros(total.shape, np.float16)
            for k in range(start, min(start + BLOCK, w.shape[-1])):
                block = (block.astype(np.float64) + x[..., k] * w[..., k]).astype(np.float16)
            total = total + block.astype(np.float32)
        return total
