# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings (WAV files, or CSV files of sensors) as what a front end takes, and as inputs of its model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.datasets import arrays, csv_file, image_folder, wav_folder
from tinyml.features.feed import Real, rows_of
from tinyml.features.settings import FrontEnd
from tinyml.ir import Array, DType, Shape

TABLES = (".csv", ".npy")


def suffixes(frontend: FrontEnd) -> tuple[str, ...]:
    """Of files that the front end can be fed from."""
    return wav_folder.SUFFIXES if frontend.of.sample == "int16" else TABLES


def find(folder: Path, frontend: FrontEnd) -> list[Path]:
    """The recordings below a folder, of which there must be some."""
    files = image_folder.find(folder, suffixes(frontend))
    if not files:
        endings = " or ".join(suffixes(frontend))
        raise ConfigError(
            f"{folder} holds no recordings for the front end {frontend.kind}", f"{endings} files"
        )
    return files


def features(path: Path, frontend: FrontEnd) -> dict[str, Array]:
    """The features of a recording ("features"), or of all in a folder by their paths below it."""
    if path.is_dir():
        files = {file.relative_to(path).as_posix(): file for file in find(path, frontend)}
    elif path.is_file():
        files = {"features": path}
    else:
        raise ConfigError(f"there is no recording {path}")
    return {name: frontend.compute(samples(file, frontend)) for name, file in files.items()}


def samples(path: Path, frontend: FrontEnd) -> Array:
    """A recording, (frames, axes), if it is one that the front end was made for."""
    settings = frontend.settings
    suffix = path.suffix.lower()
    if suffix not in suffixes(frontend):
        raise ConfigError(
            f"{path} is not a recording for the front end {frontend.kind}",
            f"a file or a folder of {' or '.join(suffixes(frontend))}",
        )
    if suffix == ".csv":
        return csv_file.read(path, settings.axes)[0]
    if suffix == ".npy":
        return _array(path, settings.axes)
    rate, sound, bits = wav_folder.whole_numbers(path)
    if rate != settings.rate:
        raise ConfigError(
            f"{path} has {rate} samples per second; the front end takes {settings.rate:g}",
            "recordings with the rate of the training (ffmpeg -ar), or the key 'rate' of the front end",
        )
    if sound.shape[1] != settings.axes:
        raise ConfigError(
            f"{path} has {sound.shape[1]} channels; the front end takes {settings.axes}",
            "recordings with the channels of the training (ffmpeg -ac 1)",
        )
    return (sound << (16 - bits) if bits < 16 else sound >> (bits - 16)).astype(np.int16)


def _array(path: Path, axes: int) -> Array:
    try:
        stored = arrays.read_numpy(path)
    except arrays.UNREADABLE:
        raise ConfigError(f"{path} cannot be read as an array", "numpy.save(file, samples)") from None
    if "" not in stored:
        raise ConfigError(f"{path} is an archive of arrays, not one array", "numpy.save(file, samples)")
    array = stored[""]
    if array.dtype.kind not in "iuf" or array.ndim != 2 or array.shape[1] != axes:
        shape = "x".join(map(str, array.shape))
        raise ConfigError(
            f"{path} has shape {shape} ({array.dtype}); the front end takes {axes} axes",
            f"numbers of shape Nx{axes}: one row per sample",
        )
    return array.astype(np.float32)


def read(files: Sequence[Path], shape: Shape, frontend: FrontEnd) -> tuple[Array, list[Path]]:
    """Inputs of a float model, run after run without overlap, and the file of each.

    A recording that is shorter than a run is followed by silence.
    """
    settings = frontend.settings
    rows = rows_of("input", shape, frontend)
    least = settings.window + (rows - 1) * settings.step
    runs: list[Array] = []
    origin: list[Path] = []
    for path in files:
        sound = samples(path, frontend)
        sound = np.pad(sound, ((0, max(least - len(sound), 0)), (0, 0)))
        features = Real(settings.scale).apply(frontend.compute(sound), DType.FLOAT32)
        count = len(features) // rows
        runs.append(features[: count * rows].reshape(count, *shape))
        origin += [path] * count
    return np.concatenate(runs), origin
