# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Mel spectra and MFCC as librosa and torchaudio define them, frame by frame, in float.

A frame has ``fft`` samples, with the window in its middle, where both libraries put it. A stream has no
samples before the first one, so frames are not centred (``center=False``). Its loudest frame is not
known in advance, so decibels are not cut off below it (``top_db=None``).
"""

from __future__ import annotations

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.features.frames import frames_of
from tinyml.features.written import Memory, Written, fft_members
from tinyml.ir import Array
from tinyml.ops.framework.kernel import Record, Table
from tinyml.ops.signal.fft import FftTables, radices

STYLES = ("librosa", "torchaudio")
WINDOWS = ("hann", "hamming")
LOGARITHMS = ("db", "natural")


@dataclass(frozen=True)
class MfccSettings:
    """The keys of ``frontend: {kind: mfcc, …}``."""

    rate: int = 16000  # samples per second
    fft: int = 512  # n_fft: samples of a frame
    window_samples: int = 0  # win_length; 0: as many as fft
    step_samples: int = 160  # hop_length
    shape: str = "hann"  # of the window: hann or hamming, periodic
    mels: int = 40  # n_mels
    lower_hz: float = 0.0  # fmin
    upper_hz: float = 0.0  # fmax; 0: half the rate
    style: str = "librosa"  # of the filters: librosa (Slaney's scale and norm) or torchaudio (HTK's, no norm)
    log: str = "db"  # 10 * log10(mel), at least 1e-10; or natural: ln(mel + 1e-6), torchaudio's log_mels
    coefficients: int = 13  # n_mfcc; 0: the mel spectrum itself

    @property
    def axes(self) -> int:
        return 1

    @property
    def window(self) -> int:
        return self.fft

    @property
    def step(self) -> int:
        return self.step_samples

    @property
    def width(self) -> int:
        return self.coefficients or self.mels

    @property
    def scale(self) -> float:
        return 1.0

    @property
    def top_hz(self) -> float:
        return self.upper_hz or self.rate / 2

    def __post_init__(self) -> None:
        for key, allowed in (("style", STYLES), ("shape", WINDOWS), ("log", LOGARITHMS)):
            if getattr(self, key) not in allowed:
                raise ConfigError(f"{key}: {getattr(self, key)!r}", f"one of: {', '.join(allowed)}")
        if not 1000 <= self.rate <= 192000:
            raise ConfigError(f"rate: {self.rate} samples per second", "1000 to 192000, for example 16000")
        if self.fft % 2 or not 8 <= self.fft <= 8192 or radices(self.fft) is None:
            raise ConfigError(
                f"fft: {self.fft}", "an even number from 8 to 8192; 512 or another power of two is best"
            )
        if not 0 <= self.window_samples <= self.fft:
            raise ConfigError(f"window_samples: {self.window_samples} of {self.fft}", "fft or less")
        if not 1 <= self.step_samples <= self.fft:
            raise ConfigError(
                f"step_samples: a step of {self.step_samples} does not fit a window of {self.fft} samples",
                "a step as long as the window or shorter",
            )
        if not 1 <= self.mels <= 256:
            raise ConfigError(f"mels: {self.mels} bands", "1 to 256; 40 are usual")
        if not 0 <= self.coefficients <= self.mels:
            raise ConfigError(f"coefficients: {self.coefficients} of {self.mels} bands", "mels or fewer")
        if not 0 <= self.lower_hz < self.top_hz <= self.rate / 2:
            raise ConfigError(
                f"bands from {self.lower_hz:g} to {self.top_hz:g} Hz at {self.rate} samples per second",
                f"lower_hz below upper_hz, and upper_hz at most {self.rate / 2:g} Hz",
            )


def features(samples: Array, settings: MfccSettings | None = None) -> Array:
    """Rows of float32 features of int16 ``samples``."""
    settings = settings or MfccSettings()
    frames = frames_of(np.asarray(samples, np.int16).reshape(-1), settings).astype(np.float64)
    power = np.abs(np.fft.rfft(frames * window(settings), axis=1)) ** 2
    mel = power @ filters(settings).T
    logs = 10 * np.log10(np.maximum(mel, 1e-10)) if settings.log == "db" else np.log(mel + 1e-6)
    rows: Array = logs @ cosines(settings).T if settings.coefficients else logs
    return rows.astype(np.float32)


def window(settings: MfccSettings) -> Array:
    """In the middle of a frame; also makes samples of int16 numbers of -1 to 1."""
    count = settings.window_samples or settings.fft
    base = 0.5 if settings.shape == "hann" else 0.54
    shape = base - (1 - base) * np.cos(2 * np.pi * np.arange(count) / count)
    before = (settings.fft - count) // 2
    return np.pad(shape, (before, settings.fft - count - before)) / 32768


def filters(settings: MfccSettings) -> Array:
    """Triangles between neighbouring centres: (mels, bins)."""
    ends = _mels(np.array([settings.lower_hz, settings.top_hz]), settings.style)
    edges = _hertz(np.linspace(ends[0], ends[1], settings.mels + 2), settings.style)
    bins = np.arange(settings.fft // 2 + 1) * settings.rate / settings.fft
    widths = np.diff(edges)
    rising = (bins[None, :] - edges[:-2, None]) / widths[:-1, None]
    falling = (edges[2:, None] - bins[None, :]) / widths[1:, None]
    weights = np.maximum(0, np.minimum(rising, falling))
    if settings.style == "librosa":
        weights *= 2 / (edges[2:] - edges[:-2])[:, None]
    return weights


def _mels(hertz: Array, style: str) -> Array:
    if style == "torchaudio":
        return 2595 * np.log10(1 + hertz / 700)
    high = 15 + np.log(np.maximum(hertz, 1000) / 1000) / (np.log(6.4) / 27)
    return np.where(hertz < 1000, hertz * 3 / 200, high)


def _hertz(mels: Array, style: str) -> Array:
    if style == "torchaudio":
        return 700 * (10 ** (mels / 2595) - 1)
    high = 1000 * np.exp((np.maximum(mels, 15) - 15) * (np.log(6.4) / 27))
    return np.where(mels < 15, mels * 200 / 3, high)


def cosines(settings: MfccSettings) -> Array:
    """The orthonormal cosine transform: (coefficients, mels)."""
    count = settings.mels
    k, m = np.arange(settings.coefficients)[:, None], np.arange(count)[None, :]
    matrix = np.cos(np.pi * k * (2 * m + 1) / (2 * count)) * np.sqrt(2 / count)
    matrix[:1] /= np.sqrt(2)
    return matrix


def write(model: str, settings: MfccSettings) -> Written:
    weights = filters(settings)
    runs = [np.flatnonzero(row) for row in weights]
    constants: dict[str, Array] = {
        "window": window(settings).astype(np.float32),
        "firsts": np.array([run[0] if run.size else 0 for run in runs], np.uint16),
        "counts": np.array([run.size for run in runs], np.uint16),
        "weights": np.concatenate([row[run] for row, run in zip(weights, runs, strict=True)]).astype(
            np.float32
        ),
        **({"cosines": cosines(settings).astype(np.float32)} if settings.coefficients else {}),
    }
    tables = [Table(f"{model}_frontend_{key}", values) for key, values in constants.items()]
    fft, fft_tables = fft_members(f"{model}_frontend", FftTables(settings.fft // 2, True))
    members = {f".{key}": f"{model}_frontend_{key}" for key in constants} | fft
    members |= {
        ".mels": str(settings.mels),
        ".coefficients": str(settings.coefficients),
        ".decibels": c.boolean(settings.log == "db"),
    }
    work, mels = f"{model}_frontend_work", f"{model}_frontend_mels"
    return Written(
        headers=["<tinyml/mfcc.h>"],
        sources=["signal/mfcc_f32.c", "signal/fft_f32.c"],
        tables=[*tables, *fft_tables],
        records=[Record("struct tinyml_mfcc_f32", f"{model}_frontend", members)],
        memory=[
            Memory("float", work, settings.fft + 2, 4 * (settings.fft + 2), "of the transform"),
            Memory("float", mels, settings.mels, 4 * settings.mels, "the mel spectrum"),
        ],
        statement=f"tinyml_mfcc_f32(&{model}_frontend, {model}_samples, {model}_window.next, {work}, {mels}, "
        f"{model}_row);",
    )
