# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Filters as a stream of words, as kernels in portable C read them, and their constraints."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, Layer
from tinyml.ops.framework.table_words import stream
from tinyml.ops.shared.quant import Multipliers, per_channel
from tinyml.ops.weighted.weighted import Weighted, largest_shift


def filter_stream(
    filters: Array, bias: Array, multipliers: Multipliers, together: int, groups: int = 1
) -> Array:
    """Filters as words that a kernel reads front to back, with what their sums need, ``together`` at a time.

    First come the biases; then the weights, a word of each filter in turn; then the factors; then the
    exponents, a byte each. A factor is a multiplier doubled, for it has a bit to spare; an exponent is one
    less than what a product is shifted by. What is missing to whole words or filters is zero.
    """
    channels = filters.shape[0]
    multiplier, shift = (per_channel(values, channels).astype(np.int64) for values in multipliers)

    def sorted_in(values: Array) -> Array:
        """Values of every channel in an array (filters that are read together, filters, values)."""
        each = values.reshape(groups, channels // groups, -1)
        each = np.pad(each, ((0, 0), (0, -each.shape[1] % together), (0, 0)))
        return each.reshape(-1, together, each.shape[2])

    def words(values: Array) -> Array:
        """Rows of bytes as rows of words."""
        whole = np.pad(values, ((0, 0), (0, -values.shape[1] % 4)))
        return np.ascontiguousarray(whole).astype(np.int8).view("<i4")

    weights = sorted_in(words(filters.reshape(channels, -1)))
    parts = (
        sorted_in(bias)[:, :, 0],
        weights.transpose(0, 2, 1).reshape(weights.shape[0], -1),
        sorted_in((2 * multiplier).astype(np.uint32).view(np.int32))[:, :, 0],
        words(sorted_in(-shift - 1)[:, :, 0]),
    )
    return np.concatenate(parts, axis=1).astype(np.int32).reshape(-1)


TURNS = "weights, four in a word, a word of each filter in turn"


def stream_words(together: int) -> str:
    """The words of ``filter_stream``, for readers of the generated C."""
    if together == 1:
        return (
            "for each filter: bias; weights, four in a word; factor (multiplier times 2); exponent (shift "
            "to the right, less 1)"
        )
    return stream(f"every {together} filters", TURNS)


def quads(filters: Array) -> Array:
    """Weights in an order that a stream of four filters makes words of: one word has an element of all four.

    The first three bytes of such a word are larger than the weights by 128, modulo 256.
    """
    rows = np.pad(filters, ((0, 0), (0, -filters.shape[1] % 4))).astype(np.int8)
    blocks = rows.reshape(len(rows) // 4, 4, rows.shape[1] // 4, 4)  # (fours, filters, words, elements)
    blocks = blocks ^ np.array([-128, -128, -128, 0], np.int8).reshape(4, 1, 1)
    return np.asarray(blocks.transpose(0, 3, 2, 1).reshape(rows.shape))


def right_shifts(layer: Layer[Weighted]) -> bool:
    """In every channel, the output scale is more than twice the accumulator scale."""
    return largest_shift(layer) < 0
