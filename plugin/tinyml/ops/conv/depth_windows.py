# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""DepthWindows: the slices of a volume that one output slice depends on, side by side in channels.

A convolution with three spatial axes is then one with two: a batch of images, one for each output slice, and
filters whose channels are those of all slices. Every kernel of convolutions computes it, at its own speed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_loops import merged, play_copies, play_fill
from tinyml.ops.shared.operands import not_empty, numbers_from, present
from tinyml.ops.shared.quant import stored_exactly
from tinyml.ops.shared.window import output_extent


def volumes(layer: Layer[DepthWindows]) -> bool:
    """The input has 5 axes, and its channels are a multiple of the groups."""
    shape = layer.input(0).shape
    return len(shape) == 5 and layer.op.groups >= 1 and shape[4] % layer.op.groups == 0


def windows_fit(layer: Layer[DepthWindows]) -> bool:
    """The window, with its dilation, is not deeper than the input and its padding."""
    op = layer.op
    return op.slices >= 1 and op.dilation * (op.slices - 1) < layer.input(0).shape[1] + sum(op.pads)


@dataclass(frozen=True)
class DepthWindows(Op):
    """(n, depth, height, width, channels) to (n * windows, height, width, slices * channels).

    Each group has its channels of the first slice, then those of the next one. Slices outside the input
    are 0.
    """

    operands = (
        present(1),
        volumes,
        not_empty(0),
        numbers_from(1, "stride", "dilation"),
        numbers_from(0, "pads"),
        windows_fit,
    )
    slices: int = 1
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int] = (0, 0)  # before and after
    groups: int = 1

    def windows(self, depth: int) -> int:
        return output_extent(depth, self.slices, self.stride, self.dilation, sum(self.pads))

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        n, depth, height, width, channels = x.shape
        shape = (n * self.windows(depth), height, width, self.slices * channels)
        return (TensorType(shape, x.dtype, x.quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        depth, channels = x.shape[1], x.shape[4]
        padded = np.pad(x, ((0, 0), self.pads, *[(0, 0)] * 3), constant_values=stored_zero(layer.output))
        window = np.arange(self.slices) * self.dilation
        starts = np.arange(self.windows(depth)) * self.stride
        found = padded[:, np.add.outer(starts, window)]  # n, windows, slices, height, width, channels
        found = found.reshape(*found.shape[:5], self.groups, channels // self.groups)
        return (found.transpose(0, 1, 3, 4, 5, 2, 6).reshape(layer.output.shape),)

    def selects(self, inputs: Sequence[Tensor | None]) -> bool:
        return stored_exactly(0.0, given(inputs, 0))

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        x, y = given(inputs, 0), outputs[0]
        same = x.quant == y.quant and x.dtype is y.dtype
        return (self, inputs) if same and y.quant is not None and not y.quant.per_channel else None


def stored_zero(tensor: Tensor) -> int:
    """What 0 is stored as."""
    return 0 if tensor.quant is None else int(tensor.quant.zero_point)


class DepthWindowsCopies(Kernel[DepthWindows]):
    """Copies for each slice of the window, then what lies outside the input."""

    name = "depth window copies"

    def emit(self, layer: Layer[DepthWindows], sheet: Sheet) -> None:
        for shape, x, y in _copies(layer):
            if sheet.plays:
                play_copies(sheet, shape, x, y, sheet.x(), sheet.y())
            else:
                _copy(layer, sheet, shape, x, y)
        zero = stored_zero(layer.output)
        for shape, y in _borders(layer):
            if sheet.plays:
                value = np.asarray(zero, layer.output.dtype.numpy).tobytes()
                play_fill(sheet, shape, y, sheet.y(), value)
                continue
            with sheet.loops(c.nest(shape, {"y": y})) as index:
                sheet.line(f"{sheet.y()}[{index['y']}] = {sheet.number(zero, layer.output.dtype)};")


def _copy(layer: Layer[DepthWindows], sheet: Sheet, shape: Sequence[int], x: c.Walk, y: c.Walk) -> None:
    """Loops around copies of what follows each other in both tensors."""
    extents, (x_steps, y_steps) = merged(shape, x.strides, y.strides)
    run = extents.pop() if extents and x_steps[-1] == y_steps[-1] == 1 else 1
    kept = len(extents)
    walks = {"x": c.Walk(tuple(x_steps[:kept]), x.offset), "y": c.Walk(tuple(y_steps[:kept]), y.offset)}
    with sheet.loops(c.nest(extents, walks)) as index:
        source, target = f"{sheet.x()}[{index['x']}]", f"{sheet.y()}[{index['y']}]"
        if run == 1:
            sheet.line(f"{target} = {source};")
        else:
            sheet.include("<string.h>")
            sheet.line(f"memcpy(&{target}, &{source}, {run * layer.output.dtype.bytes});")


def _copies(layer: Layer[DepthWindows]) -> Iterator[tuple[list[int], c.Walk, c.Walk]]:
    """For each slice of the window the elements to copy: extents, and walks over input and output."""
    op, x = layer.op, layer.input(0)
    pixels, size = math.prod(x.shape[2:4]), x.shape[4] // op.groups
    slice_step = pixels * x.shape[4]
    for number in range(op.slices):
        first, end = _inside(layer, number)
        if first >= end:
            continue
        start = first * op.stride + number * op.dilation - op.pads[0]
        image, group = slice_step * op.slices, op.slices * size
        yield (
            [x.shape[0], end - first, pixels, op.groups, size],
            c.Walk(
                (slice_step * x.shape[1], slice_step * op.stride, x.shape[4], size, 1), start * slice_step
            ),
            c.Walk(
                (image * op.windows(x.shape[1]), image, group * op.groups, group, 1),
                first * image + number * size,
            ),
        )


def _borders(layer: Layer[DepthWindows]) -> Iterator[tuple[list[int], c.Walk]]:
    """The parts of the output that no slice of the input fills."""
    op, x = layer.op, layer.input(0)
    pixels, size = math.prod(x.shape[2:4]), x.shape[4] // op.groups
    windows, image = op.windows(x.shape[1]), pixels * x.shape[4] * op.slices
    for number in range(op.slices):
        first, end = _inside(layer, number)
        for begin, after in ((0, min(first, windows)), (max(end, first), windows)):
            if begin < after:
                strides = (image * windows, image, op.slices * size, 1)
                offset = begin * image + number * size
                yield [x.shape[0], after - begin, pixels * op.groups, size], c.Walk(strides, offset)


def _inside(layer: Layer[DepthWindows], number: int) -> tuple[int, int]:
    """The windows, from and before, whose slice of this number lies inside the input."""
    op, depth = layer.op, layer.input(0).shape[1]
    shift = op.pads[0] - number * op.dilation
    windows = op.windows(depth)
    first = min(max(-(-shift // op.stride), 0), windows)
    return first, max(min(-(-(depth + shift) // op.stride), windows), first)


register_kernels(DepthWindows, DepthWindowsCopies())
