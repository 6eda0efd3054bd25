# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Calibration data as a folder of WAV files, for models that take raw sound."""

from __future__ import annotations

import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.datasets import image_folder
from tinyml.datasets.arrays import UNREADABLE
from tinyml.ir import Array, Shape
from tinyml.settings.quantize_request import Scaling

SUFFIXES = (".wav", ".wave")


def find(folder: Path) -> list[Path]:
    return image_folder.find(folder, SUFFIXES)


def read(folder: Path, files: Sequence[Path], shape: Shape, scaling: Scaling) -> tuple[Array, list[Path]]:
    """Files split into pieces as long as the input, in -1..1 unless scaled otherwise; the file of each."""
    length = int(np.prod(shape, dtype=np.int64))
    if length != max(shape, default=0):
        raise ConfigError(
            f"{folder} holds sound; the model takes {'x'.join(map(str, shape))}, which is not raw sound",
            "compute the features as for training and save them: numpy.savez(file, in0=array)",
        )
    low, high = (-1.0, 1.0) if scaling.low is None or scaling.high is None else (scaling.low, scaling.high)
    pieces: list[Array] = []
    origin: list[Path] = []
    rates: dict[int, Path] = {}
    for path in files:
        rate, sound = samples(path)
        rates.setdefault(rate, path)
        count = max(len(sound) // length, 1)  # what is left over at the end of a file is not used
        padded = np.pad(sound, (0, max(length - len(sound), 0)))[: count * length]
        pieces += list(padded.reshape(count, length))
        origin += [path] * count
    if len(rates) > 1:
        listed = ", ".join(f"{rate} Hz ({path.name})" for rate, path in rates.items())
        raise ConfigError(f"the WAV files have different sample rates: {listed}", "convert them to one rate")
    values: Array = (np.stack(pieces) + 1.0) / 2.0 * (high - low) + low
    for numbers, combine in ((scaling.mean, np.subtract), (scaling.std, np.divide)):
        if len(numbers) > 1:
            raise ConfigError("mean or std has several numbers; sound has one channel")
        if numbers:
            values = combine(values, numbers[0])
    return values.astype(np.float32).reshape(-1, *shape), origin


def samples(path: Path) -> tuple[int, Array]:
    """Sample rate, and the sound in -1..1 with channels averaged."""
    rate, whole, bits = whole_numbers(path)
    real: Array = whole.mean(axis=1) / float(1 << (bits - 1))
    return rate, real.astype(np.float32)


def whole_numbers(path: Path) -> tuple[int, Array, int]:
    """Sample rate, the sound as stored, (frames, channels), and how many bits a sample has."""
    try:
        with wave.open(str(path), "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            raw = np.frombuffer(file.readframes(file.getnframes()), np.uint8)
    except (*UNREADABLE, wave.Error) as error:
        raise ConfigError(f"{path} cannot be read as a WAV file: {error}", "PCM, 8 to 32 bits") from None
    if width < 1 or channels < 1 or raw.size < width * channels:
        raise ConfigError(f"{path} holds no sound", "PCM, 8 to 32 bits")
    raw = raw[: raw.size - raw.size % (width * channels)]  # a truncated file may end inside a sample
    if width == 1:  # the only width that WAV stores unsigned
        whole = raw.astype(np.int64) - 128
    else:
        grouped = raw.reshape(-1, width).astype(np.int64)
        whole = (grouped << (8 * np.arange(width))).sum(axis=1)
        whole -= (whole >> (8 * width - 1)) << (8 * width)
    return rate, whole.reshape(-1, channels), 8 * width
