# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What all pools share: windows over any number of spatial axes, channels last, and their C loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Constraint, Layer, Op, Shape, Tensor
from tinyml.ir.hook_types import RowWindow, moved_along, padded_along
from tinyml.ops.framework.kernel import Kernel, Overlay, Sheet
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode
from tinyml.ops.shared.axis_order import channels_first, channels_last
from tinyml.ops.shared.operands import not_empty, numbers, numbers_from, present
from tinyml.ops.shared.overlay import sliding
from tinyml.ops.shared.window import onnx_pads, tflite_pads


def window_fits(layer: Layer[Window]) -> bool:
    """Kernel, strides, dilations and pads have entries for each axis but the first and the last."""
    op, axes = layer.op, len(layer.input(0).shape) - 2
    lengths = (len(op.kernel), len(op.strides), len(op.dilations))
    return axes >= 1 and lengths == (axes, axes, axes) and len(op.pads) == 2 * axes


@dataclass(frozen=True)
class Window(Op):
    """A window that slides over the spatial axes of a channels-last tensor."""

    operands: ClassVar[tuple[Constraint, ...]] = (
        present(1),
        numbers(0),
        window_fits,
        not_empty(0),
        numbers_from(1, "kernel", "strides", "dilations"),
        numbers_from(0, "pads"),
    )
    kernel: tuple[int, ...] = (1, 1)
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)  # before each spatial axis, then after each
    ceil: bool = False  # a last window may reach beyond the padding

    def extents(self, shape: Shape) -> Shape:
        """Spatial extents of the output for an input of ``shape``."""
        return tuple(self._extent(axis, size) for axis, size in enumerate(shape[1:-1]))

    def _extent(self, axis: int, size: int) -> int:
        stride, rank = self.strides[axis], len(self.kernel)
        span = self.dilations[axis] * (self.kernel[axis] - 1) + 1
        room = size + self.pads[axis] + self.pads[rank + axis] - span
        if room < 0:
            raise ModelError(f"a window of {span} does not fit into {size} elements and their padding")
        if not self.ceil:
            return room // stride + 1
        count = -(-room // stride) + 1
        # a window that would start after the input sees nothing of it and is left out
        return count - 1 if (count - 1) * stride >= size + self.pads[axis] else count

    def output_shape(self, x: Tensor) -> Shape:
        return (x.shape[0], *self.extents(x.shape), x.shape[-1])

    def windows(self, x: Array, fill: float) -> Array:
        """All windows: shape (n, *outputs, *kernel, c); ``fill`` is the value outside the input."""
        rank = len(self.kernel)
        outs = self.extents(x.shape)
        widths = [(0, 0)]
        for a in range(rank):
            reach = (outs[a] - 1) * self.strides[a] + self.dilations[a] * (self.kernel[a] - 1) + 1
            behind = max(self.pads[rank + a], reach - x.shape[1 + a] - self.pads[a])
            widths.append((self.pads[a], behind))
        padded = np.pad(x, [*widths, (0, 0)], constant_values=fill)
        span = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        view = np.lib.stride_tricks.sliding_window_view(padded, span, axis=tuple(range(1, rank + 1)))
        steps = [slice(0, (o - 1) * s + 1, s) for o, s in zip(outs, self.strides, strict=True)]
        taps = [slice(None, None, d) for d in self.dilations]
        chosen = (slice(None), *steps, slice(None), *taps)
        view = view[chosen]
        return np.moveaxis(view, 1 + rank, -1)

    def row_window(self, layer: Layer, axis: int) -> RowWindow | None:
        rows, i = (layer.input(0).shape[axis], layer.output.shape[axis]), axis - 1
        return RowWindow(self.kernel[i], self.strides[i], self.dilations[i], self.pads[i], *rows)

    def with_padding(self, axis: int, before: int, after: int) -> Op:
        return replace(self, pads=padded_along(axis, self.pads, before, after))

    def with_window(self, axis: int, window: RowWindow) -> Op | None:
        if self.ceil or len(self.kernel) != 2:
            return None
        return replace(
            self,
            strides=moved_along(axis, self.strides, window.stride),
            dilations=moved_along(axis, self.dilations, window.dilation),
            pads=padded_along(axis, self.pads, window.pad_top, window.pad_bottom),
        )

    @property
    def taps(self) -> tuple[int, ...]:
        """The axes of ``windows`` that index the elements of one window."""
        rank = len(self.kernel)
        return tuple(range(1 + rank, 1 + 2 * rank))

    def sees_input(self, shape: Shape) -> bool:
        """Whether every window has an element of the input."""
        seen = self.windows(np.ones((1, *shape[1:-1], 1), bool), 0)
        return bool(seen.any(axis=self.taps).all())

    def inside(self, axis: int, size: int) -> bool:
        """Whether all windows are inside the input along this axis."""
        last = (self._extent(axis, size) - 1) * self.strides[axis] - self.pads[axis]
        span = self.dilations[axis] * (self.kernel[axis] - 1) + 1
        return self.pads[axis] == 0 and last + span <= size


def two_spatial_axes(layer: Layer[Any]) -> bool:
    """The input is NHWC; extents including padding, strides and dilations are all below 32,768."""
    op, x = layer.op, layer.input(0).shape
    if len(x) != 4:
        return False
    padded = (x[i + 1] + op.pads[i] + op.pads[i + 2] for i in range(2))
    return max(*x, *layer.output.shape, *op.strides, *op.dilations, *padded) < 1 << 15


W = TypeVar("W", bound=Window, contravariant=True)


class PoolKernel(Kernel[W]):
    """A kernel that computes outputs from the first to the last, each when all of its window is read."""

    def overlays(self, layer: Layer[W]) -> tuple[Overlay, ...]:
        return sliding(layer, layer.op, layer.op.kernel, copied=True)


class PoolLoops:
    """The C loops of a pool: ``outputs`` around everything, ``taps`` around the work on one element."""

    def __init__(self, layer: Layer, sheet: Sheet, op: Window) -> None:
        self.op, self.sheet = op, sheet
        self.in_shape, self.out_shape = layer.input(0).shape, layer.output.shape

    @contextmanager
    def outputs(self, channels: int = 1) -> Iterator[c.Expr]:
        """Loops over the output in the order of its memory; yields the index of its element.

        ``channels``: how many are computed at once; the index is that of the first.
        """
        names = ["n", *(f"o{a}" for a in range(len(self.op.kernel))), "c"]
        terms = flat_index(names, self.out_shape)
        with ExitStack() as opened:
            opened.enter_context(self.sheet.nested(zip(names[:-1], self.out_shape[:-1], strict=True)))
            if self.out_shape[-1] > 1:
                opened.enter_context(self.sheet.loop("c", self.out_shape[-1], step=channels))
            yield terms

    @contextmanager
    def taps(self, padded: bool = False, channel: c.Operand = "c") -> Iterator[c.Expr]:
        """Loops over the taps of a window inside the input (``padded``: or inside the padding).

        Yields the index of the input element, at ``i0``, ``i1``, … in ``channel``.
        """
        op, sheet, rank = self.op, self.sheet, len(self.op.kernel)
        with ExitStack() as opened:
            for a in range(rank):
                size = self.in_shape[1 + a]
                looped = op.kernel[a] > 1
                if looped:
                    opened.enter_context(sheet.loop(f"k{a}", op.kernel[a]))
                if size > 1 or not op.inside(a, size):
                    sheet.line(f"const int32_t i{a} = {self._position(a)};")
                if not op.inside(a, size):
                    low, high = (-op.pads[a], size + op.pads[rank + a]) if padded else (0, size)
                    sheet.line()
                    if looped:
                        with sheet.block(f"if (i{a} < {low} || i{a} >= {high}) {{"):
                            sheet.line("continue;")
                    else:  # `continue` would leave a loop around the window, and skip its output
                        opened.enter_context(sheet.block(f"if (i{a} >= {low} && i{a} < {high}) {{"))
            yield flat_index(["n", *(f"i{a}" for a in range(rank)), channel], self.in_shape)

    def in_input(self) -> str:
        """A C condition: the tap at hand lies inside the input, not in its padding."""
        return " && ".join(
            f"i{a} >= 0 && i{a} < {size}"
            for a, size in enumerate(self.in_shape[1:-1])
            if not self.op.inside(a, size)
        )

    def _position(self, axis: int) -> c.Expr:
        """Where tap ``k`` of output ``o`` lies on one axis of the input."""
        stride, dilation, pad = self.op.strides[axis], self.op.dilations[axis], self.op.pads[axis]
        place = c.Expr(0)
        if self.out_shape[1 + axis] > 1:
            place += c.Expr(f"o{axis}") * stride
        if self.op.kernel[axis] > 1:
            place += c.Expr(f"k{axis}") * dilation
        return place - pad


def flat_index(names: Sequence[c.Operand], shape: Sequence[int]) -> c.Expr:
    """Row-major index of an element: ((n * h + i) * w + j) * c + k, without axes of extent 1."""
    place = c.Expr(0)
    for name, extent in zip(names, shape, strict=True):
        if extent != 1:
            place = place * extent + name
    return place


def read_pool(node: OnnxNode, build: Builder, make: Callable[..., Op], **extra: object) -> tuple[Tensor, ...]:
    """An ONNX pool (channels first) as the channels-last operator between two transposes."""
    x = node.input(0)
    sizes = x.shape[2:]
    rank = len(sizes)
    if rank < 1:
        raise ModelError(f"{node.op_type} node {node.name!r}: {x.name!r} has no spatial axes")
    whole = node.op_type.startswith("Global")
    kernel = tuple(sizes) if whole else node.ints("kernel_shape")
    strides = node.ints("strides", (1,) * rank)
    dilations = node.ints("dilations", (1,) * rank)
    auto_pad = node.attr("auto_pad", "NOTSET")
    begins, ends = onnx_pads(auto_pad, node.ints("pads"), sizes, kernel, strides, dilations)
    if rank == 1:
        kernel, strides, dilations = (1, *kernel), (1, *strides), (1, *dilations)
        begins, ends = [0, *begins], [0, *ends]
    ceil = bool(node.attr("ceil_mode", 0)) and auto_pad == "NOTSET"
    op = make(kernel, strides, dilations, (*begins, *ends), ceil, **extra)
    return tuple(channels_first(build, y, rank) for y in build.add(op, [channels_last(build, x)]))


def read_tflite_pool(node: TfliteNode, build: Builder, make: Callable[..., Op]) -> list[Tensor]:
    """AVERAGE_POOL_2D and MAX_POOL_2D, which have the same options."""
    from tflite import Padding

    x, options = node.input(0), node.options
    kernel = (options.FilterHeight(), options.FilterWidth())
    strides = (options.StrideH(), options.StrideW())
    pads = tflite_pads(options.Padding() == Padding.SAME, (x.shape[1], x.shape[2]), kernel, strides)
    return [build.add1(make(kernel, strides, (1, 1), pads, clamp=node.clamp), [x], node.outputs[0])]
