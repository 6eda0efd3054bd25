# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the elements of a resized axis come from, as ONNX defines it: coordinates, neighbours, weights."""

from __future__ import annotations

import math

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@dataclass(frozen=True)
class Sampling:
    """How to resize; the same for all axes."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0


@dataclass(frozen=True)
class Axis:
    """One axis of the output: its extent, its scale, and the region of interest (start, end)."""

    size: int
    scale: float = 1.0
    region: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Taps:
    """For each output element: neighbours, their weights, and whether it lies outside the input."""

    places: Array  # (size, taps)
    factors: Array
    outside: Array  # (size,)


def coordinate(axis: Axis, size: int, index: int, sampling: Sampling) -> float:
    """The place in the input, a real number, that an output element looks at.

    Quotients are float32, as runtimes have them: a scale is rounded (1/6 upwards), and only a quotient that
    is rounded again is the whole number that was meant.
    """
    kind, scale = sampling.coordinates, axis.scale
    length = scale * size  # what the output would measure if it could end between two elements
    length = round(length) if abs(length - round(length)) < 1e-6 else length
    if kind in ("half_pixel", "tf_half_pixel_for_nn"):
        shift = 0.0 if kind == "tf_half_pixel_for_nn" else 0.5
        return _quotient(index + 0.5, scale) - shift
    if kind == "half_pixel_symmetric":
        adjustment = axis.size / (scale * size)
        centre = size / 2
        return centre * (1 - adjustment) + _quotient(index + 0.5, scale) - 0.5
    if kind == "pytorch_half_pixel":
        return _quotient(index + 0.5, scale) - 0.5 if length != 1 else -0.5
    if kind == "align_corners":
        return index * (size - 1) / (length - 1) if length != 1 else 0.0
    if kind == "asymmetric":
        return _quotient(index, scale)
    if kind == "tf_crop_and_resize":
        start, end = axis.region
        if length != 1:
            return start * (size - 1) + index * (end - start) * (size - 1) / (length - 1)
        return 0.5 * (start + end) * (size - 1)
    raise UnsupportedError(f"resize coordinates {kind!r} are not known", ", ".join(COORDINATES))


def _quotient(place: float, scale: float) -> float:
    return float(np.float32(place) / np.float32(scale))


def _round(value: float, rounding: str) -> int:
    if rounding == "round_prefer_floor":
        return math.ceil(value - 0.5)
    if rounding == "round_prefer_ceil":
        return math.floor(value + 0.5)
    if rounding == "floor":
        return math.floor(value)
    if rounding == "ceil":
        return math.ceil(value)
    raise UnsupportedError(f"rounding {rounding!r} is not known", ", ".join(ROUNDINGS))


def nearest(axis: Axis, size: int, sampling: Sampling) -> tuple[int, ...]:
    """The input element for each output element."""
    if unchanged(axis, size, sampling):
        return tuple(range(size))
    picks = []
    for index in range(axis.size):
        place = _round(coordinate(axis, size, index, sampling), sampling.rounding)
        picks.append(min(max(place, 0), size - 1))
    return tuple(picks)


def unchanged(axis: Axis, size: int, sampling: Sampling) -> bool:
    """Whether an axis stays as it is."""
    whole = sampling.coordinates != "tf_crop_and_resize" or axis.region == (0.0, 1.0)
    return axis.size == size and axis.scale == 1.0 and whole


def weights(axis: Axis, size: int, sampling: Sampling) -> Taps | None:
    """Neighbours and weights of each output element; None where the axis stays as it is."""
    if unchanged(axis, size, sampling):
        return None
    stretch = min(axis.scale, 1.0) if sampling.antialias else 1.0
    reach = 1.0 if sampling.mode == "linear" else 2.0
    places, factors, outside = [], [], []
    for index in range(axis.size):
        x = coordinate(axis, size, index, sampling)
        outside.append(sampling.coordinates == "tf_crop_and_resize" and not 0 <= x <= size - 1)
        first = math.floor(x - reach / stretch) + 1
        last = math.ceil(x + reach / stretch) - 1
        taps = range(first, max(last, first) + 1)
        found = [_kernel((tap - x) * stretch, sampling) for tap in taps]
        if sampling.exclude_outside:
            found = [f if 0 <= tap < size else 0.0 for tap, f in zip(taps, found, strict=True)]
        total = sum(found)
        factors.append([f / total if total else 0.0 for f in found])
        places.append([min(max(tap, 0), size - 1) for tap in taps])
    count = max(len(row) for row in places)
    return Taps(
        np.array([row + [0] * (count - len(row)) for row in places], np.int32),
        np.array([row + [0.0] * (count - len(row)) for row in factors]),
        np.array(outside),
    )


def _kernel(distance: float, sampling: Sampling) -> float:
    """The weight of a neighbour at a distance."""
    d = abs(distance)
    if sampling.mode == "linear":
        return max(0.0, 1.0 - d)
    a = sampling.cubic
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    if d < 2:
        return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return 0.0
