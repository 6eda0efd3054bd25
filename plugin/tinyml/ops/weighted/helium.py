# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Built-in kernels for cores with Helium (MVE): the layout of their tables, and their constraints."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, Layer
from tinyml.ops.shared.quant import clamp_range, quant_of
from tinyml.ops.weighted.records import folded_bias
from tinyml.ops.weighted.weighted import Weighted, channel_multipliers, largest_shift

LANES = 16  # bytes of a vector
DEPTHWISE_TAPS = 64  # TINYML_DEPTHWISE_MVE_TAPS


def whole_vectors(elements: int) -> int:
    """Bytes of the vectors that hold this many."""
    return -(-elements // LANES) * LANES


PAIR_WORDS = "for every 2 filters: vectors of 16 weights, of each filter in turn"
CHANNEL_WORDS = "for every 4 filters: biases; multipliers, in units of 2^-31; shifts, a byte each"


def in_pairs(filters: Array) -> Array:
    """Filters for convolutions: the vectors of two alternate, so that one pointer reads both.

    The last vector of the first one is filled up with zeros. That of the second one is not: where it
    ends, the next pair begins. An odd filter's partner is zero.
    """
    count, size = filters.shape[0], filters[0].size
    rows = np.zeros((-(-count // 2) * 2, whole_vectors(size)), filters.dtype)
    rows[:count, :size] = filters.reshape(count, size)
    pairs = rows.reshape(-1, 2, rows.shape[1] // LANES, LANES).transpose(0, 2, 1, 3)
    spare = rows.shape[1] - size
    kept = pairs.reshape(pairs.shape[0], -1)[:, : 2 * rows.shape[1] - spare]
    return np.concatenate([kept.reshape(-1), np.zeros(spare, filters.dtype)])


def in_fours(filters: Array) -> Array:
    """Filters for dense layers: the vectors of four take turns.

    Those that do not fill a last group follow one after the other.
    """
    rows = filters.reshape(filters.shape[0], -1)
    whole = rows.shape[0] // 4 * 4
    parts = [
        rows[group : group + 4, start : start + LANES].reshape(-1)
        for group in range(0, whole, 4)
        for start in range(0, rows.shape[1], LANES)
    ]
    return np.concatenate([*parts, rows[whole:].reshape(-1)])


def whole_fours(channels: int) -> Array:
    """All channels in order, the last repeated to a multiple of four: tables are read four at a time."""
    return np.minimum(np.arange(-(-channels // 4) * 4), channels - 1)


def grouped_pairs(filters: Array, groups: int) -> tuple[Array, int]:
    """The same for the filters of several groups; and the bytes of one group."""
    each = filters.reshape(groups, filters.shape[0] // groups, -1)
    spare = whole_vectors(each.shape[2]) - each.shape[2]
    parts = [in_pairs(group) for group in each]
    kept = [part[: len(part) - spare] for part in parts[:-1]]
    return np.concatenate([*kept, parts[-1]]), len(parts[-1]) - spare


def channel_words(layer: Layer[Weighted], filters: Array, groups: int = 1) -> Array:
    """What the sums of four filters need, for convolutions: biases, multipliers, shifts (a byte each)."""
    each = filters.shape[0] // groups
    fours = np.add.outer(each * np.arange(groups), whole_fours(each)).reshape(-1)
    multiplier, shift = channel_multipliers(layer)
    parts = (
        folded_bias(layer, filters)[fours].reshape(-1, 4),
        multiplier[fours].reshape(-1, 4),
        np.ascontiguousarray(shift[fours].astype(np.int8).reshape(-1, 4)).view("<i4"),
    )
    return np.concatenate(parts, axis=1).astype(np.int32).reshape(-1)


def channel_blocks(channels: int) -> Array:
    """The channels that a depthwise kernel computes at a time: blocks of sixteen, one per row.

    The last block ends with the last channel. If there are fewer than sixteen, the last is repeated; eight
    come twice, for two neighbouring positions.
    """
    if channels == LANES // 2:
        return np.tile(np.arange(channels), (1, 2))
    starts = [min(block, max(channels - LANES, 0)) for block in range(0, channels, LANES)]
    return np.minimum(np.add.outer(np.array(starts), np.arange(LANES)), channels - 1)


def channel_order(channels: int) -> Array:
    """The order in which that kernel reads tables of channels.

    In each block 0, 4, 8, 12, then 1, 5, 9, 13 and so on: what multiplying and widening vectors makes
    of it.
    """
    blocks = channel_blocks(channels)
    return np.asarray(blocks.reshape(-1, 4, 4).transpose(0, 2, 1).reshape(-1))


def loop(layer: Layer[Weighted]) -> str:
    """Which loop of a kernel rounds as the layer does; relu: there are no outputs below the zero point."""
    if layer.op.round_once:
        return "once"
    low, _ = clamp_range(layer.op.clamp, layer.output)
    return "relu" if low >= quant_of(layer.output).zero_point else "twice"


def conv_loop(layer: Layer[Weighted]) -> str:
    """The same for convolutions, where relu also requires that no other limit applies."""
    found, zero = loop(layer), quant_of(layer.output).zero_point
    if found == "relu" and (zero, *clamp_range(layer.op.clamp, layer.output)) != (-128, -128, 127):
        return "twice"
    return found


def depthwise_loop(layer: Layer[Weighted]) -> str:
    """The same for depthwise convolutions; only 3x3 kernels have a loop for relu."""
    found = conv_loop(layer)
    if layer.input(1).shape[1:3] != (3, 3):
        return "any_once" if found == "once" else "any_twice"
    return f"3x3_{found}"


def right_shifts(layer: Layer[Weighted]) -> bool:
    """In every channel, the output scale is larger than the accumulator scale; with one rounding, more than
    twice as large."""
    return largest_shift(layer) <= (-1 if layer.op.round_once else 0)


def proper_shifts(layer: Layer[Weighted]) -> bool:
    """In every channel, the output scale is more than twice the accumulator scale, or larger than it with a
    ReLU."""
    return largest_shift(layer) <= (0 if conv_loop(layer) == "relu" else -1)


def one_group(layer: Layer) -> bool:
    """Every filter reads all input channels."""
    return layer.input(1).shape[3] == layer.input(0).shape[3]


def one_filter_per_channel(layer: Layer) -> bool:
    """Input and output have the same number of channels."""
    return layer.input(0).shape[3] == layer.output.shape[3]


def few_taps(layer: Layer) -> bool:
    """The kernel has at most 64 elements per channel."""
    return layer.input(1).shape[1] * layer.input(1).shape[2] <= DEPTHWISE_TAPS


def sums_of_two(layer: Layer) -> bool:
    """At most one weight of each channel is -128."""
    lowest = np.count_nonzero(layer.input(1).value == -128, axis=(0, 1, 2))
    return bool(np.all(lowest <= 1))
