# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Samples themselves as features, normalised: (x - mean) / std, for each axis."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.features.axes import AxesSettings
from tinyml.features.written import Written
from tinyml.ir import Array
from tinyml.ops.framework.kernel import Table


@dataclass(frozen=True)
class NormalizeSettings(AxesSettings):
    """The keys of ``frontend: {kind: normalize, …}``."""

    most_axes: ClassVar[int] = 64
    rate: float = 50.0
    axes: int = 3
    mean: tuple[float, ...] = ()  # for each axis, or one for all
    std: tuple[float, ...] = ()

    @property
    def window(self) -> int:
        return 1

    @property
    def step(self) -> int:
        return 1

    @property
    def width(self) -> int:
        return self.axes

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("mean", "std"):
            if len(getattr(self, key)) not in (0, 1, self.axes):
                raise ConfigError(
                    f"{key}: {len(getattr(self, key))} numbers for {self.axes} axes",
                    "one for each axis, or one",
                )
        if not all(value > 0 for value in self.std):
            raise ConfigError(
                "std: " + ",".join(f"{value:g}" for value in self.std), "numbers greater than 0"
            )


def features(samples: Array, settings: NormalizeSettings | None = None) -> Array:
    """Rows of float32 features of samples (count, axes)."""
    settings = settings or NormalizeSettings()
    values = np.asarray(samples, np.float32).reshape(-1, settings.axes)
    mean, std = numbers(settings)
    rows: Array = (values - mean) / std
    return rows


def numbers(settings: NormalizeSettings) -> tuple[Array, Array]:
    shape = np.zeros(settings.axes, np.float32)
    mean = shape + np.array(settings.mean or (0.0,), np.float32)
    std = shape + np.array(settings.std or (1.0,), np.float32)
    return mean, std


def write(model: str, settings: NormalizeSettings) -> Written:
    mean, std = numbers(settings)
    names = f"{model}_frontend_mean, {model}_frontend_std"
    return Written(
        headers=["<tinyml/normalize.h>"],
        sources=[],
        tables=[Table(f"{model}_frontend_mean", mean), Table(f"{model}_frontend_std", std)],
        records=[],
        memory=[],
        statement=f"tinyml_normalize_f32({model}_samples, {names}, {settings.axes}, {model}_row);",
    )
