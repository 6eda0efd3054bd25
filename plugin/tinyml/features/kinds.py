# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The kinds of front ends, and what all of them have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tinyml.base.lazy_dataclass import dataclass
from tinyml.features import mfcc, normalize, spectral
from tinyml.features.micro import code as micro_code
from tinyml.features.micro import compute as micro_compute
from tinyml.features.micro.micro_settings import MicroSettings
from tinyml.features.written import Written
from tinyml.ir import Array


class Settings(Protocol):
    """What the rest of the compiler must know of a front end's settings."""

    @property
    def rate(self) -> float: ...  # samples per second

    @property
    def axes(self) -> int: ...  # channels of the samples, interleaved

    @property
    def window(self) -> int: ...  # frames that a row of features is computed from

    @property
    def step(self) -> int: ...  # frames between rows

    @property
    def width(self) -> int: ...  # features in a row

    @property
    def scale(self) -> float: ...  # what one step of a feature is worth to the model


@dataclass(frozen=True)
class Kind:
    """A front end: its settings, its meaning in numpy and its C."""

    help: str
    settings: Callable[..., Any]
    compute: Callable[[Array, Any], Array]
    write: Callable[[str, Any], Written]
    sample: str  # element type of the samples
    integer: bool  # whether features are whole numbers


KINDS: Mapping[str, Kind] = {
    "micro": Kind(
        "the integer front end of TensorFlow's micro models: mel bands, noise reduction, gain, logarithm",
        MicroSettings,
        micro_compute.features,
        micro_code.write,
        "int16",
        True,
    ),
    "mfcc": Kind(
        "mel spectra and MFCC as librosa and torchaudio define them",
        mfcc.MfccSettings,
        mfcc.features,
        mfcc.write,
        "int16",
        False,
    ),
    "spectral": Kind(
        "statistics (RMS, kurtosis, ...) and band powers of vibrations, as scipy computes them",
        spectral.SpectralSettings,
        spectral.features,
        spectral.write,
        "float32",
        False,
    ),
    "normalize": Kind(
        "the samples themselves, less a mean and divided by a deviation",
        normalize.NormalizeSettings,
        normalize.features,
        normalize.write,
        "float32",
        False,
    ),
}


def names() -> Sequence[str]:
    return tuple(KINDS)
