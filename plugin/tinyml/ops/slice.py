# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Slice and Split: a regular part of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Shape, Tensor, TensorType, View, given
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_loops import play_copies
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import MALFORMED, Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axis import from_front
from tinyml.ops.shared.operands import numbers_from, one_per_axis, present


@dataclass(frozen=True)
class Slice(Op):
    """Per axis: ``extents`` elements from ``starts`` on, ``steps`` apart (which may be negative)."""

    operands = (present(1), one_per_axis("starts", "extents", "steps"), numbers_from(0, "extents"))
    movement: ClassVar[bool] = True
    starts: tuple[int, ...] = ()
    extents: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        whole = self.extents[axis] == layer.input(0).shape[axis] and self.steps[axis] == 1
        return (axis,) if whole else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        for size, start, extent, step in zip(x.shape, self.starts, self.extents, self.steps, strict=True):
            last = start + (extent - 1) * step
            if extent and not (0 <= start < size and 0 <= last < size):
                raise ModelError(f"cannot take {start} to {last} of the {size} elements of {x.name!r}")
        quant = x.quant
        if quant is not None and quant.axis is not None and self.extents[quant.axis] != x.shape[quant.axis]:
            quant = None
        return (TensorType(self.extents, x.dtype, quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        for axis, (start, extent, step) in enumerate(zip(self.starts, self.extents, self.steps, strict=True)):
            x = np.take(x, start + step * np.arange(extent), axis=axis)
        return (x,)

    def views(self, layer: Layer) -> tuple[View, ...]:
        """The slice may be one contiguous part of the input."""
        x, y = layer.input(0), layer.output
        whole = True  # all axes after this one are taken completely
        for size, extent, step in reversed(list(zip(x.shape, self.extents, self.steps, strict=True))):
            if extent != 1 and (step != 1 or not whole):
                return ()
            whole = whole and extent == size
        offset = sum(s * stride for s, stride in zip(self.starts, c.contiguous(x.shape), strict=True))
        return (View(y.name, x.name, offset * x.dtype.bytes),) if y.elements else ()

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return Slice(*(tuple(values[p] for p in perm) for values in (self.starts, self.extents, self.steps)))


class SliceLoops(Kernel[Slice]):
    """Loops over the output; memcpy where a whole row of it is one piece of the input."""

    name = "slice loops"

    def emit(self, layer: Layer[Slice], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        if y.elements == 0:
            return
        strides = c.contiguous(x.shape)
        offset = sum(start * stride for start, stride in zip(op.starts, strides, strict=True))
        walk = c.Walk(tuple(s * step for s, step in zip(strides, op.steps, strict=True)), offset)
        copy_strided(sheet, y.shape, walk, c.Walk(c.contiguous(y.shape)))


SMALLEST_RUN_BYTES = 16  # below, calling memcpy costs more than the loop


def copy_strided(sheet: Sheet, shape: Shape, x: c.Walk, y: c.Walk) -> None:
    """Copy elements of input 0 to output 0 along two walks over ``shape``; pieces that both walks go through
    one element after the other are copied at once. Compilers see that for themselves only where they know
    that the two tensors do not overlap."""
    if sheet.plays:
        play_copies(sheet, shape, x, y, sheet.x(), sheet.y())
        return
    axes, run = len(shape), 1
    while axes and (shape[axes - 1] == 1 or x.strides[axes - 1] == y.strides[axes - 1] == run):
        axes -= 1
        run *= shape[axes]
    run_bytes = run * sheet.layer.output.dtype.bytes
    if run_bytes < SMALLEST_RUN_BYTES:
        axes = len(shape)
    else:
        sheet.include("<string.h>")
    walks = {name: c.Walk(walk.strides[:axes], walk.offset) for name, walk in (("x", x), ("y", y))}
    with sheet.loops(c.nest(shape[:axes], walks)) as index:
        if run_bytes < SMALLEST_RUN_BYTES:
            sheet.line(f"{sheet.y()}[{index['y']}] = {sheet.x()}[{index['x']}];")
        else:
            sheet.line(f"memcpy(&{sheet.y()}[{index['y']}], &{sheet.x()}[{index['x']}], {run_bytes});")


register_kernels(Slice, SliceLoops())


def bounds(size: int, start: int, end: int, step: int) -> tuple[int, int]:
    """Start and extent of a slice as ONNX and numpy understand it (clamped, negative from the end)."""
    if step == 0:
        raise ModelError("a slice with a step of 0 has no meaning")
    first, last, stride = slice(start, end, step).indices(size)
    if step < 0 and end < -size:
        last = -1
    return first, max(0, -(-(last - first) // stride))


def take(build: Builder, x: Tensor, axes: dict[int, tuple[int, int, int]]) -> Tensor:
    """``x`` sliced: axis -> (start, extent, step)."""
    rows = [axes.get(axis, (0, size, 1)) for axis, size in enumerate(x.shape)]
    if all(row == (0, size, 1) for row, size in zip(rows, x.shape, strict=True)):
        return x
    starts, extents, steps = (tuple(row[i] for row in rows) for i in range(3))
    return build.add1(Slice(starts, extents, steps), [x])


quantizes("Slice", "Split", moves=True, keeps_scale=True)


@onnx_op("Slice")
def read_slice(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    rank = len(x.shape)
    if node.opset < 10:
        starts, ends = node.ints("starts"), node.ints("ends")
        axes = node.ints("axes", tuple(range(len(starts))))
        steps: tuple[int, ...] = (1,) * len(starts)
    else:
        starts, ends = _ints(node, 1), _ints(node, 2)
        axes = _ints(node, 3) if node.optional(3) is not None else tuple(range(len(starts)))
        steps = _ints(node, 4) if node.optional(4) is not None else (1,) * len(starts)
    chosen = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        place = from_front(axis, rank)
        first, extent = bounds(x.shape[place], start, end, step)
        chosen[place] = (first, extent, step)
        known = build.counted.get(x.name)
        if known is not None and (known.axis, start, step) == (place, 0, 1) and 0 <= end < x.shape[place]:
            x = first_of(build, x, place, end)
            del chosen[place]
    return [take(build, x, chosen)]


def first_of(build: Builder, x: Tensor, axis: int, most: int) -> Tensor:
    """The first elements of a tensor of which the compiler does not know how many it has."""
    count = build.count_along(x, axis)
    if count is None:
        raise ValueError(f"{x.name!r} has no count")
    fewer = build.add1(Binary("min"), [count, build.constant(np.array([most], np.int64))])
    whole = {a: (0, most if a == axis else extent, 1) for a, extent in enumerate(x.shape)}
    starts, extents, steps = (tuple(row[i] for row in whole.values()) for i in range(3))
    y = build.add(Slice(starts, extents, steps), [x], counts=True)[0]
    build.count(y, axis, fewer)
    return y


def _ints(node: OnnxNode, index: int) -> tuple[int, ...]:
    return tuple(int(v) for v in node.const(index).reshape(-1))


@onnx_op("Split")
def read_split(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axis = from_front(int(node.attr("axis", 0)), len(x.shape))
    size = x.shape[axis]
    count = len(node.output_names)
    if "split" in node.attributes:
        sizes = node.ints("split")
    elif node.optional(1) is not None:
        sizes = _ints(node, 1)
    else:
        part = -(-size // int(node.attr("num_outputs", count)))
        sizes = tuple(max(0, min(part, size - i * part)) for i in range(count))
    return split(build, x, axis, sizes)


def split(build: Builder, x: Tensor, axis: int, sizes: Sequence[int]) -> list[Tensor]:
    """``x`` cut along ``axis`` into pieces of ``sizes``."""
    if sum(sizes) != x.shape[axis] or min(sizes, default=0) < 0:
        raise ModelError(f"cannot split {x.shape[axis]} elements of {x.name!r} into {tuple(sizes)}")
    ends = np.cumsum(sizes)
    return [take(build, x, {axis: (int(end - n), int(n), 1)}) for end, n in zip(ends, sizes, strict=True)]


@tflite_op("SPLIT")
def read_tflite_split(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, count = node.input(1), len(node.outputs)
    axis = from_front(node.const(0).reshape(()).item(), len(x.shape))
    return split(build, x, axis, [x.shape[axis] // count] * count)


@tflite_op("SPLIT_V")
def read_tflite_split_v(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axis = from_front(node.const(2).reshape(()).item(), len(x.shape))
    sizes = [int(n) for n in node.const(1).reshape(-1)]
    rest = x.shape[axis] - sum(n for n in sizes if n >= 0)
    return split(build, x, axis, [n if n >= 0 else rest for n in sizes])  # one may be -1


@tflite_op("UNPACK")
def read_unpack(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """Split along an axis, and remove the axis."""
    x = node.input(0)
    axis = from_front(node.options.Axis(), len(x.shape))
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    parts = split(build, x, axis, [1] * x.shape[axis])
    return [build.add1(Reshape(shape), [part]) for part in parts]


@tflite_op("SLICE")
def read_tflite_slice(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    begins, sizes = ([int(v) for v in node.const(i).reshape(-1)] for i in (1, 2))
    chosen = {}
    for axis, (begin, size) in enumerate(zip(begins, sizes, strict=True)):
        extent = x.shape[axis] - begin if size == -1 else size
        if begin < 0 or extent < 0 or begin + extent > x.shape[axis]:
            raise ModelError(f"SLICE operator {node.name!r} reaches outside {x.name!r} {x.shape}")
        chosen[axis] = (begin, extent, 1)
    return [take(build, x, chosen)]


@tflite_op("STRIDED_SLICE")
def read_strided_slice(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """x[begin:end:step, 3, …, newaxis]: bits of the masks say which entry is what."""
    x, options = node.input(0), node.options
    begins, ends, steps = ([int(v) for v in node.const(i).reshape(-1)] for i in (1, 2, 3))
    offset = getattr(options, "Offset", bool)()  # ends count from begins
    ellipsis, added = options.EllipsisMask(), options.NewAxisMask() & ~options.EllipsisMask()
    named = sum(not (added | ellipsis) & (1 << entry) for entry in range(len(begins)))
    chosen: dict[int, tuple[int, int, int]] = {}
    kept: list[int | None] = []  # axes of the result: those of x, or new ones
    axis = 0
    for entry, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        bit = 1 << entry
        if ellipsis & bit:
            rest = len(x.shape) - named
            kept += range(axis, axis + rest)
            axis += rest
            continue
        if added & bit:
            kept.append(None)
            continue
        size = x.shape[axis]
        if options.ShrinkAxisMask() & bit:
            begin = (0 if step > 0 else size - 1) if options.BeginMask() & bit else begin
            if not -size <= begin < size or step != 1:
                raise ModelError(
                    f"STRIDED_SLICE operator {node.name!r} takes element {begin} of the {size} of "
                    f"{x.name!r}, with a step of {step}",
                    MALFORMED,
                )
            chosen[axis] = (begin % size, 1, 1)
        else:
            begin = (0 if step > 0 else size - 1) if options.BeginMask() & bit else begin
            if offset:  # the end counts from where the slice begins
                begin = begin + size if begin < 0 else begin
                begin = min(max(begin, 0), size) if step > 0 else min(max(begin, -1), size - 1)
                end = begin + end
                if begin < 0:  # before the first element, going down
                    begin, end = 0, 0
            end = (size if step > 0 else -size - 1) if options.EndMask() & bit else end
            chosen[axis] = (*bounds(size, begin, end, step), step)
            kept.append(axis)
        axis += 1
    y = take(build, x, chosen)
    shape = tuple(1 if place is None else y.shape[place] for place in (*kept, *range(axis, len(x.shape))))
    return [y if shape == y.shape else build.add1(Reshape(shape), [y])]


@tflite_op("REVERSE_V2")
def read_reverse(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axes = {from_front(a, len(x.shape)) for a in node.const(1).reshape(-1).tolist()}
    return [take(build, x, {a: (x.shape[a] - 1, x.shape[a], -1) for a in axes})]


@onnx_writer(Slice)
def write_onnx(op: Slice, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    steps = op.steps or (1,) * len(op.starts)
    ends = []
    for start, extent, step in zip(op.starts, op.extents, steps, strict=True):
        end = start + extent * step  # the first position that is not taken
        ends.append(end if step > 0 or end >= 0 else -(2**62))
    parts = [out.integers(v, word) for v, word in ((op.starts, "starts"), (ends, "ends"))]
    axes = out.integers(range(len(op.starts)), "axes")
    out.node("Slice", [x[0], *parts, axes, out.integers(steps, "steps")], y)
