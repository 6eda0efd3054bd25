# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What can be chosen about the micro front end, with the values that published models were trained with."""

from __future__ import annotations

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass

ROUNDINGS = ("separate", "fused")
"""How a product that is added is rounded: before the sum, or only with it. Few weights differ, by a step."""


@dataclass(frozen=True)
class MicroSettings:
    """The keys of ``frontend: {kind: micro, …}``."""

    rate: int = 16000  # samples per second
    window_ms: int = 30
    step_ms: int = 20
    channels: int = 40  # bands of the filter bank: features in a row
    lower_hz: float = 125.0
    upper_hz: float = 7500.0
    noise_bits: int = 10  # fraction bits of the noise estimate
    even_smoothing: float = 0.025  # share of a new frame in the noise estimate, for bands 0, 2, …
    odd_smoothing: float = 0.06
    min_signal: float = 0.05  # share of the signal that noise reduction leaves at least
    pcan: bool = True  # per-channel gain
    pcan_strength: float = 0.95
    pcan_offset: float = 80.0
    pcan_bits: int = 21  # fraction bits of the gain
    log: bool = True
    log_shift: int = 6  # the logarithm is multiplied by 2 to this power
    scale: float = 0.0390625  # what one step of a feature is worth to the model
    rounding: str = "separate"  # of the filters' weights: as on x86_64; "fused": as aarch64 and ESP32-S3 do

    @property
    def axes(self) -> int:
        return 1

    @property
    def width(self) -> int:
        return self.channels

    @property
    def window(self) -> int:
        """Samples in a frame."""
        return self.window_ms * self.rate // 1000

    @property
    def step(self) -> int:
        """Samples between frames."""
        return self.step_ms * self.rate // 1000

    @property
    def fft(self) -> int:
        """The power of two that holds a frame."""
        return 1 << (self.window - 1).bit_length()

    @property
    def correction_bits(self) -> int:
        """The transform divides by its length, the filters multiply by 2^12 under a root: what remains."""
        return self.fft.bit_length() - 1 - 6

    def __post_init__(self) -> None:
        if not 1000 <= self.rate <= 192000:
            raise ConfigError(f"rate: {self.rate} samples per second", "1000 to 192000, for example 16000")
        if self.window < 8 or self.fft > 4096:
            raise ConfigError(
                f"window_ms: {self.window_ms} ms at {self.rate} Hz are {self.window} samples",
                "8 to 4096 samples; 30 ms are usual",
            )
        if not 1 <= self.step <= self.window:
            raise ConfigError(
                f"step_ms: a step of {self.step_ms} ms does not fit a window of {self.window_ms} ms",
                "a step as long as the window or shorter; 10 or 20 ms are usual",
            )
        if not 1 <= self.channels <= 128:
            raise ConfigError(f"channels: {self.channels} bands", "1 to 128; 40 are usual")
        if not 0 <= self.lower_hz < self.upper_hz <= self.rate / 2:
            raise ConfigError(
                f"bands from {self.lower_hz:g} to {self.upper_hz:g} Hz at {self.rate} samples per second",
                f"lower_hz below upper_hz, and upper_hz at most {self.rate / 2:g} Hz",
            )
        for key in ("even_smoothing", "odd_smoothing", "min_signal"):
            if not 0 <= getattr(self, key) <= 1:
                raise ConfigError(f"{key}: {getattr(self, key):g}", "0 to 1")
        if not 0 <= self.noise_bits <= 14:
            raise ConfigError(f"noise_bits: {self.noise_bits}", "0 to 14")
        if not 0 <= self.pcan_bits - self.correction_bits - 12 <= 31 or self.pcan_offset < 0:
            raise ConfigError(
                f"pcan_bits: {self.pcan_bits}, pcan_offset: {self.pcan_offset:g}", "21 and 80 are usual"
            )
        if not 0 <= self.log_shift <= 10:
            raise ConfigError(f"log_shift: {self.log_shift}", "0 to 10")
        if self.rounding not in ROUNDINGS:
            raise ConfigError(f"rounding: {self.rounding!r}", f"one of: {', '.join(ROUNDINGS)}")
        if not self.scale > 0:
            raise ConfigError(f"scale: {self.scale:g}", "greater than 0; 0.0390625 is usual")
