# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Scales calibration data as the data of the training was scaled: range, mean and deviation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.datasets.shaping import Input, span, text
from tinyml.ir import Array, Shape
from tinyml.settings.quantize_request import Scaling


def real(array: Array, wanted: Input, scaling: Scaling, path: Path) -> Array:
    """Data for a float input; integers require a range."""
    if array.dtype.kind not in "iufb":
        raise ConfigError(f"{path}: the data for {wanted.name!r} is {array.dtype}, not numbers")
    if array.dtype.kind in "iu" and scaling.low is None:
        raise ConfigError(
            f"{path}: the data for {wanted.name!r} is integers ({array.dtype}, "
            f"{span(array)}), the model takes real numbers",
            "--range 0:1 if the training divided by the largest value, --range -1:1, or, if the numbers are "
            "right as they are, save them as float32",
        )
    full = float(np.iinfo(array.dtype).max) if array.dtype == np.uint8 else None
    values = scaled(array, scaling, full, path)
    return _normalised(values, wanted.shape, scaling, path)


def scaled(array: Array, scaling: Scaling, full: float | None, path: Path) -> Array:
    """Scale numbers in 0..``full`` (None: as found) to the range, mean and deviation used in training."""
    with np.errstate(over="ignore"):  # what becomes infinite is refused later
        values: Array = array.astype(np.float32)
    if scaling.low is not None and scaling.high is not None:
        top = float(full) if full is not None else float(values.max(initial=0.0))
        bottom = 0.0 if full is not None else min(0.0, float(values.min(initial=0.0)))
        if top <= bottom:
            raise ConfigError(f"{path}: all values are {top:g}", "use real data: it determines the ranges")
        values = (values - bottom) / (top - bottom) * (scaling.high - scaling.low) + scaling.low
    return values


def _normalised(values: Array, shape: Shape, scaling: Scaling, path: Path) -> Array:
    """Mean and deviation per channel, which is the axis that has as many entries."""
    for numbers, combine in ((scaling.mean, np.subtract), (scaling.std, np.divide)):
        if not numbers:
            continue
        spread = spread_channels(numbers, shape, path)
        if values.size % max(int(np.prod(shape)), 1) == 0 and values.size:
            values = combine(values.reshape(-1, *shape), spread[np.newaxis]).astype(np.float32)
    return values


def spread_channels(numbers: Sequence[float], shape: Shape, path: Path) -> Array:
    """One number per channel, shaped so that it broadcasts over a sample of ``shape``."""
    if len(numbers) == 1:
        return np.full([1] * len(shape), numbers[0], np.float32)
    axes = [axis for axis, size in enumerate(shape) if size == len(numbers)]
    if not axes:
        raise ConfigError(
            f"{path}: mean or std has {len(numbers)} numbers; no dimension of {text(shape)} has that size",
            "one number, or one for each channel",
        )
    axis = 1 if 1 in axes else axes[-1]
    wide = [1] * len(shape)
    wide[axis] = -1
    return np.asarray(numbers, np.float32).reshape(wide)
