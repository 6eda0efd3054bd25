# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite Micro's signal operators in integers: numpy against C, at the ends of every range."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.cases import Case, Const, op_case
from tests.support.data import whole
from tests.support.signal_models import preprocessor
from tinyml.features.micro.micro_settings import MicroSettings
from tinyml.importers import tflite_graph
from tinyml.ir import Array
from tinyml.ops.signal.band_arithmetic import Smoothing
from tinyml.ops.signal.band_gain import BandLog, NoiseReduction, Pcan
from tinyml.ops.signal.filter_bank import BandRoot, FilterBank
from tinyml.ops.signal.frames import AutoScale, Energy, Window
from tinyml.ops.signal.real_fft import RealFft

LENGTHS = (4, 8, 16, 32, 64, 256, 512, 1024)
RNG = np.random.default_rng(19)


def samples(*shape: int, size: int = 32768, seed: int = 0) -> Array:
    return whole(*shape, low=-size, high=size - 1, dtype="int16", seed=seed)


def any_size(count: int, dtype: type[np.unsignedinteger]) -> Array:
    """Numbers of every length in bits, with the largest and the smallest."""
    top = np.dtype(dtype).itemsize * 8
    words = RNG.integers(0, 1 << 63, count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    found = words >> (np.uint64(64 - top) + (np.arange(count) % top).astype(np.uint64))
    found[0], found[-1] = (1 << top) - 1, 0
    return found.astype(dtype)


def shuffled(x: Array) -> Array:
    return RNG.permutation(x)


def roots() -> Array:
    """Numbers around squares, and where the root of a word is rounded."""
    near = [(n * n + n + d) for n in (1, 7, 255, 65535, 65536, 0x12345678, 0xFFFFFFFE) for d in (-1, 0, 1)]
    return np.array([*near, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF], np.uint64)


def spikes(value: int) -> Array:
    """A quiet signal with one number, which can be -32768: that has no absolute value in int16."""
    x = samples(60, size=20)
    x[30] = value
    return x


def bank(bands: int, bins: int) -> list[Array | Const]:
    widths = whole(bands + 1, high=7, dtype="uint16")
    starts = np.minimum(np.cumsum(widths) % bins, bins - 7).astype(np.uint16)
    weights = whole(2, 50, high=32767, dtype="uint16", seed=3)
    places = whole(bands + 1, high=43, dtype="uint16", seed=4)
    return [any_size(bins, np.uint32), *map(Const, (weights[0], weights[1], starts, places, widths))]


USUAL = Smoothing((409, 15975), (983, 15401), 819, 14, 10)
CLAMPING = Smoothing((5000, 12000), (16384, 16384), 16384, 14, 3, True)
PARABOLAS = Const(np.random.default_rng(2).integers(-32768, 32768, (33, 3)).astype(np.int16))


def all_in_a_row() -> Case:
    """A frame through every operator, down to features."""
    settings = MicroSettings()
    content = preprocessor(settings)
    frame = {"frame": samples(1, settings.window, size=3000, seed=5)}
    return Case("preprocessor", lambda: tflite_graph.read(Path("preprocessor.tflite"), content, {}), frame)


CASES: list[Case] = [
    all_in_a_row(),
    *(op_case(f"rfft_{n}", RealFft(n), [samples(2, n)]) for n in LENGTHS),
    *(op_case(f"irfft_{n}", RealFft(n, True), [samples(2, n + 2)]) for n in LENGTHS),
    op_case("rfft_padded", RealFft(64), [samples(1, 3, 41)]),
    op_case("rfft_extremes", RealFft(128), [np.full((1, 128), -32768, np.int16)]),
    op_case("irfft_extremes", RealFft(128, True), [np.full((1, 130), -32768, np.int16)]),
    op_case("window", Window(12), [samples(3, 40), Const(samples(40, size=4097, seed=1))]),
    op_case("window_clamped", Window(3), [samples(40), Const(samples(40, seed=1))]),
    op_case("scale", AutoScale(), [samples(30, size=300)]),
    op_case("scale_silence", AutoScale(), [np.zeros(7, np.int16)]),
    *(op_case(f"scale_{v}", AutoScale(), [spikes(v)]) for v in (1, -32767, 32767, -32768)),
    op_case("scale_last", AutoScale(), [np.array([3, -32768], np.int16)]),
    op_case("energy", Energy(3, 17), [samples(40)]),
    op_case("energy_of_all", Energy(0, 20), [np.full(40, -32768, np.int16)]),
    op_case("filter_bank", FilterBank(11), bank(11, 30)),
    op_case("roots", BandRoot(), [roots(), np.array(0, np.int32)]),
    op_case("roots_shifted", BandRoot(), [any_size(130, np.uint64), np.array(5, np.int32)]),
    op_case("noise", NoiseReduction(USUAL), [any_size(99, np.uint32), any_size(99, np.uint32)[::-1].copy()]),
    op_case("noise_clamped", NoiseReduction(CLAMPING), [any_size(70, np.uint32), any_size(70, np.uint32)]),
    op_case(
        "gain", Pcan(6), [any_size(200, np.uint32), RNG.permutation(any_size(200, np.uint32)), PARABOLAS]
    ),
    op_case("logarithm", BandLog(3, 64), [any_size(99, np.uint32)]),
    op_case("logarithm_limited", BandLog(0, 1600), [any_size(99, np.uint32)]),
]
