# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on the bands of a spectrum in integers: roots, noise reduction, gain, logarithm.

The audio front end ``micro`` and TensorFlow Lite Micro's signal operators share it; the C is in
``runtime/signal/bands.h``. Values are uint32 unless stated otherwise.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array

U32, U64 = np.uint32, np.uint64
WORD = U64(0xFFFFFFFF)
PCAN_SIGNAL_BITS, PCAN_OUTPUT_BITS = 12, 6
LOG_BITS = 16
LOG_SEGMENT_BITS = 7
LN2 = 45426  # ln 2 in sixteen bits


def bits(x: Array) -> Array:
    """How many bits each number has; 0 has none."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int32)


def root(x: Array) -> Array:
    """The square root of uint64, rounded, as uint64; below 2^32 it stays below 2^16."""
    x = x.astype(U64)
    found = np.minimum(np.sqrt(x.astype(np.float64)), 0xFFFFFFFF).astype(U64)
    found -= (found * found > x).astype(U64)
    found += ((found + U64(1)) ** 2 <= x).astype(U64) * (found < WORD)
    up = x - found * found > found
    up &= ~((x < U64(1 << 32)) & (found == U64(0xFFFF))) & (found != WORD)
    return found + up.astype(U64)


@dataclass(frozen=True)
class Smoothing:
    """How noise is followed: shares of a new value and of the old one, in ``bits``, for even and odd bands.

    Estimates have ``noise_bits`` more bits than the signal. ``least`` is the share of the signal that is left
    at least. ``clamps``: the estimate stays below the signal.
    """

    even: tuple[int, int]
    odd: tuple[int, int]
    least: int
    bits: int
    noise_bits: int
    clamps: bool = False


def without_noise(signal: Array, noise: Array, how: Smoothing) -> tuple[Array, Array]:
    """The signal of one frame without noise, and the next estimate of the noise."""
    even = np.arange(len(signal)) % 2 == 0
    share, rest = (np.where(even, *pair).astype(U64) for pair in zip(how.even, how.odd, strict=True))
    row, shift = signal.astype(U64), U64(how.bits)
    large = (row << U64(how.noise_bits)) & WORD
    estimate = ((large * share + noise.astype(U64) * rest) >> shift) & WORD
    taken = np.minimum(estimate, large)
    least = ((row * U64(how.least)) >> shift) & WORD
    cleaned = np.maximum((large - taken) >> U64(how.noise_bits), least)
    return cleaned.astype(U32), (taken if how.clamps else estimate).astype(U32)


def with_gain(signal: Array, noise: Array, gains: Array, shift: int) -> Array:
    """Divided by a power of the noise, then bent so that small values become smaller.

    ``gains`` (33, 3): a parabola for each number of bits that the noise may have.
    """
    lengths = bits(noise)
    y, linear, square = np.moveaxis(gains.astype(np.int32)[lengths], -1, 0)
    up = np.maximum(11 - lengths, 0).astype(U32)
    down = np.maximum(lengths - 11, 0).astype(U32)
    part = (((noise << up) >> down) & U32(0x3FF)).astype(np.int32)
    gain = ((((square * part >> 5) + (linear << 5)) * part + (1 << 14)) >> 15) + y
    factor = gain.astype(np.int16).astype(U32).astype(U64)
    ratio = ((signal.astype(U64) * factor) >> U64(shift)) & WORD
    steps = PCAN_SIGNAL_BITS - PCAN_OUTPUT_BITS
    bent = (ratio * ratio) >> U64(2 + PCAN_SIGNAL_BITS + steps)
    straight = (ratio >> U64(steps)) - U64(1 << PCAN_OUTPUT_BITS)
    return np.where(ratio < U64(2 << PCAN_SIGNAL_BITS), bent, straight).astype(U32)


@cache
def log_curve() -> Array:
    """log2(1 + x) - x at 129 places from 0 to 1, in 16 bits; then a number that does not count."""
    places = [i / (1 << LOG_SEGMENT_BITS) for i in range((1 << LOG_SEGMENT_BITS) + 1)]
    return np.array([*(round((math.log2(1 + x) - x) * (1 << LOG_BITS)) for x in places), 0], np.uint16)


def logarithm(x: Array, scale: int) -> Array:
    """The natural logarithm times ``scale``, rounded; 0 for 0 and 1."""
    known = np.maximum(x, 1).astype(np.int64)
    whole = bits(known.astype(U32)).astype(np.int64) - 1
    part = known - (1 << whole)
    part = np.where(
        whole < LOG_BITS, part << np.maximum(LOG_BITS - whole, 0), part >> np.maximum(whole - LOG_BITS, 0)
    )
    segment = part >> (LOG_BITS - LOG_SEGMENT_BITS)
    curve = log_curve().astype(np.int64)
    inside = part - (segment << (LOG_BITS - LOG_SEGMENT_BITS))
    above = curve[segment] + ((curve[segment + 1] - curve[segment]) * inside >> LOG_BITS)
    binary = (whole << LOG_BITS) + part + above
    half = 1 << (LOG_BITS - 1)
    natural = (LN2 * binary + half) >> LOG_BITS
    scaled = ((natural * scale + half) & 0xFFFFFFFF) >> LOG_BITS
    return np.where(x > 1, scaled, 0).astype(U32)
