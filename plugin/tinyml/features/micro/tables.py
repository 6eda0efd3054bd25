# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The constants of a micro front end, computed as its authors' library computes them: in float32."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.features.micro.log1p import log1p
from tinyml.features.micro.micro_settings import MicroSettings
from tinyml.ir import Array
from tinyml.ops.signal.band_arithmetic import Smoothing

F32 = np.float32
WINDOW_BITS = 12
FILTER_BITS = 12
SMOOTHING_BITS = 14


@dataclass(frozen=True)
class Bands:
    """The filter bank: each bin is shared by the bands with the nearest centres below and above it.

    ``widths[b]`` bins lie between centres b - 1 and b, beginning with bin ``start``. A bin counts for band
    b - 1, whose centre is below it, with ``falling``, and for band b with ``rising``. There is no band
    before the first one or after the last one.
    """

    start: int
    widths: Array  # channels + 1
    falling: Array
    rising: Array

    @property
    def end(self) -> int:
        return self.start + int(self.widths.sum())


def window(settings: MicroSettings) -> Array:
    """A Hann window between samples, in 12 bits."""
    turn = F32(math.pi) * F32(2) / F32(settings.window)
    values = []
    for i in range(settings.window):
        cosine = F32(math.cos(float(turn * (F32(i) + F32(0.5)))))
        weight = F32(0.5) - F32(0.5) * cosine
        values.append(math.floor(weight * F32(1 << WINDOW_BITS) + F32(0.5)))
    return np.array(values, np.int16)


def _mels(hertz: np.float32) -> np.float32:
    """On the mel scale, divided by 1127."""
    return log1p(hertz / F32(700.0))


def _plus_product(sum_: np.float32, a: np.float32, b: np.float32, fused: bool) -> np.float32:
    """a * b + sum, rounded once if fused, else twice."""
    return F32(float(a) * float(b) + float(sum_)) if fused else a * b + sum_


@cache
def bands(settings: MicroSettings) -> Bands:
    """Triangles that meet at centres evenly spaced on the mel scale."""
    fused = settings.rounding == "fused"
    count, mel = settings.channels + 1, F32(1127.0)
    low, high = (mel * _mels(F32(limit)) for limit in (settings.lower_hz, settings.upper_hz))
    spacing = (high - low) / F32(count)
    centres = [_plus_product(low, spacing, F32(i + 1), fused) for i in range(count)]
    hertz = F32(0.5) * F32(settings.rate) / F32(settings.fft // 2)
    start = bin_ = int(F32(1.5) + F32(settings.lower_hz) / hertz)
    widths, falling, rising = [], [], []
    for index, centre in enumerate(centres):
        before = low if index == 0 else centres[index - 1]
        first = bin_
        while mel * (here := _mels(F32(bin_) * hertz)) <= centre:
            share = _plus_product(centre, -mel, here, fused) / (centre - before)
            falling.append(math.floor(share * F32(1 << FILTER_BITS) + F32(0.5)))
            rising.append(math.floor((F32(1) - share) * F32(1 << FILTER_BITS) + F32(0.5)))
            bin_ += 1
        widths.append(bin_ - first)
    if bin_ > settings.fft // 2:
        raise ConfigError(
            f"upper_hz: {settings.upper_hz:g} Hz is beyond the spectrum at a rate of {settings.rate}",
            f"{settings.rate / 2 - settings.rate / settings.fft:g} Hz or less",
        )
    return Bands(start, np.array(widths, np.int16), np.array(falling, np.int16), np.array(rising, np.int16))


def smoothing(settings: MicroSettings) -> Smoothing:
    """How noise is followed, with shares in 14 bits."""
    values = (settings.even_smoothing, settings.odd_smoothing, settings.min_signal)
    one = 1 << SMOOTHING_BITS
    even, odd, least = (int(F32(value) * F32(one)) for value in values)
    return Smoothing((even, one - even), (odd, one - odd), least, SMOOTHING_BITS, settings.noise_bits)


@cache
def gains(settings: MicroSettings) -> Array:
    """The gain for a noise estimate, a parabola for each number of bits that it may have: (33, 3)."""
    bits = settings.noise_bits - settings.correction_bits

    def gain(estimate: int) -> int:
        base = F32(F32(estimate) / F32(2.0**bits)) + F32(settings.pcan_offset)
        power = F32(math.pow(float(base), float(-F32(settings.pcan_strength)))) if base > 0 else F32(np.inf)
        value = F32(1 << settings.pcan_bits) * power
        return 32767 if value > 32767 else int(value + F32(0.5))

    rows = [(gain(0), 0, 0), (gain(1), 0, 0)]
    for length in range(2, 33):
        first = 1 << (length - 1)
        last = 2 * first - 1 if length == 32 else 2 * first
        y0, y1, y2 = gain(first), gain(first + first // 2), gain(last)
        linear = 4 * (y1 - y0) - (y2 - y0)
        rows.append((y0, linear, (y2 - y0) - linear))
    return np.array(rows, np.int64).astype(np.int16)
