# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""int8 layers with weights, of every geometry: described as data, and many of them as one graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinyml.ir import Array, DType, Graph, Node, Quant, Shape, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense

SCALES = (0.1, 0.1, 0.3, 0.00015, 0.00003, 3.0)
"""Of the output. The sums have about 0.0001, so the shift is to the right, none, or to the left."""


@dataclass(frozen=True)
class Weighted:
    """A layer with weights; ``scale`` is that of the output (that of the sums is about 0.0001)."""

    op: Convolution | ConvTranspose | Dense
    x: Shape
    weights: Shape
    zero: int = 0  # of the weights
    scale: float = 0.1
    lowest: int = -127  # of the weights
    largest: int = 127
    bias: bool = True
    x_zero: int = 3
    y_zero: int = -7
    channels: bool = True  # whether weights have a scale for each channel
    extreme: bool = False  # whether biases reach the limits of int32

    def fitted(self) -> Weighted:
        """With weights for as many inputs as x has (dense layers)."""
        return replace(self, weights=(self.weights[0], self.x[-1]))


CHOSEN = {
    "dilated_rows": Weighted(Conv(dilations=(2, 1)), (1, 9, 8, 4), (3, 3, 3, 4)),
    "dilated_cols": Weighted(Conv(dilations=(1, 2)), (1, 9, 8, 4), (3, 3, 3, 4)),
    "depthwise_dilated_rows": Weighted(DepthwiseConv(dilations=(2, 1)), (1, 9, 8, 4), (1, 3, 3, 4)),
    "depthwise_one_output": Weighted(DepthwiseConv(pads=(1, 1, 2, 2)), (1, 2, 2, 6), (1, 5, 5, 6)),
    "depthwise_whole": Weighted(DepthwiseConv(), (2, 9, 1, 11), (1, 9, 1, 11), x_zero=-128),
    "depthwise_whole_few": Weighted(DepthwiseConv(strides=(2, 1)), (1, 3, 3, 3), (1, 3, 3, 3), scale=0.00003),
    "depthwise_3x3": Weighted(DepthwiseConv(pads=(1, 1, 1, 1)), (1, 5, 7, 5), (1, 3, 3, 5)),
    "depthwise_3x3_strided": Weighted(DepthwiseConv((2, 2), pads=(0, 0, 1, 1)), (1, 6, 8, 5), (1, 3, 3, 5)),
    "grouped": Weighted(Conv(pads=(1, 0, 0, 1), groups=3), (1, 6, 5, 9), (6, 2, 3, 3)),
    "transposed": Weighted(ConvTranspose((2, 2), pads=(1, 0), outputs=(9, 8)), (1, 4, 4, 5), (3, 4, 3, 5)),
    "transposed_dilated": Weighted(
        ConvTranspose((1, 3), (2, 1), outputs=(8, 12)), (2, 4, 4, 3), (4, 3, 2, 3), channels=False
    ),
    "transposed_groups": Weighted(
        ConvTranspose((3, 2), outputs=(10, 7), groups=2), (1, 3, 3, 4), (6, 3, 3, 2), scale=0.00015
    ),
    # small sums that do not saturate where the factor is a half and more: a shift of 0
    "no_shift": Weighted(
        Conv(), (1, 9, 9, 1), (12, 1, 1, 1), scale=0.00015, lowest=-2, largest=2, bias=False
    ),
    "depthwise_no_shift": Weighted(
        DepthwiseConv(), (1, 9, 9, 12), (1, 1, 1, 12), scale=0.00015, lowest=-2, largest=2, bias=False
    ),
    "dense_no_shift": Weighted(Dense(), (9, 2), (12, 2), scale=0.00015, lowest=-1, largest=1, bias=False),
}
"""Geometries that a fault once hid behind."""


@dataclass(frozen=True)
class Ranges:
    """What samples are drawn from; what is repeated is drawn more often."""

    kinds: Sequence[str] = ("conv",) * 3 + ("depthwise",) * 3 + ("dense",)
    inputs: Sequence[int] = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17)  # channels
    outputs: Sequence[int] = (1, 2, 3, 4, 5, 7, 8, 9, 16)
    kernel: Sequence[int] = (1, 2, 3, 4, 5)
    rows: Sequence[int] = (1, 3, 5, 6, 9)
    columns: Sequence[int] = (1, 4, 5, 7, 8)
    most_macs: int = 2**31
    extreme_biases: float = 0.0  # the share of layers with biases up to the limits of int32


WIDE = Ranges(
    kinds=("conv",) * 8 + ("depthwise",) * 8 + ("dense",) * 3 + ("transposed",) * 2,
    inputs=(*range(1, 41), 1, 3, 4, 8, 16, 16, 32, 64),
    outputs=(*range(1, 41), 1, 4, 8, 16, 64),
    kernel=(1, 1, 1, 2, 3, 3, 3, 4, 5, 6, 7, 8, 9, 11),
    rows=(1, *range(1, 15)),
    columns=(1, *range(1, 22)),
    most_macs=150_000,
    extreme_biases=0.06,
)
"""For campaigns of many layers, each still small enough for an emulated core."""


def sampled(count: int, seed: int = 18) -> dict[str, Weighted]:
    """The chosen ones and some of the cross product of what kernels treat differently; always the same."""
    rng = np.random.default_rng(seed)
    found = dict(CHOSEN)
    while len(found) < count:
        found[f"sampled{len(found)}"] = sample(rng)
    return found


def sample(rng: np.random.Generator, ranges: Ranges | None = None) -> Weighted:
    """One of the cross product of what kernels treat differently."""
    while True:
        found = _sample(rng, ranges or Ranges())
        if found is not None:
            return found


def _sample(rng: np.random.Generator, ranges: Ranges) -> Weighted | None:
    def pick(*choices: int) -> int:
        return int(choices[int(rng.integers(len(choices)))])

    kind = ranges.kinds[int(rng.integers(len(ranges.kinds)))]
    inputs, outputs = pick(*ranges.inputs), pick(*ranges.outputs)
    zero = pick(0, 0, 0, 0, 5, -128)
    rest: dict[str, Any] = {
        "zero": zero,
        "scale": SCALES[int(rng.integers(len(SCALES)))],
        "lowest": pick(-127, -127, -128),
        "bias": rng.random() < 0.7,
        "x_zero": pick(3, 0, -128, 127),
        "y_zero": pick(-7, -128, 127),
        "channels": rng.random() < 0.7,
    }
    if ranges.extreme_biases:
        rest["extreme"] = rng.random() < ranges.extreme_biases
    clamp = (0.0, np.inf) if rng.random() < 0.3 else (-np.inf, np.inf)
    if kind == "dense":
        return Weighted(
            Dense(clamp=clamp), (pick(1, 1, 2, 3), inputs * pick(1, 3)), (outputs, 0), **rest
        ).fitted()
    kernel = (pick(*ranges.kernel), pick(*ranges.kernel))
    dilations = (pick(1, 1, 1, 2, 3), pick(1, 1, 1, 2))
    wide = pick(0, 0, 0, 1)  # windows that lie in the padding altogether
    pads = tuple(int(rng.integers(0, k + wide)) for k in (*kernel, *kernel))
    extents = (pick(*ranges.rows), pick(*ranges.columns))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if math.prod((*extents, *kernel, inputs, outputs if kind != "depthwise" else 1)) > ranges.most_macs:
        return None
    groups = pick(1, 1, 1, 2) if kind == "transposed" else 1
    if kind == "transposed":
        op = _transposed(rng, extents, reach, pads, dilations=dilations, clamp=clamp, groups=groups)
        if op is None or inputs % groups:
            return None
        x = (pick(1, 1, 1, 2), *extents, inputs)
        return Weighted(op, x, (outputs * groups, *kernel, inputs // groups), **rest)
    if any(e + pads[i] + pads[i + 2] < r for i, (e, r) in enumerate(zip(extents, reach, strict=True))):
        return None
    window: dict[str, Any] = {
        "strides": (pick(1, 1, 2, 3), pick(1, 1, 2)),
        "dilations": dilations,
        "pads": pads,
    }
    x = (pick(1, 1, 1, 2), *extents, inputs)
    if kind == "depthwise":
        multiple = pick(1, 1, 1, 2)
        return Weighted(DepthwiseConv(clamp=clamp, **window), x, (1, *kernel, inputs * multiple), **rest)
    groups = pick(1, 1, 1, 2)
    if inputs % groups:
        return None
    return Weighted(
        Conv(clamp=clamp, groups=groups, **window), x, (outputs * groups, *kernel, inputs // groups), **rest
    )


def _transposed(
    rng: np.random.Generator, extents: Sequence[int], reach: Sequence[int], pads: Sequence[int], **rest: Any
) -> ConvTranspose | None:
    strides = (int(rng.choice((1, 1, 2, 3))), int(rng.choice((1, 1, 2))))
    full = [(e - 1) * s + r for e, s, r in zip(extents, strides, reach, strict=True)]
    left = [f - pads[i] - pads[i + 2] for i, f in enumerate(full)]
    if min(left) < 1:
        return None
    rows, columns = (size + int(rng.integers(0, s)) for size, s in zip(left, strides, strict=True))
    return ConvTranspose(strides=strides, pads=tuple(pads[:2]), outputs=(rows, columns), **rest)


def extreme_biases(rng: np.random.Generator, bias: Array) -> Array:
    """Some biases at the limits of their type, and some at other powers of two, a little more or less."""
    info = np.iinfo(bias.dtype)
    powers = (1 << rng.integers(15, info.bits - 1, bias.shape)) * rng.choice([-1, 1], bias.shape)
    near = np.clip(powers + rng.integers(-2, 3, bias.shape), info.min, info.max)
    choice = rng.integers(0, 4, bias.shape)
    found = np.choose(choice, [bias, np.full_like(bias, info.min), np.full_like(bias, info.max), near])
    return found.astype(bias.dtype)


class Layers:
    """A graph whose nodes have nothing to do with one another."""

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        self.rng = rng or np.random.default_rng(7)
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []

    def tensor(self, name: str, shape: Shape, scale: float, zero: int) -> Tensor:
        tensor = Tensor(name, shape, DType.INT8, Quant.per_tensor(scale, zero))
        self.tensors[name] = tensor
        return tensor

    def constant(self, name: str, values: Array, quant: Quant | None = None) -> Tensor:
        self.tensors[name] = Tensor.constant(name, values, quant)
        return self.tensors[name]

    def weighted(self, name: str, case: Weighted, once: bool) -> None:
        op = replace(case.op, round_once=once)
        axis = op.channel_axis
        channels = case.weights[axis]
        scales = tuple(self.rng.uniform(0.001, 0.003, channels))
        values = self.rng.integers(case.lowest, case.largest + 1, case.weights).astype(np.int8)
        values.reshape(-1)[0] = case.lowest
        x = self.tensor(f"{name}_x", case.x, 0.05, case.x_zero)
        quant = Quant(scales, (case.zero,) * channels, axis)
        if not case.channels:
            quant = Quant.per_tensor(scales[0], case.zero)
        w = self.constant(f"{name}_w", values, quant)
        inputs = [x.name, w.name]
        if case.bias:
            bias = self.rng.integers(-3000, 3000, channels).astype(np.int32)
            if case.extreme:
                bias = extreme_biases(self.rng, bias)
            inputs.append(self.constant(f"{name}_b", bias).name)
        y = self.tensor(f"{name}_y", op.infer([x, w])[0].shape, case.scale, case.y_zero)
        self.nodes.append(Node(name, op, tuple(inputs), (y.name,)))

    def graph(self) -> Graph:
        names = [name for node in self.nodes for name in node.inputs]
        inputs = [name for name in names if not self.tensors[name].is_constant]
        outputs = [node.outputs[0] for node in self.nodes]
        return Graph("layers", self.tensors, tuple(self.nodes), tuple(inputs), tuple(outputs))
