# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions over their own input: no position reads what an earlier one has overwritten."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pytest

from tinyml.ir import DType, Layer, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.framework.kernel import Overlay
from tinyml.ops.shared.overlay import WORD, backwards, forwards, sliding


def random_layer(seed: int) -> Layer[Conv]:
    rng = random.Random(seed)

    def pair(low: int, high: int) -> tuple[int, int]:
        return rng.randint(low, high), rng.randint(low, high)

    dtype = rng.choice([DType.INT8, DType.FLOAT32])
    kernel, strides, dilations = pair(1, 4), pair(1, 3), pair(1, 2)
    pads = (*pair(0, 3), *pair(0, 3))
    extents = [max(rng.randint(2, 7), d * (k - 1) + 1) for k, d in zip(kernel, dilations, strict=True)]
    in_c, out_c = rng.choice([1, 2, 3, 4, 8]), rng.choice([1, 2, 3, 4, 8])
    x = Tensor("x", (rng.randint(1, 2), extents[0], extents[1], in_c), dtype)
    w = Tensor.constant("w", np.zeros((out_c, *kernel, in_c), dtype.numpy))
    op = Conv(strides, dilations, pads)
    (type_,) = op.infer([x, w])
    return Layer("conv", op, (x, w), (Tensor("y", type_.shape, dtype),))


@dataclass
class Walk:
    """A convolution done one position at a time on memory that knows only whether it was overwritten."""

    layer: Layer[Conv]
    distance: int  # in elements
    copied: bool  # whether a position writes only after it has read all

    def reads(self, position: tuple[int, ...]) -> Iterable[int]:
        op, x, w = self.layer.op, self.layer.input(0), self.layer.input(1)
        assert isinstance(op, Conv)
        n, oy, ox = position
        for ky in range(w.shape[1]):
            for kx in range(w.shape[2]):
                iy = oy * op.strides[0] - op.pads[0] + ky * op.dilations[0]
                ix = ox * op.strides[1] - op.pads[1] + kx * op.dilations[1]
                if 0 <= iy < x.shape[1] and 0 <= ix < x.shape[2]:
                    at = ((n * x.shape[1] + iy) * x.shape[2] + ix) * x.shape[3]
                    yield from range(at, at + x.shape[3])

    def is_right(self, backwards: bool) -> bool:
        y = self.layer.output
        overwritten: set[int] = set()
        positions = list(np.ndindex(y.shape[:3]))
        for number, position in sorted(enumerate(positions), reverse=backwards):
            first = self.distance + number * y.shape[3]
            written = set(range(first, first + y.shape[3]))
            if not self.copied:
                overwritten |= written
            if overwritten & set(self.reads(position)):
                return False
            overwritten |= written
        return True


def reads_all(layer: Layer) -> bool:
    """Whether windows leave no gaps, in which outputs could lie as well."""
    op, kernel = layer.op, layer.input(1).shape[1:3]
    assert isinstance(op, Conv)
    return op.dilations == (1, 1) and all(s <= k for s, k in zip(op.strides, kernel, strict=True))


def elements(layer: Layer, overlay: Overlay) -> int:
    return overlay.distance // layer.output.dtype.bytes


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("copied", [True, False])
def test_forwards(seed: int, copied: bool) -> None:
    layer = random_layer(seed)
    for overlay in forwards(layer, copied):
        distance = elements(layer, overlay)
        assert overlay.distance % WORD == 0
        assert Walk(layer, distance, copied).is_right(False)
        if distance and reads_all(layer):  # and it is no further than it has to be
            closer = distance + WORD // layer.output.dtype.bytes
            assert not Walk(layer, closer, copied).is_right(False)


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("copied", [True, False])
def test_backwards(seed: int, copied: bool) -> None:
    layer = random_layer(seed)
    for overlay in backwards(layer, copied):
        assert overlay.backwards
        distance = elements(layer, overlay)
        assert Walk(layer, distance, copied).is_right(True)
        if distance and reads_all(layer):
            closer = distance - WORD // layer.output.dtype.bytes
            assert not Walk(layer, closer, copied).is_right(True)


@pytest.mark.parametrize("seed", range(150))
def test_pools(seed: int) -> None:
    """A channel is written after it has been read, although later channels have not."""
    conv = random_layer(seed)
    op, x, w = conv.op, conv.input(0), conv.input(1)
    assert isinstance(op, Conv)
    y = Tensor("y", (*conv.output.shape[:3], x.shape[3]), x.dtype)
    layer = Layer("pool", op, (x, w), (y,))
    for overlay in sliding(layer, op, w.shape[1:3], copied=True):
        overwritten: set[int] = set()
        walk = Walk(layer, elements(layer, overlay), copied=True)
        for number, position in enumerate(np.ndindex(y.shape[:3])):
            for channel in range(x.shape[3]):
                read = {at for at in walk.reads(position) if at % x.shape[3] == channel}
                assert not overwritten & read
                overwritten.add(walk.distance + number * x.shape[3] + channel)


def test_a_pointwise_convolution_needs_no_lead() -> None:
    """It widens from the end, keeps or narrows from the beginning."""
    x = Tensor("x", (1, 4, 4, 8), DType.INT8)
    for outputs, way in ((16, backwards), (8, backwards), (8, forwards), (4, forwards)):
        w = Tensor.constant("w", np.zeros((outputs, 1, 1, 8), np.int8))
        layer = Layer("conv", Conv(), (x, w), (Tensor("y", (1, 4, 4, outputs), DType.INT8),))
        assert [overlay.distance for overlay in way(layer, True)] == [0]


def test_the_usual_convolution_needs_a_row_and_a_position() -> None:
    x = Tensor("x", (1, 32, 32, 16), DType.INT8)
    w = Tensor.constant("w", np.zeros((16, 3, 3, 16), np.int8))
    layer = Layer("conv", Conv(pads=(1, 1, 1, 1)), (x, w), (Tensor("y", x.shape, DType.INT8),))
    assert [overlay.distance for overlay in forwards(layer, True)] == [-(32 + 1) * 16]
    assert [overlay.distance for overlay in backwards(layer, True)] == [(32 + 1) * 16]
