# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Settings that front ends for sensors with several axes have in common."""

from __future__ import annotations

from typing import ClassVar

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass


@dataclass(frozen=True)
class AxesSettings:
    """The rate and the values of a sample, which are used as they are."""

    most_axes: ClassVar[int] = 16
    rate: float = 1000.0  # samples per second
    axes: int = 1  # values of a sample

    @property
    def scale(self) -> float:
        return 1.0

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise ConfigError(f"rate: {self.rate:g} samples per second", "more than 0")
        if not 1 <= self.axes <= self.most_axes:
            raise ConfigError(f"axes: {self.axes}", f"1 to {self.most_axes}; an accelerometer has 3")
