# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Two filters in one int16, h = 256 p + q: the layout of such weights, and when it is exact.

A kernel adds up A = Σ h x and Q = Σ q x, where q is the low byte of h; then Σ p x = (A - Q) / 256. Sums wrap
around modulo 2³², so that no intermediate value matters: h must fit into 16 bits and Σ p x into 24. If p is
-128 and q negative, h does not fit: p is then stored as -127, and a correction subtracts x once more.
"""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, Layer
from tinyml.ops.framework.table_words import stream
from tinyml.ops.shared.quant import Multipliers, per_channel, quant_of
from tinyml.ops.weighted.records import folded_bias
from tinyml.ops.weighted.weighted import Weighted

INT8 = np.iinfo(np.int8)
INT16 = np.iinfo(np.int16)
SUM_LIMIT = 1 << 23
SIX = 6


def pairs_are_exact(layer: Layer[Weighted]) -> bool:
    """Accumulators of every second filter stay below 2²³ for every input, and pairs of weights fit into 16
    bits."""
    filters = layer.input(1).value
    return pairs_fit(layer, filters.reshape(filters.shape[0], -1), _groups(layer))


def few_corrections(layer: Layer[Weighted]) -> bool:
    """Accumulators of every second filter stay below 2²³ for every input, and at most one pair of weights in
    eight does not fit into 16 bits."""
    too_low = _too_low(layer)
    low, high = (limit[::2] for limit in sum_limits(layer))
    room = -INT8.min * too_low.sum(axis=1)
    fits = (low - room).min() >= -SUM_LIMIT and (high + room).max() < SUM_LIMIT
    return bool(fits and 8 * too_low.sum() <= too_low.size)


def corrections(layer: Layer[Weighted]) -> int:
    """How many pairs of weights do not fit into 16 bits."""
    return int(_too_low(layer).sum())


def _too_low(layer: Layer[Weighted]) -> Array:
    filters = layer.input(1).value
    return packed(filters.reshape(filters.shape[0], -1), 1) < INT16.min


def pairs_fit(layer: Layer[Weighted], rows: Array, groups: int) -> bool:
    """The same for the rows of weights of so many groups, which may have more zeros than the layer's."""
    low, high = sum_limits(layer)
    first = _paired(np.arange(rows.shape[0]), groups, -1)[:, 0]
    first = first[first >= 0]
    fits = low[first].min() >= -SUM_LIMIT and high[first].max() < SUM_LIMIT
    return bool(fits and packed(rows, groups).min() >= INT16.min)


def sum_limits(layer: Layer[Weighted]) -> tuple[Array, Array]:
    """The least and the largest sum of each filter, with bias and zero points, over all int8 inputs."""
    filters = layer.input(1).value
    rows = filters.reshape(filters.shape[0], -1).astype(np.int64)
    zero = quant_of(layer.input(0)).zero_point
    below, above = rows * (INT8.min - zero), rows * (INT8.max - zero)
    bias = folded_bias(layer, filters).astype(np.int64) + zero * rows.sum(axis=1)
    return bias + np.minimum(below, above).sum(axis=1), bias + np.maximum(below, above).sum(axis=1)


def pair_stream(
    filters: Array, bias: Array, multipliers: Multipliers, groups: int = 1, corrected: bool = False
) -> Array:
    """Filters as words that a kernel reads front to back: in fours, the last one or two as a pair.

    A block has the biases; the weights; the factors; the exponents, a byte each. Weights go by four elements:
    the even elements of the first pair and of the second, then the odd ones, two int16 in a word. Where they
    are ``corrected``, corrections follow the weights.
    """
    channels = filters.shape[0]
    each = channels // groups
    factor, exponent = _factors(multipliers, channels)
    rows = filters.reshape(channels, -1)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))
    whole = [in_fours(values, groups) for values in (bias, rows, factor, exponent)]
    parts: list[Array] = []
    for group in range(groups):
        for begin in range(0, each, 4):
            size = 4 if each - begin > 2 else 2
            biases, weights, factors, exponents = (values[group, begin : begin + 4] for values in whole)
            parts += [
                biases[:size],
                _corrected_words(weights[:size]) if corrected else _words(packed(weights[:size], 1)),
                factors[:size],
                exponents.view("<i4"),
            ]
    return np.concatenate(parts).astype(np.int32)


def in_fours(values: Array, groups: int, filler: int = 0) -> Array:
    """By group, with ``filler`` for channels after its last one, up to a multiple of four."""
    each = values.reshape(groups, -1, *values.shape[1:])
    padding = [(0, 0), (0, -each.shape[1] % 4), *[(0, 0)] * (each.ndim - 2)]
    return np.pad(each, padding, constant_values=filler)


PAIRED = "weights of two filters in an int16 (256 p + q), two elements in a word"
PAIR_WORDS = stream("every 4 filters, or the last 2", PAIRED)
CORRECTED_WORDS = stream("every 4 filters, or the last 2", f"{PAIRED}, and corrections of sums")
SIX_WORDS = (
    f"for every 6 filters: biases; {PAIRED}; then for 3 filters, and for 3 more, exponents, a byte each, and "
    f"factors; {PAIR_WORDS}"
)


def six_stream(filters: Array, bias: Array, multipliers: Multipliers) -> Array:
    """Filters as words: in sixes, then the last ones in fours.

    Six filters have their biases; the weights, by four elements as in fours; then for the first three and for
    the last three the exponents, a byte each, and the factors.
    """
    channels = filters.shape[0]
    factor, exponent = _factors(multipliers, channels)
    whole = channels - last_filters(channels)
    parts: list[Array] = []
    for begin in range(0, whole, SIX):
        chosen = slice(begin, begin + SIX)
        parts += [bias[chosen], _words(packed(filters[chosen], 1))]
        for three in (slice(begin, begin + 3), slice(begin + 3, begin + SIX)):
            parts += [np.pad(exponent[three], (0, 1)).view("<i4"), factor[three]]
    rest = slice(whole, channels)
    if whole < channels:
        multiplier, shift = (per_channel(values, channels)[rest] for values in multipliers)
        parts.append(pair_stream(filters[rest], bias[rest], (multiplier, shift)))
    return np.concatenate(parts).astype(np.int32)


def _factors(multipliers: Multipliers, channels: int) -> tuple[Array, Array]:
    """Multipliers doubled, for they have a bit to spare; and what products are shifted by, less one."""
    multiplier, shift = (per_channel(values, channels).astype(np.int64) for values in multipliers)
    return (2 * multiplier).astype(np.uint32).view(np.int32), (-shift - 1).astype(np.int8)


def last_filters(channels: int) -> int:
    """How many filters are left to fours: those that sixes leave, but not one or two alone."""
    rest = channels % SIX
    return rest + SIX if rest in (1, 2) else rest


def packed(rows: Array, groups: int) -> Array:
    """256 p + q for every pair of rows, as wide integers."""
    wide = _paired(rows.astype(np.int64), groups, 0)
    return np.asarray(256 * wide[:, 0] + wide[:, 1])


def _paired(values: Array, groups: int, absent: int) -> Array:
    """Neighbours of a group together: (pairs, 2, ...)."""
    each = values.reshape(groups, values.shape[0] // groups, *values.shape[1:])
    missing = each.shape[1] % 2
    padding = [(0, 0), (0, missing), *[(0, 0)] * (each.ndim - 2)]
    if missing:
        each = np.pad(each, padding, constant_values=absent)
    return each.reshape(-1, 2, *values.shape[1:])


def _words(pairs: Array) -> Array:
    """Words of two elements: (pairs, elements) by four elements, even ones before odd ones."""
    fours = pairs.astype(np.int16).reshape(pairs.shape[0], -1, 2, 2)  # (pairs, fours, which half, parity)
    ordered = np.ascontiguousarray(fours.transpose(1, 3, 0, 2))  # (fours, parity, pairs, which half)
    return ordered.astype("<i2").reshape(-1).view("<i4")


def _corrected_words(weights: Array) -> Array:
    """Words of pairs that may not fit into 16 bits, then a word for each correction, and 0.

    A correction is the distance in bytes from its input to the end of two columns, whose words take turns;
    and one more for the second pair.
    """
    pairs = packed(weights, 1)
    too_low = pairs < INT16.min
    which, element = np.nonzero(too_low)
    place = 16 * (element // 4) + 8 * (element % 2) + 2 * (element // 2 % 2)
    corrections = 4 * weights.shape[1] - place + which
    return np.concatenate([_words(pairs + 256 * too_low), corrections, [0]])


def _groups(layer: Layer[Weighted]) -> int:
    """Of a convolution; a dense layer has one."""
    filters = layer.input(1).value
    return layer.input(0).shape[3] // filters.shape[3] if filters.ndim == 4 else 1
