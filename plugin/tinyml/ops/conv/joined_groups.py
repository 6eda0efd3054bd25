# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Groups of convolutions that are joined: small ones leave room in words, vectors and blocks of filters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer
from tinyml.ops.conv.convolution import Convolution

MORE_BYTES = 1024
"""Weights of zero that joined groups may add, beside a part of the weights."""

GROWTH = 1.25
"""What the weights may become, beside these bytes, without vectors."""


def groups_of(layer: Layer[Convolution]) -> int:
    return int(layer.input(0).shape[3] // layer.input(1).shape[3])


@dataclass(frozen=True)
class Joining:
    """What decides how many groups are joined."""

    elements: Callable[[int, int], int]  # of a stored filter: by taps and channels
    instructions: Callable[[int, int, int], float]  # about, for a group: by taps, channels and filters
    growth: float  # of the weights, beside ``MORE_BYTES``


def together(layer: Layer[Convolution], joining: Joining) -> int:
    """How many groups are joined: small ones leave room in words and among four filters.

    Joined groups have more products, of zeros, and fewer columns and sums to begin and to end.
    """
    outs, height, width, channels = layer.input(1).shape
    taps, groups = height * width, groups_of(layer)
    choices = counts(
        groups,
        outs * taps * channels,
        joining.growth,
        lambda n: outs * joining.elements(taps, n * channels),
    )
    return min(choices or [1], key=lambda n: joining.instructions(taps, n * channels, n * outs // groups) / n)


def joined(layer: Layer[Convolution], joining: Joining) -> tuple[Array, int]:
    """Filters of joined groups, with zeros for the channels of the others, and the number of groups left."""
    count, groups = together(layer, joining), groups_of(layer)
    return side_by_side(layer.input(1).value, groups, count), groups // count


def side_by_side(filters: Array, groups: int, count: int) -> Array:
    """Filters that read the channels of ``count`` groups, with zeros for those of the others."""
    outs, height, width, channels = filters.shape
    left = groups // count
    wide = np.zeros((left, count, outs // groups, height, width, count, channels), filters.dtype)
    split = filters.reshape(left, count, -1, height, width, channels)
    for n in range(count):
        wide[:, n, :, :, :, n] = split[:, n]
    return wide.reshape(outs, height, width, count * channels)


def counts(groups: int, weight_bytes: int, growth: float, stored: Callable[[int], int]) -> list[int]:
    """How many groups may be joined, so that the bytes that are ``stored`` do not grow beyond the limit."""
    most = weight_bytes * growth + MORE_BYTES
    return [n for n in range(1, groups + 1) if groups % n == 0 and stored(n) <= most]
