# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Networks of which only some steps or rows are read: temporal convolutions, crops.

Blocks of dilated convolutions with residual additions, pools, borders, joins and functions; slices at the end
or at several places.
"""

from __future__ import annotations

import random

import numpy as np

from tests.support.sketch import Sketch
from tinyml.ir import DType, Graph, Quant, Tensor
from tinyml.ops.concat import Concat
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.lookup import from_function
from tinyml.ops.pad import Pad
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.ops.reshape import Reshape
from tinyml.ops.slice import Slice
from tinyml.ops.transpose import Transpose

LAYERS = ("conv", "conv", "conv", "depthwise", "max_pool", "average", "pad", "function", "clamp", "concat")


class Sequence:
    """A random network; ``axis`` is the one with the steps."""

    def __init__(self, seed: int, dtype: DType) -> None:
        self.rng = random.Random(seed)
        self.sketch = Sketch(seed)
        self.dtype = dtype
        self.axis = self.rng.choice([1, 2, 2])
        self.across = self.rng.choice([1, 1, 1, 5]) if self.axis == 1 else 1
        steps, channels = self.rng.randint(20, 60), self.rng.choice([1, 3, 4, 8])
        shape = (1, steps, self.across, channels) if self.axis == 1 else (1, 1, steps, channels)
        self.channels_first = self.rng.random() < 0.3
        self.quant = None if dtype is DType.FLOAT32 else Quant.per_tensor(0.1, self.rng.randint(-20, 20))
        if self.channels_first:  # as ONNX has them
            x = self.sketch.input(tuple(shape[i] for i in (0, 3, 1, 2)), dtype, self.quant)
            self.input = self.sketch.add(Transpose((0, 2, 3, 1)), x)
        else:
            self.input = self.sketch.input(shape, dtype, self.quant)
        self.outputs: list[Tensor] = []

    def graph(self) -> Graph:
        x = self.input
        for _ in range(self.rng.randint(1, 5)):
            x = self._block(x)
            if self.rng.random() < 0.2:
                self.outputs.append(self._read(x))
        self.outputs.append(self._read(x))
        if self.rng.random() < 0.08:
            self.outputs.append(x)
        return self.sketch.graph(*self.outputs)

    def _read(self, x: Tensor) -> Tensor:
        """Some steps, often the last: as one axis, or with channels first, or of a flat sequence."""
        y = x
        form = self.rng.choice(["plain", "plain", "flat", "first"])
        axis = self.axis
        if form == "flat" and self.across == 1:
            y, axis = self.sketch.add(Reshape((1, x.shape[self.axis], x.shape[3])), y), 1
        elif form == "first":
            y = self.sketch.add(Transpose((0, 3, 1, 2)), y)
            axis = self.axis + 1
        steps = y.shape[axis]
        kind = self.rng.choice(["last", "last", "crop", "strided", "first", "all"])
        start, count, step = 0, steps, 1
        if kind == "last":
            start, count = steps - 1, 1
        elif kind == "first":
            start, count = 0, 1
        elif kind == "crop":
            start = self.rng.randrange(steps)
            count = self.rng.randint(1, steps - start)
        elif kind == "strided":
            start, step = self.rng.randrange(steps), self.rng.randint(1, 5)
            count = self.rng.randint(1, -(-(steps - start) // step))
        rank = len(y.shape)
        starts = tuple(start if i == axis else 0 for i in range(rank))
        extents = tuple(count if i == axis else extent for i, extent in enumerate(y.shape))
        y = self.sketch.add(Slice(starts, extents, tuple(step if i == axis else 1 for i in range(rank))), y)
        if self.dtype is DType.FLOAT32 and self.rng.random() < 0.3:
            y = self.sketch.add(Dense(), y, self.sketch.real(3, y.shape[-1]), self.sketch.real(3))
        return y

    def _block(self, x: Tensor) -> Tensor:
        y = x
        for _ in range(self.rng.randint(1, 3)):
            y = self._layer(y, self.rng.choice(LAYERS))
        if self.rng.random() < 0.7:
            y = self._added(x, y)
        return y

    def _layer(self, x: Tensor, kind: str) -> Tensor:
        dilation = self.rng.choice([1, 1, 2, 4, 8])
        steps = x.shape[self.axis]
        if kind in ("conv", "depthwise"):
            taps = self.rng.randint(1, 4)
            span = (taps - 1) * dilation + 1
            before = self.rng.choice([span - 1, span - 1, span // 2, 0])
            after = 0 if before == span - 1 else span - 1 - before if self.rng.random() < 0.7 else 0
            if steps + before + after < span:
                return x
            stride = self.rng.choice([1, 1, 1, 1, 2, 3])
            return self._convolved(x, kind, taps, stride, dilation, before, after)
        if kind in ("max_pool", "average"):
            taps = self.rng.randint(1, min(3, steps))
            op = MaxPool if kind == "max_pool" else AveragePool
            before, after = (self.rng.randrange(taps) for _ in range(2))
            stride = self.rng.choice([1, 1, 2])
            window = op(self._pair(taps, 1), self._pair(stride, 1), pads=self._pads(before, after))
            return self.sketch.add(window, x, quant=x.quant)
        if kind == "pad":
            widths = [
                tuple(self.rng.randint(0, 3) if i == self.axis else 0 for i in range(4)) for _ in (0, 1)
            ]
            return self.sketch.add(Pad(widths[0], widths[1], self.rng.choice([0.0, 0.0, 1.5])), x)
        if kind == "function" and self.dtype is DType.INT8:
            op_ = from_function("tanh", np.tanh, x, Tensor("y", (), DType.INT8, x.quant))
            return self.sketch.add(op_, x, quant=x.quant)
        if kind == "concat":
            return self.sketch.add(Concat(3), x, self._layer(x, "clamp"))
        return self.sketch.add(Clamp(-1.0, 2.0), x)

    def _convolved(
        self, x: Tensor, kind: str, taps: int, stride: int, dilation: int, before: int, after: int
    ) -> Tensor:
        channels, s = x.shape[3], self.sketch
        kernel = self._pair(taps, 3 if self.across > 1 and self.rng.random() < 0.5 else 1)
        pads = self._pads(before, after, kernel[1] // 2 if self.axis == 1 else 0)
        window = (self._pair(stride, 1), self._pair(dilation, 1), pads)
        made = self.rng.choice([channels, channels, 2, 6]) if kind == "conv" else channels
        shape = (made, *kernel, channels) if kind == "conv" else (1, *kernel, channels)
        op = Conv(*window) if kind == "conv" else DepthwiseConv(*window)
        axis = 0 if kind == "conv" else 3
        if self.dtype is DType.FLOAT32:
            return s.add(op, x, s.real(*shape), s.real(shape[axis]))
        quant = Quant.per_tensor(self.rng.uniform(0.05, 0.3), self.rng.randint(-20, 20))
        return s.add(op, x, s.weights(shape, axis), s.bias(shape[axis]), quant=quant)

    def _added(self, x: Tensor, y: Tensor) -> Tensor:
        """A residual: as it is, or through a 1x1 convolution; or the sum with a constant for each step."""
        if x.shape[:3] != y.shape[:3]:
            if self.dtype is DType.FLOAT32 and self.rng.random() < 0.5:
                return self.sketch.add(Binary("add"), y, self.sketch.real(*y.shape[1:]))
            return y
        if x.shape != y.shape:
            if y.shape[3] == 0:
                return y
            s = self.sketch
            shape = (y.shape[3], 1, 1, x.shape[3])
            if self.dtype is DType.FLOAT32:
                x = s.add(Conv(), x, s.real(*shape), s.real(shape[0]))
            else:
                x = s.add(Conv(), x, s.weights(shape), s.bias(shape[0]), quant=y.quant)
        quant = None if self.quant is None else Quant.per_tensor(0.2, self.rng.randint(-10, 10))
        return self.sketch.add(Binary("add", clamp=self.rng.choice([(0.0, np.inf), (-np.inf, np.inf)])),
                               *self.rng.sample([x, y], 2), quant=quant)  # fmt: skip

    def _pair(self, along: int, across: int) -> tuple[int, int]:
        return (along, across) if self.axis == 1 else (across, along)

    def _pads(self, before: int, after: int, across: int = 0) -> tuple[int, int, int, int]:
        return (before, across, after, across) if self.axis == 1 else (across, before, across, after)
