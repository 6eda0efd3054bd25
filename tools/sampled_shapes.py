# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers of unusual shapes, drawn from a seed, and plain layers: for ``tools.worst_shapes``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tests.support.layer_kinds import as_kind
from tests.support.sketch import Sketch
from tinyml.ir import Graph, Layer, Quant, Shape, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.transpose import ConvTranspose
from tools.kernel_layers import SAFE_SUM

SEED = 40
EACH = 12
"""Layers of each family."""

TYPES = {"int8": "int8", "int16": "int16 activations", "float32": "float32"}

PLAIN_EXTENT = 8
PLAIN_CHANNELS = (4, 8, 12, 16, 20, 24, 32, 40, 48, 64)


@dataclass(frozen=True)
class Shaped:
    """A layer of one family."""

    family: str
    op: Conv | ConvTranspose
    x: Shape
    weights: Shape

    @property
    def words(self) -> str:
        """For the page."""
        op, (outs, *kernel, _) = self.op, self.weights
        parts = ["x".join(map(str, kernel)), f"{self.x[3]} to {outs} channels"]
        if op.groups > 1:
            parts.append(f"{op.groups} groups")
        for name, values in (("stride", op.strides), ("dilation", op.dilations)):
            if set(values) != {1}:
                parts.append(f"{name} {'x'.join(map(str, values))}")
        batch = f"{self.x[0]} images of " if self.x[0] > 1 else ""
        return ", ".join([*parts, f"{batch}{self.x[1]}x{self.x[2]}"])


def same(kernel: tuple[int, int], dilation: int = 1) -> tuple[int, int, int, int]:
    """Padding that keeps the extents of an input with stride 1."""
    spans = [dilation * (k - 1) for k in kernel]
    return (spans[0] // 2, spans[1] // 2, spans[0] - spans[0] // 2, spans[1] - spans[1] // 2)


def plain(channels: int) -> Shaped:
    """A 3x3 convolution from as many channels to as many."""
    shape = (1, PLAIN_EXTENT, PLAIN_EXTENT, channels)
    return Shaped("plain", Conv(pads=same((3, 3))), shape, (channels, 3, 3, channels))


def plain_channels(macs: int) -> int:
    """Of the plain layer with about as many multiplications."""
    wanted = math.sqrt(macs / (9 * PLAIN_EXTENT**2))
    return min(PLAIN_CHANNELS, key=lambda one: abs(math.log(one / wanted)))


def _grouped(rng: np.random.Generator) -> Shaped:
    groups = int(rng.choice([2, 4, 8, 16, 32]))
    ins, outs = (groups * int(rng.integers(1 + (k == 0), 9 if groups < 16 else 5)) for k in range(2))
    kernel = (3, 3) if rng.random() < 0.6 else (1, 1)
    extent = int(rng.integers(5, 13))
    op = Conv((1, 1), pads=same(kernel), groups=groups)
    return Shaped("grouped", op, (1, extent, extent, ins), (outs, *kernel, ins // groups))


def _pointwise(rng: np.random.Generator) -> Shaped:
    height, width = (int(rng.integers(1, 4)) for _ in range(2))
    ins, outs = (int(rng.integers(8, 161)) for _ in range(2))
    return Shaped("1x1 on few pixels", Conv(), (1, height, width, ins), (outs, 1, 1, ins))


def _line(rng: np.random.Generator, upright: bool) -> Shaped:
    taps, length = int(rng.integers(2, 17)), int(rng.integers(20, 81))
    ins, outs = (int(rng.integers(1, 33)) for _ in range(2))
    stride = int(rng.choice([1, 1, 2]))
    kernel, extents, strides = ((taps, 1), (length, 1), (stride, 1))
    if not upright:
        kernel, extents, strides = ((1, taps), (1, length), (1, stride))
    op = Conv(strides, pads=same(kernel))
    return Shaped("Nx1" if upright else "1xN", op, (1, *extents, ins), (outs, *kernel, ins))


def _dilated(rng: np.random.Generator) -> Shaped:
    dilation, extent = int(rng.choice([2, 3, 4])), int(rng.integers(8, 15))
    ins, outs = (int(rng.integers(3, 33)) for _ in range(2))
    op = Conv(dilations=(dilation, dilation), pads=same((3, 3), dilation))
    return Shaped("dilated", op, (1, extent, extent, ins), (outs, 3, 3, ins))


def _transposed(rng: np.random.Generator) -> Shaped:
    stride, taps = int(rng.choice([2, 2, 3])), int(rng.choice([2, 3, 4]))
    taps = max(taps, stride)
    extent, pad = int(rng.integers(4, 10)), int(rng.integers(0, 2))
    ins, outs = (int(rng.integers(3, 33)) for _ in range(2))
    size = (extent - 1) * stride + taps - 2 * pad
    op = ConvTranspose((stride, stride), pads=(pad, pad), outputs=(size, size))
    return Shaped("transposed", op, (1, extent, extent, ins), (outs, taps, taps, ins))


def _few_channels(rng: np.random.Generator) -> Shaped:
    ins, outs = (int(rng.integers(1, 8)) for _ in range(2))
    extent, stride = int(rng.integers(8, 25)), int(rng.choice([1, 2]))
    op = Conv((stride, stride), pads=same((3, 3)))
    return Shaped("1 to 7 channels", op, (1, extent, extent, ins), (outs, 3, 3, ins))


def _batches(rng: np.random.Generator) -> Shaped:
    ins, outs = (int(rng.integers(4, 33)) for _ in range(2))
    kernel = (3, 3) if rng.random() < 0.5 else (1, 1)
    extent = int(rng.integers(2, 7))
    op = Conv(pads=same(kernel))
    return Shaped("batches", op, (int(rng.integers(2, 5)), extent, extent, ins), (outs, *kernel, ins))


FAMILIES: tuple[Callable[[np.random.Generator], Shaped], ...] = (
    _grouped,
    _pointwise,
    lambda rng: _line(rng, False),
    lambda rng: _line(rng, True),
    _dilated,
    _transposed,
    _few_channels,
    _batches,
)

NAMED = {
    "example of groups": Shaped("grouped", Conv(pads=same((3, 3)), groups=8), (1, 8, 8, 16), (24, 3, 3, 2))
}


def sampled() -> Mapping[str, Shaped]:
    """Always the same ones, by name; plain ones among them."""
    rng = np.random.default_rng(SEED)
    drawn = [draw(rng) for draw in FAMILIES for _ in range(EACH)]
    named = {f"{shaped.family} {index % EACH}": shaped for index, shaped in enumerate(drawn)}
    return {**{f"plain {channels}": plain(channels) for channels in PLAIN_CHANNELS}, **NAMED, **named}


def as_graph(shapes: Mapping[str, Shaped], kind: str) -> Graph:
    """Independent layers in this order, of one of ``TYPES``."""
    sketch, outputs = Sketch(seed=5), []
    for shaped in shapes.values():
        x = sketch.input(shaped.x, quant=Quant.per_tensor(0.05, 3))
        outs = shaped.weights[0]
        size = int(np.prod(shaped.weights)) // outs
        largest = int(np.clip(SAFE_SUM // size, 8, 127))
        values = sketch.rng.integers(-largest, largest + 1, shaped.weights).astype(np.int8)
        scales = tuple(float(s) for s in sketch.rng.uniform(0.005, 0.02, outs))
        w = sketch.build.constant(values, "w", Quant(scales, (0,) * outs, 0))
        outputs.append(sketch.add(shaped.op, x, w, sketch.bias(outs), quant=Quant.per_tensor(0.1, -7)))
    graph = as_kind(sketch.graph(*outputs), kind)
    if kind != "float32":
        return graph
    tensors = {  # no bytes times a scale, which have kernels of their own
        name: Tensor.constant(name, sketch.rng.normal(0, 1, one.shape).astype(np.float32))
        if one.is_constant
        else one
        for name, one in graph.tensors.items()
    }
    return replace(graph, tensors=tensors)


def in_parts(shapes: Mapping[str, Shaped], size: int) -> Iterator[Mapping[str, Shaped]]:
    """As many as one image holds."""
    names = list(shapes)
    for start in range(0, len(names), size):
        yield {name: shapes[name] for name in names[start : start + size]}


def multiplications(layer: Layer) -> int:
    return int(layer.op.macs(layer))
