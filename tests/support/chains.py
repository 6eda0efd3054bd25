# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Chains of layers that are wide inside, of random geometry: what bands of rows are made for."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np

from tests.support.sketch import Sketch
from tinyml.cores.targets import Target
from tinyml.ir import DType, Graph, Quant, Tensor
from tinyml.memory.bands import chains
from tinyml.memory.bands.chains import Choice
from tinyml.memory.select import Selected
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.lookup import from_function
from tinyml.ops.pad import Pad
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.settings.optimize import Chaining

FLAT = (1, 41)  # extents of 1-D chains
KINDS = ("conv", "depthwise", "pool", "average", "lookup")


class Chain:
    """A graph in the making; every layer continues from the last one."""

    def __init__(
        self,
        seed: int,
        dtype: DType = DType.INT8,
        extents: tuple[int, int] = (29, 9),
        sketch: Sketch | None = None,
        channels: int = 4,
    ) -> None:
        self.rng = random.Random(seed)
        self.sketch = sketch or Sketch(seed)
        self.dtype = dtype
        self.same = False  # whether windows keep the extents
        self.end: Tensor = self.sketch.input((1, *extents, channels), dtype, self._quant())

    def _quant(self) -> Quant | None:
        zero, scale = self.rng.randint(-20, 20), self.rng.uniform(0.05, 0.2)
        if self.dtype is DType.INT16:
            return Quant.per_tensor(scale / 200, 0)
        return Quant.per_tensor(scale, zero) if self.dtype is DType.INT8 else None

    def _window(self, room: bool) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]:
        """Kernel, strides and padding: less padding than the kernel has rows. Of height 1 in 1-D chains."""
        if self._flat:
            return self._flat_window(room)
        if self.same:
            kernel = (self.rng.choice([1, 3, 5]), self.rng.choice([1, 3]))
            before = (kernel[0] // 2, kernel[1] // 2)
            return kernel, (1, 1), (*before, *before)
        kernel = (self.rng.randint(1, 4), self.rng.randint(1, 4)) if room else (1, 1)
        strides = (self.rng.randint(1, 2), self.rng.randint(1, 2))
        top, left, bottom, right = (self.rng.randint(0, k - 1) for k in (*kernel, *kernel))
        return kernel, strides, (top, left, bottom, right)

    def _flat_window(self, room: bool) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]:
        if self.same:
            width = self.rng.choice([1, 3, 5])
            return (1, width), (1, 1), (0, width // 2, 0, width // 2)
        width = self.rng.randint(1, 5) if room else 1
        pads = (0, self.rng.randint(0, width - 1), 0, self.rng.randint(0, width - 1))
        return (1, width), (1, self.rng.randint(1, 2)), pads

    @property
    def _flat(self) -> bool:
        return self.end.shape[1] == 1

    @property
    def _room(self) -> bool:
        return min(self.end.shape[2 if self._flat else 1 : 3]) > 3

    def add(self, kind: str, channels: int) -> None:
        getattr(self, f"_{kind}")(channels)

    def _conv(self, channels: int) -> None:
        kernel, strides, pads = self._window(self._room)
        inputs = self.end.shape[3]
        groups = self.rng.choice([1, 1, math.gcd(inputs, channels)]) if self._flat else 1
        op = Conv(strides, self._dilations(kernel), pads, groups=groups)
        self._weighted(op, (channels, *kernel, inputs // groups), 0)

    def _depthwise(self, channels: int) -> None:
        kernel, strides, pads = self._window(self._room)
        op = DepthwiseConv(strides, self._dilations(kernel), pads)
        self._weighted(op, (1, *kernel, self.end.shape[3]), 3)

    def _dilations(self, kernel: tuple[int, int]) -> tuple[int, int]:
        """As temporal convolutions have them; only in 1-D chains, where the input has room for them."""
        fits = self._flat and not self.same and self.end.shape[2] > 3 * kernel[1]
        return (1, self.rng.choice([1, 1, 2, 3]) if fits else 1)

    def _weighted(self, op: Conv | DepthwiseConv, shape: Sequence[int], axis: int) -> None:
        if self.dtype is DType.FLOAT32:
            w, b = self.sketch.real(*shape), self.sketch.real(shape[axis])
        else:
            w = self.sketch.weights(shape, axis)
            b = self.sketch.bias(shape[axis], dtype="int64" if self.dtype is DType.INT16 else "int32")
        self.end = self.sketch.add(op, self.end, w, b, quant=self._quant())

    def _pool(self, channels: int) -> None:
        kernel, strides, pads = self._window(self._room)
        self.end = self.sketch.add(MaxPool(kernel, strides, pads=pads), self.end)

    def _average(self, channels: int) -> None:
        kernel, strides, pads = self._window(self._room)
        op = AveragePool(kernel, strides, pads=pads)
        self.end = self.sketch.add(op, self.end, quant=self.end.quant)

    def add_side(self, x: Tensor, stride: int) -> Tensor:
        """The way around a block, from ``x`` to the shape of its end: as in ResNet or in BlazeFace."""
        main, channels = self.end, self.end.shape[3]
        self.end = x
        if self.rng.random() < 0.4:
            self._weighted(Conv((stride, stride)), (channels, 1, 1, x.shape[3]), 0)
        else:
            if stride == 2:
                self.end = self.sketch.add(MaxPool((2, 2), (2, 2), pads=(0, 0, 1, 1)), x)
            more = channels - x.shape[3]
            self.end = self.sketch.add(Pad((0, 0, 0, 0), (0, 0, 0, more)), self.end, quant=x.quant)
        side, self.end = self.end, main
        return side

    def _lookup(self, channels: int) -> None:
        if self.dtype is not DType.INT8:
            return
        op = from_function("tanh", np.tanh, self.end, Tensor("y", (), DType.INT8, self.end.quant))
        self.end = self.sketch.add(op, self.end, quant=self.end.quant)

    def graph(self) -> Graph:
        return self.sketch.graph(self.end)


def random_chain(
    seed: int,
    dtype: DType = DType.INT8,
    sketch: Sketch | None = None,
    extents: tuple[int, int] = (29, 9),
) -> Chain:
    """It widens with the first layer. One in three is a residual block, one in six has a side besides."""
    chain = Chain(seed, dtype, extents, sketch)
    if seed % 3 == 0:
        x, chain.same = chain.end, True
        for kind, channels in (("conv", 24), ("depthwise", 0), ("conv", x.shape[3])):
            chain.add(kind, channels)
        operands = (x, chain.end) if seed % 2 else (chain.end, x)
        chain.end = chain.sketch.add(Binary("add"), *operands, quant=chain._quant())
        return chain
    if seed % 3 == 1 and seed // 3 % 2:
        x, stride = chain.end, chain.rng.randint(1, 2)
        chain.same = True
        chain.add("conv", 12)
        shape = (1, 3, 3, chain.end.shape[3])
        chain._weighted(DepthwiseConv((stride, stride), pads=(1, 1, 1, 1)), shape, 3)
        chain.add("conv", x.shape[3] + 4)
        side = chain.add_side(x, stride)
        operands = (side, chain.end) if seed % 4 == 1 else (chain.end, side)
        chain.end = chain.sketch.add(Binary("add"), *operands, quant=chain._quant())
        return chain
    chain.add("conv", 24)
    for _ in range(chain.rng.randint(1, 3)):
        chain.add(chain.rng.choice(KINDS), chain.rng.choice([5, 8, 12]))
    return chain


def join_everything(
    graph: Graph, selected: tuple[Selected, ...], target: Target, _: bool, __: Chaining
) -> Choice:
    """In the place of ``join.in_bands``: all chains, worthwhile or not, in bands of two rows."""
    step = 0
    while step < len(selected):
        for chain in sorted(chains.chains_around(graph, selected, step), key=len, reverse=True):
            if joined := chains.joined(graph, selected, chain, 2, target):
                graph, selected = joined
                break
        step += 1
    return graph, selected
