# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers without weights, of random geometry: pools, reductions, softmax, arithmetic on two tensors, and the
windows of convolutions with three spatial axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.weighted_layers import WIDE
from tinyml.ir import DType, Node, Op, Quant, Shape, Tensor
from tinyml.ops.conv.depth_windows import DepthWindows
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.softmax.softmax import Softmax

Made = tuple[Node, list[Tensor]]
"""A layer, and its tensors."""


class Sampler:
    """Draws layers, each on a type of its own."""

    def __init__(self, rng: np.random.Generator, name: str) -> None:
        self.rng, self.name = rng, name
        self.dtype = (DType.INT8, DType.INT8, DType.INT16, DType.FLOAT32)[self.pick(0, 1, 2, 3)]
        self.shape = (self.pick(1, 1, 2), self.pick(*WIDE.rows), self.pick(*WIDE.columns), self.channels())

    def pick(self, *choices: int) -> int:
        return int(self.rng.choice(choices))

    def channels(self) -> int:
        return self.pick(*WIDE.inputs)

    def tensor(self, place: str, shape: Shape, scale: float = 0.05, zero: int = 3) -> Tensor:
        """A tensor of this layer; float ones have no scale, and int16 has a zero point of 0."""
        name = f"{self.name}_{place}"
        if self.dtype is DType.FLOAT32:
            return Tensor(name, shape, self.dtype)
        quant = (
            Quant.per_tensor(scale, zero) if self.dtype is DType.INT8 else Quant.per_tensor(scale / 256, 0)
        )
        return Tensor(name, shape, self.dtype, quant)

    def made(self, op: Op, inputs: list[Tensor], output: Tensor) -> Made:
        node = Node(self.name, op, tuple(tensor.name for tensor in inputs), (output.name,))
        return node, [*inputs, output]


def pool(draw: Sampler) -> Made | None:
    rng, (_, rows, columns, _) = draw.rng, draw.shape
    kernel = (draw.pick(1, 2, 3, 5, rows), draw.pick(1, 2, 3, 4, columns))
    pads = tuple(int(rng.integers(0, k)) for k in (*kernel, *kernel)) if rng.random() < 0.4 else (0, 0, 0, 0)
    if rows + pads[0] + pads[2] < kernel[0] or columns + pads[1] + pads[3] < kernel[1]:
        return None
    strides = (draw.pick(1, 2, 3), draw.pick(1, 2))
    clamp = (0.0, 1.5) if rng.random() < 0.3 else (-np.inf, np.inf)
    largest = rng.random() < 0.4
    op: Op
    if largest:
        op = MaxPool(kernel, strides, (1, 1), pads, clamp=clamp)
    else:
        op = AveragePool(
            kernel, strides, (1, 1), pads, clamp=clamp, halves=("away", "even")[int(rng.random() < 0.5)]
        )
    x = draw.tensor("x", draw.shape)
    shape = op.infer([x])[0].shape
    y = draw.tensor("y", shape) if largest or rng.random() < 0.5 else draw.tensor("y", shape, 0.03, -7)
    if isinstance(op, AveragePool) and x.quant and not op.has_integer_form(x, y):
        return None  # computed in float32, between a dequantisation and a quantisation
    return draw.made(op, [x], y)


def usual_pool(draw: Sampler) -> Made | None:
    """As in networks that people train: square windows of many channels, beside each other, one image."""
    size, channels = draw.pick(2, 2, 2, 3), draw.pick(4, 8, 12, 16, 24, 32, 40, 64)
    rows, columns = draw.pick(*range(3, 15)), draw.pick(*range(3, 15))
    if draw.pick(0, 0, 1):
        columns = 1  # a signal
    kernel = (size, min(size, columns))
    pads = (1, columns > 1, 1, columns > 1) if size == 3 and draw.pick(0, 1) else (0, 0, 0, 0)
    strides = (draw.pick(2, size), draw.pick(2, size) if columns > 1 else 1)
    op: Op = MaxPool(kernel, strides, (1, 1), tuple(map(int, pads)))
    if draw.pick(0, 0, 1):
        op = AveragePool(kernel, strides, (1, 1), tuple(map(int, pads)))
    x = draw.tensor("x", (1, rows, columns, channels))
    y = draw.tensor("y", op.infer([x])[0].shape)
    if isinstance(op, AveragePool) and x.quant and not op.has_integer_form(x, y):
        return None
    return draw.made(op, [x], y)


def reduction(draw: Sampler) -> Made | None:
    rank = draw.pick(2, 3, 4)
    shape = draw.shape[:rank]
    axes = tuple(sorted(int(a) for a in draw.rng.choice(rank, draw.pick(1, 2), replace=False)))
    function = ("mean", "mean", "sum", "max", "min")[draw.pick(*range(5))]
    op = Reduce(function, axes, round_once=bool(draw.rng.random() < 0.5))
    x = draw.tensor("x", shape)
    shape = op.infer([x])[0].shape
    other_scale = {"mean": 0.02, "sum": draw.pick(5, 50, 200) / 100}
    y = (
        draw.tensor("y", shape, other_scale[function], -7)
        if function in other_scale
        else draw.tensor("y", shape)
    )
    return draw.made(op, [x], y)


def softmax(draw: Sampler) -> Made | None:
    scale = float(draw.rng.uniform(0.002, 0.2))
    x = draw.tensor("x", (draw.pick(1, 2, 5), draw.channels() * draw.pick(1, 7)), scale * draw.pick(1, 30))
    outputs = 1 / 256 if draw.dtype is DType.INT8 else 256 / 32768
    return draw.made(Softmax(), [x], draw.tensor("y", x.shape, outputs, -128))


def binary(draw: Sampler) -> Made | None:
    rng, shape = draw.rng, draw.shape
    function = ("add", "add", "add", "sub", "mul")[draw.pick(*range(5))]
    other = (shape, shape, shape[-1:], (1,))[draw.pick(*range(4))]
    clamp = (0.0, np.inf) if rng.random() < 0.3 else (-np.inf, np.inf)
    a = draw.tensor("a", shape, draw.pick(5, 21, 50) / 1000, draw.pick(3, -128, 127))
    b = draw.tensor("b", other, draw.pick(2, 5, 21, 50) / 1000, draw.pick(-20, 0, 127))
    y = draw.tensor("y", shape, draw.pick(6, 21, 60, 100) / 1000, draw.pick(-7, -128, 0))
    operands = [a, b] if rng.random() < 0.7 else [b, a]
    return draw.made(Binary(function, clamp=clamp, round_once=bool(rng.random() < 0.5)), operands, y)


KINDS: tuple[Callable[[Sampler], Made | None], ...] = (pool, pool, binary, binary, reduction, softmax)


def plain_layer(rng: np.random.Generator, name: str) -> Made:
    """A layer of any of these kinds."""
    while True:
        made = KINDS[int(rng.integers(len(KINDS)))](Sampler(rng, name))
        if made is not None:
            return made


def usual_pool_layer(rng: np.random.Generator, name: str) -> Made:
    """A pool as networks have it."""
    while True:
        made = usual_pool(Sampler(rng, name))
        if made is not None:
            return made


def volume_layer(rng: np.random.Generator, name: str) -> Made:
    """The slices of a volume that meet in one output slice; what follows is a convolution of images."""
    draw = Sampler(rng, name)
    depth, slices, dilation = draw.pick(*range(1, 9)), draw.pick(1, 2, 3, 3, 5), draw.pick(1, 1, 2)
    span = dilation * (slices - 1) + 1
    before = draw.pick(0, *range(slices))
    pads = (before, max(draw.pick(0, *range(slices)), span - depth - before))
    channels = draw.channels()
    groups = draw.pick(*(n for n in range(1, channels + 1) if channels % n == 0))
    op = DepthWindows(slices, draw.pick(1, 1, 2, 3), dilation, pads, groups)
    x = draw.tensor("x", (draw.shape[0], depth, draw.pick(1, 3, 6), draw.pick(1, 4, 7), channels))
    return draw.made(op, [x], draw.tensor("y", op.infer([x])[0].shape))
