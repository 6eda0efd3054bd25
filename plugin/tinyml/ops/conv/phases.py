# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A transposed convolution as convolutions: one for each remainder of an output position after the stride."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tinyml.base.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Phase:
    """Along one axis: the outputs ``first``, ``first + stride``, … and the taps that they meet."""

    first: int
    outputs: int
    taps: tuple[int, ...]  # of the kernel, in the order of the input elements that they meet; may be empty
    pad: int  # how far before the input the window of the first output begins; may be negative
    dilation: int = 1  # from an input element of the window to the next


def phases(stride: int, pad: int, taps: int, outputs: int, dilation: int = 1) -> Iterator[Phase]:
    """Output o meets element i at tap k if o = i * stride + k * dilation - pad."""
    common = math.gcd(stride, dilation)
    for first in range(min(stride, outputs)):
        place = first + pad
        met = tuple(k for k in reversed(range(taps)) if (place - k * dilation) % stride == 0)
        begin = (place - met[0] * dilation) // stride if met else 0
        yield Phase(first, -(-(outputs - first) // stride), met, -begin, dilation // common)
