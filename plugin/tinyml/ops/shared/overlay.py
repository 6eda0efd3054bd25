# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the output of a sliding window may start so that it can overlap its input.

Positions are computed in order: the input is consumed from one end while the output grows from there. The
output needs a lead of about one row less than the window has, and the two share the rest of the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tinyml.ir import Array, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Overlay

WORD = 4  # distances are multiples of four bytes: kernels read aligned words
NOTHING_READ = np.iinfo(np.int64).max


class Sliding(Protocol):
    """An operator whose window moves over its input; padding before each axis comes first."""

    @property
    def strides(self) -> Sequence[int]: ...
    @property
    def dilations(self) -> Sequence[int]: ...
    @property
    def pads(self) -> Sequence[int]: ...


def forwards(layer: Layer[Convolution], copied: bool, together: int = 1) -> tuple[Overlay, ...]:
    """For convolutions that begin with the first position.

    ``copied``: all that a position reads is read before the first output of that position is written.
    ``together``: so many positions are read and written at once, in any order.
    """
    return sliding(layer, layer.op, layer.input(1).shape[1:3], copied, together)


def sliding(
    layer: Layer, op: Sliding, kernel: Sequence[int], copied: bool, together: int = 1
) -> tuple[Overlay, ...]:
    """The same for any window. Where a channel of the output depends on one of the input alone, it does not
    matter that the channels after it have not been read yet: that is as good as a copy."""
    first, _ = _read(layer, op, kernel)
    needed = np.minimum.accumulate(first[::-1])[::-1]  # from each position on
    written = np.minimum(np.arange(len(needed)) + (0 if copied else together), len(needed))
    lead = int(np.max(written * layer.output.shape[-1] - needed, initial=0))
    return if_shared(layer, Overlay(0, -whole_words(lead * layer.output.dtype.bytes)))


def backwards(layer: Layer[Convolution], copied: bool, together: int = 1) -> tuple[Overlay, ...]:
    """For convolutions that begin with the last position."""
    _, end = _read(layer, layer.op, layer.input(1).shape[1:3])
    needed = np.maximum.accumulate(end)  # up to each position
    unwritten = np.maximum(np.arange(len(needed)) + (1 if copied else 1 - together), 0)
    if copied:  # nothing is written before the first one is read
        needed, unwritten = needed[:-1], unwritten[:-1]
    lead = int(np.max(needed - unwritten * layer.output.shape[-1], initial=0))
    return if_shared(layer, Overlay(0, whole_words(lead * layer.output.dtype.bytes), backwards=True))


def _read(layer: Layer, op: Sliding, kernel: Sequence[int]) -> tuple[Array, Array]:
    """For each position, the first input element that it reads, and one past the last."""
    x, y = layer.input(0), layer.output
    batches, channels = x.shape[0], x.shape[-1]
    first = end = np.arange(batches, dtype=np.int64)
    nothing = np.zeros(batches, bool)
    for axis, taps in enumerate(kernel):
        size, dilation = x.shape[1 + axis], op.dilations[axis]
        start = np.arange(y.shape[1 + axis]) * op.strides[axis] - op.pads[axis]
        low = start + np.maximum(-(start // dilation), 0) * dilation  # taps before the input read nothing
        high = start + np.minimum((size - 1 - start) // dilation, taps - 1) * dilation
        nothing = nothing[..., None] | (low > high)
        first, end = first[..., None] * size + low, end[..., None] * size + high
    first = np.where(nothing, NOTHING_READ, first * channels)
    return first.reshape(-1), np.where(nothing, 0, (end + 1) * channels).reshape(-1)


def whole_words(size: int) -> int:
    return -(-size // WORD) * WORD


def if_shared(layer: Layer, overlay: Overlay) -> tuple[Overlay, ...]:
    """The overlay; none if nothing would overlap, or if elements differ in size."""
    if layer.input(0).dtype.bytes != layer.output.dtype.bytes:
        return ()
    below = layer.output.bytes if overlay.distance < 0 else layer.input(0).bytes
    return (overlay,) if abs(overlay.distance) < below else ()
