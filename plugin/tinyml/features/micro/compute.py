# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The micro front end in numpy: what its C computes, integer for integer."""

from __future__ import annotations

import numpy as np

from tinyml.features.frames import frames_of
from tinyml.features.micro import tables
from tinyml.features.micro.micro_settings import MicroSettings
from tinyml.ir import Array
from tinyml.ops.signal.band_arithmetic import (
    PCAN_SIGNAL_BITS,
    bits,
    logarithm,
    root,
    with_gain,
    without_noise,
)
from tinyml.ops.signal.fft_s16 import real_transform

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
    shift = 15 - bits(largest.astype(U32))
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
    roots = root(sums[:, 1 : settings.channels + 1])  # bins below the first centre have no band
    return (roots >> shift[:, None].astype(U64)).astype(U32)


def _without_noise(signal: Array, settings: MicroSettings) -> tuple[Array, Array]:
    """Signal and estimate of the noise, frame after frame."""
    how = tables.smoothing(settings)
    estimate = np.zeros(settings.channels, U32)
    cleaned, noise = np.zeros_like(signal), np.zeros_like(signal)
    for frame, row in enumerate(signal):
        cleaned[frame], estimate = without_noise(row, estimate, how)
        noise[frame] = estimate
    return cleaned, noise


def _with_gain(signal: Array, noise: Array, settings: MicroSettings) -> Array:
    shift = settings.pcan_bits - settings.correction_bits - PCAN_SIGNAL_BITS
    return with_gain(signal, noise, tables.gains(settings), shift)


def _logarithm(signal: Array, settings: MicroSettings) -> Array:
    if not settings.log:
        return np.minimum(signal, 0xFFFF).astype(np.uint16)
    correction = settings.correction_bits
    value = signal << U32(correction) if correction >= 0 else signal >> U32(-correction)
    return np.minimum(logarithm(value, 1 << settings.log_shift), 0xFFFF).astype(np.uint16)
