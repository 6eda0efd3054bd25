# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arrays in the shape and type of an input of the model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Shape


@dataclass(frozen=True)
class Input:
    """What samples must match in an input of the model."""

    name: str
    shape: Shape
    dtype: DType
    is_open: bool = False  # the file leaves its shape open

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


def split(array: Array, wanted: Input, path: Path) -> Array:
    """The array as (count, *shape of the input), or a message that says which shapes would do."""
    shape = wanted.shape
    body = [size for size in shape if size != 1]
    if array.size and array.size % max(wanted.elements, 1) == 0:
        if array.shape == shape:
            return array[np.newaxis]
        if array.shape[1:] == shape or (shape[:1] == (1,) and array.shape[1:] == shape[1:]):
            return array.reshape(-1, *shape)
        if [size for size in array.shape[1:] if size != 1] == body:
            return array.reshape(-1, *shape)  # axes of extent 1 omitted or added
        if shape[:1] == (1,) and array.shape == shape[1:]:
            return array.reshape(1, *shape)  # one sample
        if array.shape[1:] == shape[1:] and shape:
            return array.reshape(-1, *shape)  # samples one after the other along the first axis
    row = shape[1:] if shape[:1] == (1,) else shape
    hint = f"an array of shape N{'x' if row else ''}{text(row) if row else ''}, one row per sample"
    inner = array.shape[1:]
    if not array.size:
        raise ConfigError(f"{path} has no samples for {wanted.name!r}", hint)
    if int(np.prod(inner)) == wanted.elements:
        hint = f"array.reshape({', '.join(map(str, (-1, *row)))}), if the order of the numbers is right"
    for order in itertools.permutations(range(len(inner))):
        if tuple(inner[axis] for axis in order) == row and order != tuple(range(len(inner))):
            axes = ", ".join(str(axis + 1) for axis in order)
            hint = f"array.transpose(0, {axes}): the dimensions are in a different order"
            break
    if wanted.is_open and array.ndim == len(shape):
        hint += "; the model leaves its shape open, so for one run on all of the data "
        hint += f"--shape {wanted.name}={text(array.shape)}"
    raise ConfigError(
        f"{path}: the data for {wanted.name!r} has shape {text(array.shape)}; the model takes {text(shape)}",
        hint,
    )


def typed(array: Array, wanted: Input, path: Path, plain: bool = False) -> Array:
    """The array in the type of the input; ``plain``: values that are not finite are fine."""
    if array.dtype.kind not in "iubf":
        raise ConfigError(
            f"{path}: the data for {wanted.name!r} is {array.dtype}; the model takes {wanted.dtype.value}"
        )
    if wanted.dtype.is_float:
        with np.errstate(over="ignore"):
            values = array.astype(wanted.dtype.numpy)
        if not plain and not np.isfinite(values).all():
            bad = int(np.argwhere(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0, 0])
            raise ConfigError(
                f"{path}: the data for {wanted.name!r} contains values that are not finite, "
                f"the first in sample {bad}",
                "remove such samples",
            )
        if np.isinf(values).sum() > np.isinf(array).sum():
            raise ConfigError(
                f"{path}: the data for {wanted.name!r} has values beyond {wanted.dtype.value}",
                f"at most {np.finfo(wanted.dtype.numpy).max:g}",
            )
        return values
    with np.errstate(invalid="ignore"):
        values = array.astype(wanted.dtype.numpy)
    if not np.array_equal(values, array):
        raise ConfigError(
            f"{path}: the data for {wanted.name!r} does not fit {wanted.dtype.value} "
            f"({span(array)}, {array.dtype})"
        )
    return values


def text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def span(array: Array) -> str:
    return f"{array.min():g}..{array.max():g}" if array.size else "empty"
