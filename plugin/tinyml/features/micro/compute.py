# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The micro front end in numpy: what its C computes, integer for integer."""

from __future__ import annotations

import numpy as np

from tinyml.features.frames import frames_of
from tinyml.features.micro import tables
from tinyml.features.micro.fourier import real_transform
from tinyml.features.micro.settings import MicroSettings
from tinyml.ir import Array

U32, U64 = np.uint32, np.uint64


def features(samples: Array, settings: MicroSettings | None = None) -> Array:
    """Rows of uint16 features, one per step, of int16 ``samples`` that begin in silence unknown to us."""
    settings = settings or MicroSettings()
    audio = np.asarray(samples, np.int16).reshape(-1)
    frames = frames_of(audio, settings)
    if not len(frames):
        return np.zeros((0, settings.channels), np.uint16)
    spectrum, shift = _spectrum(frames, settings)
    signal = _bands(spectrum, shift, settings)
    signal, noise = _without_noise(signal, settings)
    if settings.pcan:
        signal = _with_gain(signal, noise, settings)
    return _logarithm(signal, settings)


def _spectrum(frames: Array, settings: MicroSettings) -> tuple[Array, Array]:
    """The spectrum of each frame, and by how many bits the frame was enlarged for it."""
    weighted = (frames.astype(np.int32) * tables.window(settings)) >> tables.WINDOW_BITS
    weighted = weighted.astype(np.int16)
    with np.errstate(over="ignore"):
        largest = np.maximum(np.abs(weighted).max(axis=1), 0)  # -32768 has no absolute value, and loses
    shift = 15 - _bits(largest.astype(U32))
    padded = np.zeros((len(frames), settings.fft), np.int16)
    padded[:, : settings.window] = (weighted.astype(np.int32) << shift[:, None]).astype(np.int16)
    return real_transform(padded), shift


def _bands(spectrum: Array, shift: Array, settings: MicroSettings) -> Array:
    """The energy of each band, as a root, on the scale of the samples again: uint32."""
    bands = tables.bands(settings)
    parts = spectrum[:, bands.start : bands.end].astype(np.int64)
    energy = (parts**2).sum(axis=2).astype(U64)
    ends = np.cumsum(bands.widths)
    sums = np.zeros((len(spectrum), settings.channels + 2), U64)
    for band, (start, end) in enumerate(zip(ends - bands.widths, ends, strict=True)):
        part = energy[:, start:end]
        sums[:, band] += (part * bands.falling[start:end].astype(U64)).sum(axis=1, dtype=U64)
        sums[:, band + 1] += (part * bands.rising[start:end].astype(U64)).sum(axis=1, dtype=U64)
    roots = _root(sums[:, 1 : settings.channels + 1])  # bins below the first centre have no band
    return (roots >> shift[:, None].astype(U64)).astype(U32)


def _root(x: Array) -> Array:
    """The square root, rounded; below 2^32 it stays below 2^16."""
    root = np.sqrt(x.astype(np.float64)).astype(U64)
    root -= (root * root > x).astype(U64)
    root += ((root + U64(1)) ** 2 <= x).astype(U64)
    up = x - root * root > root
    up &= ~((x < U64(1 << 32)) & (root == U64(0xFFFF)))
    return root + up.astype(U64)


def _without_noise(signal: Array, settings: MicroSettings) -> tuple[Array, Array]:
    """Signal and estimate of the noise, frame after frame."""
    even, odd, least = map(U64, tables.smoothing(settings))
    share = np.where(np.arange(settings.channels) % 2 == 0, even, odd).astype(U64)
    rest = U64(1 << tables.SMOOTHING_BITS) - share
    bits, whole = U64(settings.noise_bits), U64(tables.SMOOTHING_BITS)
    estimate = np.zeros(settings.channels, U64)
    cleaned, noise = np.zeros_like(signal), np.zeros_like(signal)
    for frame, row in enumerate(signal.astype(U64)):
        large = (row << bits) & U64(0xFFFFFFFF)
        estimate = ((large * share + estimate * rest) >> whole) & U64(0xFFFFFFFF)
        noise[frame] = estimate
        remaining = (large - np.minimum(estimate, large)) >> bits
        cleaned[frame] = np.maximum(remaining, (row * least) >> whole)
    return cleaned, noise


def _with_gain(signal: Array, noise: Array, settings: MicroSettings) -> Array:
    """Divided by a power of the noise, then bent so that small values become smaller."""
    lengths = _bits(noise)
    y, linear, square = np.moveaxis(tables.gains(settings).astype(np.int32)[lengths], -1, 0)
    up = np.maximum(11 - lengths, 0).astype(U32)
    down = np.maximum(lengths - 11, 0).astype(U32)
    part = (((noise << up) >> down) & U32(0x3FF)).astype(np.int32)
    gain = ((((square * part >> 5) + (linear << 5)) * part + (1 << 14)) >> 15) + y
    factor = gain.astype(np.int16).astype(U32).astype(U64)
    shift = settings.pcan_bits - settings.correction_bits - tables.PCAN_SIGNAL_BITS
    ratio = ((signal.astype(U64) * factor) >> U64(shift)) & U64(0xFFFFFFFF)
    steps = tables.PCAN_SIGNAL_BITS - tables.PCAN_OUTPUT_BITS
    bent = (ratio * ratio) >> U64(2 + tables.PCAN_SIGNAL_BITS + steps)
    straight = (ratio >> U64(steps)) - U64(1 << tables.PCAN_OUTPUT_BITS)
    return np.where(ratio < U64(2 << tables.PCAN_SIGNAL_BITS), bent, straight).astype(U32)


def _logarithm(signal: Array, settings: MicroSettings) -> Array:
    if not settings.log:
        return np.minimum(signal, 0xFFFF).astype(np.uint16)
    bits = settings.correction_bits
    value = signal << U32(bits) if bits >= 0 else signal >> U32(-bits)
    x = np.maximum(value, 1).astype(np.int64)
    whole = _bits(x.astype(U32)).astype(np.int64) - 1
    part = x - (1 << whole)
    part = np.where(
        whole < tables.LOG_BITS,
        part << np.maximum(tables.LOG_BITS - whole, 0),
        part >> np.maximum(whole - tables.LOG_BITS, 0),
    )
    segment = part >> (tables.LOG_BITS - tables.LOG_SEGMENT_BITS)
    curve = np.append(tables.log_segments(), 0).astype(np.int64)
    inside = part - (segment << (tables.LOG_BITS - tables.LOG_SEGMENT_BITS))
    above = curve[segment] + ((curve[segment + 1] - curve[segment]) * inside >> tables.LOG_BITS)
    binary = (whole << tables.LOG_BITS) + part + above
    half = 1 << (tables.LOG_BITS - 1)
    natural = (tables.LN2 * binary + half) >> tables.LOG_BITS
    scaled = ((natural << settings.log_shift) + half) >> tables.LOG_BITS
    return np.where(value > 1, np.minimum(scaled, 0xFFFF), 0).astype(np.uint16)


def _bits(x: Array) -> Array:
    """How many bits each number has; 0 has none."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int32)
