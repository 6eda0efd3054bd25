# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The Fourier transform of real signals in int16: rounded and scaled down at every stage.

A signal of 2n samples is read as n complex numbers, which are transformed by butterflies of four (and of two,
once, where n is no power of four); a last step separates the spectrum of the real signal. Each stage divides
by its radix, so that nothing overflows; results are therefore 1/2n of the transform, in both directions.

The audio front end ``micro`` and TensorFlow Lite Micro's signal operators share this arithmetic, which is
that of kissfft. ``runtime/signal/fft_s16.c`` computes the same integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np

from tinyml.ir import Array

ONE = 32767  # 1.0 of the twiddle factors
ROUND, SHIFT = 1 << 14, 15


def radices(points: int) -> list[int]:
    """The radix of each stage, the first stage (of neighbouring points) first."""
    fours = (points.bit_length() - 1) // 2
    return [2] * (points.bit_length() - 1 - 2 * fours) + [4] * fours


def order(points: int) -> Array:
    """The order of the inputs before the first stage: digits of the index, reversed."""
    places = np.arange(1)
    for radix in radices(points):
        places = (places[None, :] * radix + np.arange(radix)[:, None]).reshape(-1)
    return places


@cache
def twiddles(points: int) -> Array:
    """One turn of exp(-2πik/points) as pairs of int16."""
    return _circle([-2 * math.pi * k / points for k in range(points)])


@cache
def separation(points: int) -> Array:
    """Factors of the last step, for pairs 1 to points/2: a quarter turn ahead of half steps."""
    return _circle([-math.pi * ((k + 1) / points + 0.5) for k in range(points // 2)])


def _circle(phases: list[float]) -> Array:
    pairs = [(math.floor(0.5 + ONE * math.cos(p)), math.floor(0.5 + ONE * math.sin(p))) for p in phases]
    return np.array(pairs, np.int16)


def tables(points: int) -> Mapping[str, Array]:
    """What the C needs for ``points`` complex numbers, 2 or more, by member of its structures."""
    return {
        "places": np.argsort(order(points)).astype(np.uint16),
        "turn": _words(twiddles(points)[: 3 * points // 4]),
        "separation": _words(separation(points)),
    }


def _words(pairs: Array) -> Array:
    """Pairs of int16 as words, the first of a pair in the lower half."""
    halves = pairs.astype(np.uint16).astype(np.uint32)
    packed: Array = halves[:, 0] | halves[:, 1] << np.uint32(16)
    return packed


def real_transform(frames: Array) -> Array:
    """Frames (count, 2n) of int16 to spectra (count, n + 1, 2) of int16."""
    return _separate(_transform(frames.reshape(len(frames), -1, 2)))


def real_inverse(spectra: Array) -> Array:
    """Spectra (count, n + 1, 2) of int16 to frames (count, 2n) of int16.

    Backwards is forwards with real and imaginary parts exchanged.
    """
    return _transform(_joined(spectra)[..., ::-1])[..., ::-1].reshape(len(spectra), -1)


def _transform(z: Array) -> Array:
    """Of complex numbers (count, n, 2)."""
    points = z.shape[1]
    z = z[:, order(points)].astype(np.int16)
    turn = twiddles(points)
    width = 1
    for radix in radices(points):
        z = _stage(z, radix, width, turn)
        width *= radix
    return z


def _stage(z: Array, radix: int, width: int, turn: Array) -> Array:
    """Butterflies over groups of ``radix`` transforms of ``width`` points each."""
    points = z.shape[1]
    step = points // (radix * width)
    parts = _scaled(z.reshape(len(z), step, radix, width, 2), ONE // radix)
    legs = [parts[:, :, 0]]
    legs += [_times(parts[:, :, leg], turn[np.arange(width) * leg * step]) for leg in range(1, radix)]
    if radix == 2:
        joined = [legs[0] + legs[1], legs[0] - legs[1]]
    else:
        even, odd = legs[0] + legs[2], legs[0] - legs[2]
        both, across = legs[1] + legs[3], legs[1] - legs[3]
        quarter = np.stack([across[..., 1], -across[..., 0]], -1)  # times -i
        joined = [even + both, odd + quarter, even - both, odd - quarter]
    return np.stack(joined, 2).reshape(z.shape)


def _separate(z: Array) -> Array:
    points = z.shape[1]
    spectrum = np.zeros((len(z), points + 1, 2), np.int16)
    halves = _scaled(z, ONE // 2)
    spectrum[:, 0, 0] = halves[:, 0, 0] + halves[:, 0, 1]
    spectrum[:, points, 0] = halves[:, 0, 0] - halves[:, 0, 1]
    k = np.arange(1, points // 2 + 1)
    conjugate = z[:, points - k] * np.array([1, -1], np.int16)
    near, far = halves[:, k], _scaled(conjugate, ONE // 2)
    even = (near + far).astype(np.int32)
    odd = _times(near - far, separation(points)[k - 1]).astype(np.int32)
    spectrum[:, k] = ((even + odd) >> 1).astype(np.int16)
    mirrored = np.stack([even[..., 0] - odd[..., 0], odd[..., 1] - even[..., 1]], -1) >> 1
    spectrum[:, points - k] = mirrored.astype(np.int16)  # last: the middle element keeps this value
    return spectrum


def _joined(spectra: Array) -> Array:
    """The inverse of ``_separate``, but for rounding: complex numbers (count, n, 2)."""
    points = spectra.shape[1] - 1
    z = np.zeros((len(spectra), points, 2), np.int16)
    first, last = spectra[:, 0, 0], spectra[:, points, 0]
    z[:, 0] = _scaled(np.stack([first + last, first - last], -1), ONE // 2)
    k = np.arange(1, points // 2 + 1)
    conjugate = spectra[:, points - k] * np.array([1, -1], np.int16)
    near, far = _scaled(spectra[:, k], ONE // 2), _scaled(conjugate, ONE // 2)
    even = near + far
    odd = _times(near - far, separation(points)[k - 1] * np.array([1, -1], np.int16))
    z[:, k] = even + odd
    z[:, points - k] = (even - odd) * np.array([1, -1], np.int16)  # last, as in the other direction
    return z


def _scaled(z: Array, factor: int) -> Array:
    return ((z.astype(np.int32) * factor + ROUND) >> SHIFT).astype(np.int16)


def _times(z: Array, factors: Array) -> Array:
    a, b = z.astype(np.int32), factors.astype(np.int32)
    real = a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1]
    imaginary = a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]
    return ((np.stack([real, imaginary], -1) + ROUND) >> SHIFT).astype(np.int16)
