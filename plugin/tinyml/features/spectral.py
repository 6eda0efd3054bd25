# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Features of vibrations: statistics and band powers of each axis, as numpy and scipy compute them, in float.

rms       numpy.sqrt(numpy.mean(x ** 2))
kurtosis  scipy.stats.kurtosis(x), skewness: scipy.stats.skew(x)
bands     frequencies, powers = scipy.signal.periodogram(x, rate, "hann"), added up from edge to edge
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.features.axes import AxesSettings
from tinyml.features.frames import frames_of
from tinyml.features.written import Memory, Written, fft_members
from tinyml.ir import Array
from tinyml.ops.framework.kernel import Record, Table
from tinyml.ops.signal.fft import FftTables, radices

FLOOR = 1e-12
"""Least power that a logarithm is taken of."""


def _moment(x: Array, power: int) -> Array:
    """Mean power of the deviation, over that of the standard deviation; 0 where nothing deviates."""
    rest = x - x.mean(axis=1, keepdims=True)
    variance = (rest**2).mean(axis=1)
    still = variance <= 1e-12 * (x**2).mean(axis=1)
    moment = (rest**power).mean(axis=1) / np.where(still, 1, variance) ** (power / 2)
    return np.where(still, 0, moment - (3 if power == 4 else 0))


STATISTICS: dict[str, Callable[[Array], Array]] = {
    "mean": lambda x: x.mean(axis=1),
    "rms": lambda x: np.sqrt((x**2).mean(axis=1)),
    "std": lambda x: x.std(axis=1),
    "skewness": lambda x: _moment(x, 3),
    "kurtosis": lambda x: _moment(x, 4),
    "peak": lambda x: np.abs(x).max(axis=1),
}
"""By name; frames (count, window, axes) to (count, axes). The order is that of enum tinyml_statistic."""


@dataclass(frozen=True)
class SpectralSettings(AxesSettings):
    """The keys of ``frontend: {kind: spectral, …}``."""

    window_samples: int = 256
    step_samples: int = 128
    statistics: tuple[str, ...] = ("rms", "kurtosis")
    bands: tuple[float, ...] = ()  # edges in Hz: one band less than edges
    log: bool = False  # log10 of the band powers

    @property
    def window(self) -> int:
        return self.window_samples

    @property
    def step(self) -> int:
        return self.step_samples

    @property
    def width(self) -> int:
        return self.axes * (len(self.statistics) + max(len(self.bands) - 1, 0))

    def __post_init__(self) -> None:
        super().__post_init__()
        count = self.window_samples
        if count % 2 or not 8 <= count <= 8192 or radices(count) is None:
            raise ConfigError(
                f"window_samples: {count}",
                "an even number from 8 to 8192; 256 or another power of two is best",
            )
        if not 1 <= self.step_samples <= count:
            raise ConfigError(
                f"step_samples: a step of {self.step_samples} does not fit a window of {count} samples",
                "a step as long as the window or shorter",
            )
        for name in self.statistics:
            if name not in STATISTICS:
                raise ConfigError(f"statistics: there is no {name!r}", f"some of: {', '.join(STATISTICS)}")
        rising = all(a < b for a, b in zip(self.bands, self.bands[1:], strict=False))
        if self.bands and (len(self.bands) < 2 or not rising or self.bands[0] < 0):
            raise ConfigError(
                "bands: " + ",".join(f"{edge:g}" for edge in self.bands), "rising edges in Hz: 0,50,100"
            )
        if self.bands and self.bands[-2] > self.rate / 2:
            raise ConfigError(
                f"bands: {self.bands[-2]:g} Hz at {self.rate:g} samples per second",
                f"edges up to {self.rate / 2:g} Hz",
            )
        if not self.width:
            raise ConfigError("the spectral front end computes no features", "statistics, or bands")


def features(samples: Array, settings: SpectralSettings | None = None) -> Array:
    """Rows of float32 features of samples (count, axes): all of the first axis, then the next."""
    settings = settings or SpectralSettings()
    sound = np.asarray(samples, np.float64).reshape(-1, settings.axes)
    frames = frames_of(sound, settings)
    columns = [STATISTICS[name](frames) for name in settings.statistics]
    if settings.bands:
        still = frames - frames.mean(axis=1, keepdims=True)
        spectrum = np.fft.rfft(still * window(settings)[None, :, None], axis=1)
        power = np.abs(spectrum) ** 2
        power[:, 1:-1] *= 2
        for first, last in zip(*edges(settings), strict=True):
            total = power[:, first:last].sum(axis=1)
            columns.append(np.log10(np.maximum(total, FLOOR)) if settings.log else total)
    return np.stack(columns, -1).reshape(len(frames), settings.width).astype(np.float32)


def window(settings: SpectralSettings) -> Array:
    """Hann's, so that squares of the spectrum are powers: density times the width of a bin."""
    count = settings.window
    shape = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(count) / count)
    return shape / np.sqrt((shape**2).sum() * count)


def edges(settings: SpectralSettings) -> tuple[list[int], list[int]]:
    """First bin of each band, and the one after its last: low <= frequency < high."""
    frequencies = np.arange(settings.window // 2 + 1) * settings.rate / settings.window
    places = np.searchsorted(frequencies, settings.bands).tolist()
    return places[:-1], places[1:]


def write(model: str, settings: SpectralSettings) -> Written:
    first, last = edges(settings) if settings.bands else ([], [])
    names = list(STATISTICS)
    constants: dict[str, Array] = {}
    if settings.statistics:
        constants["statistics"] = np.array([names.index(name) for name in settings.statistics], np.uint8)
    if settings.bands:
        constants["window"] = window(settings).astype(np.float32)
        constants["edges"] = np.stack([first, last], -1).astype(np.uint16)
    tables = [Table(f"{model}_frontend_{key}", values) for key, values in constants.items()]
    members = {f".{key}": f"{model}_frontend_{key}" for key in constants}
    work = f"{model}_frontend_work"
    memory = []
    if settings.bands:
        fft, fft_tables = fft_members(f"{model}_frontend", FftTables(settings.window // 2, True))
        members, tables = members | fft, [*tables, *fft_tables]
        memory = [Memory("float", work, settings.window + 2, 4 * (settings.window + 2), "of the transform")]
    members |= {
        ".samples": str(settings.window),
        ".axes": str(settings.axes),
        ".statistic_count": str(len(settings.statistics)),
        ".band_count": str(len(first)),
        ".log": c.boolean(settings.log),
    }
    return Written(
        headers=["<tinyml/spectral.h>"],
        sources=["signal/spectral_f32.c", "signal/fft_f32.c"],
        tables=tables,
        records=[Record("struct tinyml_spectral_f32", f"{model}_frontend", members)],
        memory=memory,
        statement=f"tinyml_spectral_f32(&{model}_frontend, {model}_samples, {model}_window.next, "
        f"{work if settings.bands else 'NULL'}, {model}_row);",
    )
