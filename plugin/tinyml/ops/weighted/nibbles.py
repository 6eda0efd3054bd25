# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights of four bits: when the values of a layer allow them, and how they are stored.

Four bits are a property of values, wherever a model came from: if the weights of a layer, less their zero
point, are at most sixteen consecutive integers, u = w - lowest needs four bits. An int16 holds one element of
four filters, h = u0 + 16 u1 + 256 u2 + 4096 (u3 - 8).

Kernels in plain C add up x h, x (h >> 4), x (h >> 8) and x (h >> 12): each sum less 16 times the next is
that of one filter. Kernels with DSP instructions add up x h and x times its 12, 8 and 4 lower bits: of two
int16 at once, each costs one instruction to mask. The sums of the second, third and fourth filter are then
the upper 28, 24 and 20 bits of a word.
"""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, Layer
from tinyml.ops.framework.table_words import stream
from tinyml.ops.shared.quant import Multipliers, per_channel, quant_of
from tinyml.ops.weighted.halves import SUM_LIMIT as MODERATE
from tinyml.ops.weighted.pairs import INT8, in_fours
from tinyml.ops.weighted.weighted import Weighted, channel_multipliers

VALUES = 16
SYMMETRIC = -8  # the lowest weight of int4
SUM_LIMITS = 1 << np.array([31, 27, 23, 19])  # of what is left of 32 bits
NIBBLES = "weights of 4 filters in an int16, two elements in a word"
FOUR_WORDS = stream("every 4 filters", NIBBLES)
EIGHT_WORDS = (
    f"for every 8 filters: sums of biases; {NIBBLES}; for 4 filters, and for 4 more, exponents, a byte each, "
    "and factors"
)


PAIR_BYTES = "for every 2 filters: 16 times a weight of the second plus that of the first"


def centred_weights(layer: Layer[Weighted]) -> Array:
    """The weights less their zero point."""
    return layer.input(1).value.astype(np.int16) - quant_of(layer.input(1)).zero_points[0]


def lowest_weight(layer: Layer[Weighted]) -> int:
    """What is stored as 0: -8 if the weights are those of int4, else the least of them."""
    values = centred_weights(layer)
    low, high = int(values.min()), int(values.max())
    return SYMMETRIC if low >= SYMMETRIC and high < SYMMETRIC + VALUES else low


def four_bit_weights(layer: Layer[Weighted]) -> bool:
    """The weights, less their zero point, are at most 16 consecutive integers."""
    values = centred_weights(layer)
    return int(values.max()) - lowest_weight(layer) < VALUES


def int4_weights(layer: Layer[Weighted]) -> bool:
    """The weights, less their zero point, are between -8 and 7."""
    return four_bit_weights(layer) and lowest_weight(layer) == SYMMETRIC


def fields_fit(layer: Layer[Weighted]) -> bool:
    """For every input, accumulators of each second, third and fourth of four filters stay below 2²⁷, 2²³ and
    2¹⁹."""
    groups = layer.input(0).shape[-1] // layer.input(1).shape[-1]
    low, high = (in_fours(limits, groups).reshape(-1, 4) for limits in accumulator_limits(layer))
    return bool((low >= -SUM_LIMITS).all() and (high < SUM_LIMITS).all())


def moderate_accumulators(layer: Layer[Weighted]) -> bool:
    """Accumulators stay below 2²⁹ for every input."""
    low, high = accumulator_limits(layer)
    return bool(low.min() >= -MODERATE and high.max() < MODERATE)


def shifted_sums_fit(layer: Layer[Weighted]) -> bool:
    """Accumulators, shifted to the left where the output scale is smaller than theirs, stay below 2³¹ for
    every input."""
    low, high = accumulator_limits(layer)
    _, shift = channel_multipliers(layer)
    factor = np.int64(1) << np.clip(shift.astype(np.int64) + (1 if layer.op.round_once else 0), 0, 31)
    return bool((low * factor >= -(1 << 31)).all() and (high * factor < 1 << 31).all())


def accumulator_limits(layer: Layer[Weighted]) -> tuple[Array, Array]:
    """The least and the largest sum of each filter, with bias and zero points, over all int8 inputs."""
    rows = centred_weights(layer)
    wide = rows.reshape(rows.shape[0], -1).astype(np.int64)
    zero = quant_of(layer.input(0)).zero_point
    below, above = wide * (INT8.min - zero), wide * (INT8.max - zero)
    bias = layer.input(2).value.reshape(-1).astype(np.int64) if layer.has_input(2) else 0
    return bias + np.minimum(below, above).sum(axis=1), bias + np.maximum(below, above).sum(axis=1)


def nibbles(rows: Array, lowest: int) -> Array:
    """Filters (four or more, elements) as int16 (fours, elements); elements after the last are nothing."""
    fields = (rows - lowest).reshape(-1, 4, rows.shape[1]) - np.array([0, 0, 0, 8]).reshape(4, 1)
    packed = (fields * np.array([1, 16, 256, 4096]).reshape(4, 1)).sum(axis=1)
    return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 4))).astype("<i2")


def nibble_words(rows: Array, lowest: int) -> Array:
    """The same as words (fours, words): elements 0 and 2, 1 and 3, 4 and 6, 5 and 7, and so on."""
    halves = nibbles(rows, lowest)
    order = halves.reshape(len(halves), -1, 2, 2).transpose(0, 1, 3, 2)
    return np.ascontiguousarray(order).reshape(len(halves), -1).view("<i4")


def begin_sums(bias: Array) -> Array:
    """Of every four filters, what sums of fields begin with: b0, b0 + 16 b1, and so on, modulo 2³²."""
    fours = bias.reshape(-1, 4).astype(np.int64) * np.array([1, 16, 256, 4096])
    return fours.cumsum(axis=1).astype(np.uint32).view(np.int32).reshape(-1)


class NibbleStream:
    """The tables of a layer in fours: missing filters are zero."""

    def __init__(self, rows: Array, lowest: int, bias: Array, multipliers: Multipliers, groups: int = 1):
        channels = rows.shape[0]
        multiplier, shift = (per_channel(values, channels).astype(np.int64) for values in multipliers)
        self.fours = -(-channels // groups // 4)  # of a group
        self.words = nibble_words(self._whole(rows, groups, lowest), lowest)
        self.bias = self._whole(bias, groups)
        self.factor = self._whole((2 * multiplier).astype(np.uint32).view(np.int32), groups).reshape(-1, 4)
        exponent = self._whole((-shift - 1).astype(np.int8), groups)
        self.exponent = np.ascontiguousarray(exponent).view("<i4")

    @staticmethod
    def _whole(values: Array, groups: int, filler: int = 0) -> Array:
        return np.asarray(in_fours(values, groups, filler).reshape(-1, *values.shape[1:]))

    def in_fours(self, begin: Array) -> Array:
        """What sums begin with; weights; factors; exponents, a byte each."""
        parts = [
            np.concatenate([start, words, factor, [exponent]])
            for start, words, factor, exponent in zip(
                begin.reshape(-1, 4), self.words, self.factor, self.exponent, strict=True
            )
        ]
        return np.concatenate(parts).astype(np.int32)

    def in_eights(self, begin: Array) -> Array:
        """Two fours at a time, whose weights take turns by two elements."""
        parts: list[Array] = []
        start = begin.reshape(-1, 4)
        for four in range(0, self.fours, 2):
            both = slice(four, four + 2)
            parts += [start[both].reshape(-1), self.words[both].T.reshape(-1)]
            for one in (four, four + 1):
                parts += [self.exponent[one : one + 1], self.factor[one]]
        return np.concatenate(parts).astype(np.int32)


def nibble_stream(
    layer: Layer[Weighted], bias: Array, multipliers: Multipliers, together: int = 4
) -> NibbleStream:
    """The stream of a dense layer, or of a convolution, group by group; groups are whole fours or eights."""
    rows = centred_weights(layer)
    channels, groups = rows.shape[0], layer.input(0).shape[-1] // rows.shape[-1]
    lowest = lowest_weight(layer)
    rows = rows.reshape(channels, -1)
    multiplier, shift = (per_channel(values, channels) for values in multipliers)
    if groups == 1:
        missing = (0, -channels % together)
        rows = np.pad(rows, (missing, (0, 0)), constant_values=lowest)
        bias, multiplier, shift = (np.pad(values, missing) for values in (bias, multiplier, shift))
    return NibbleStream(rows, lowest, bias, (multiplier, shift), groups)


FILTER_WORDS = (
    "for each filter: bias; weights, eight in a word; factor (multiplier times 2); exponent (shift to the "
    "right, less 1)"
)


def filter_nibbles(rows: Array) -> Array:
    """Weights of int4, eight in a word; if there are four more, these come first, in the upper half."""
    whole = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))
    whole = np.pad(whole, ((0, 0), (whole.shape[1] % 8, 0)))
    eights = (whole & 15).astype(np.uint32).reshape(len(rows), -1, 8)
    return (
        np.asarray((eights << (4 * np.arange(8, dtype=np.uint32))).sum(axis=2))
        .astype(np.uint32)
        .view(np.int32)
    )


def one_by_one(layer: Layer[Weighted], bias: Array, multipliers: Multipliers) -> Array:
    """Filters as words that a kernel reads front to back: what ``FILTER_WORDS`` says."""
    rows = centred_weights(layer)
    channels = rows.shape[0]
    multiplier, shift = (per_channel(values, channels).astype(np.int64) for values in multipliers)
    factor = (2 * multiplier).astype(np.uint32).view(np.int32)
    words = filter_nibbles(rows.reshape(channels, -1))
    exponent = np.asarray(-shift - 1).astype(np.int32)
    return np.column_stack([bias, words, factor, exponent]).astype(np.int32).reshape(-1)


UNPACKED = 64
"""Elements of a kernel that depthwise layers unpack at most: TINYML_NIBBLES."""


def few_elements(layer: Layer[Weighted]) -> bool:
    """The kernel has at most 64 elements per channel."""
    return int(np.prod(layer.input(1).shape[1:3])) <= UNPACKED


def channel_nibbles(rows: Array) -> Array:
    """Weights of int4, those of each channel by themselves, as depthwise kernels unpack them.

    Eight are four bytes, the first four in the lower halves; the last ones are two in a byte.
    """
    whole = rows.shape[1] // 8 * 8
    eights = (rows[:, :whole] & 15).reshape(len(rows), -1, 2, 4)
    last = (np.pad(rows[:, whole:], ((0, 0), (0, rows.shape[1] % 2))) & 15).reshape(len(rows), -1, 2)
    parts = [
        (eights[:, :, 0] | eights[:, :, 1] << 4).reshape(len(rows), -1),
        last[:, :, 0] | last[:, :, 1] << 4,
    ]
    return np.concatenate(parts, axis=1).astype(np.uint8).view(np.int8).reshape(-1)


def pairs_of_bytes(rows: Array) -> Array:
    """16 b + a for every pair of filters, as wide integers; an odd filter's partner is zero."""
    wide = np.pad(rows.astype(np.int16), ((0, len(rows) % 2), (0, 0))).reshape(-1, 2, rows.shape[1])
    return np.asarray(wide[:, 0] + 16 * wide[:, 1])


def pairs_fit_bytes(layer: Layer[Weighted]) -> bool:
    """No weight below 0 is followed by -8 in the next filter."""
    rows = centred_weights(layer)
    return bool(pairs_of_bytes(rows.reshape(len(rows), -1)).min() >= INT8.min)


def vectors_in_pairs(layer: Layer[Weighted], lanes: int) -> Array:
    """For convolutions with Helium: pairs of filters one after the other, then up to a whole vector."""
    rows = centred_weights(layer)
    packed = pairs_of_bytes(rows.reshape(len(rows), -1)).astype(np.int8)
    return np.pad(packed.reshape(-1), (0, -packed.shape[1] % lanes))


def vectors_in_fours(layer: Layer[Weighted], lanes: int) -> Array:
    """For dense layers with Helium: vectors of two pairs take turns, in whole fours of filters."""
    rows = centred_weights(layer)
    packed = pairs_of_bytes(np.pad(rows, ((0, -len(rows) % 4), (0, 0)))).astype(np.int8)
    parts = [
        packed[four : four + 2, start : start + lanes].reshape(-1)
        for four in range(0, len(packed), 2)
        for start in range(0, packed.shape[1], lanes)
    ]
    return np.concatenate(parts)


def elements_in_pairs(layer: Layer[Weighted]) -> Array:
    """For RISC-V's vectors, (elements, channels): two elements in a byte, and a last odd one by itself."""
    rows = centred_weights(layer)
    columns = rows.reshape(len(rows), -1).T
    even = len(columns) // 2 * 2
    packed = (columns[0:even:2] & 15) | (columns[1:even:2] & 15) << 4
    return np.concatenate([packed, columns[even:] & 255]).astype(np.uint8).view(np.int8).reshape(-1)


def neighbours_in_bytes(weights: Array) -> Array:
    """Two weights in a byte, the first in its lower half, as TFLite and CMSIS-NN store them."""
    flat = weights.reshape(-1)
    pairs = np.pad(flat, (0, flat.size % 2)).astype(np.int16).reshape(-1, 2) & 15
    return (pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint8).view(np.int8)
