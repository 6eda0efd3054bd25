# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""DynamicUpdate: a copy of a tensor with a block replaced, at a position known at run time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Tensor, given
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.framework.play_loops import array, merged
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.indexing.replacement import Replacement, copy_first
from tinyml.ops.shared.operands import integers, present, same_type

INT64 = 7
"""Its number among ONNX's element types."""


def block_fits(layer: Layer[DynamicUpdate]) -> bool:
    """The block has as many axes as the first input, none longer than its, and there is one start per
    axis."""
    x, block = layer.input(0).shape, layer.input(1).shape
    return (
        len(x) == len(block)
        and all(n <= room for n, room in zip(block, x, strict=True))
        and layer.input(2).elements == len(x)
    )


@dataclass(frozen=True)
class DynamicUpdate(Replacement):
    """Inputs: x, the block, and where it begins along each axis; moved so that it lies inside."""

    operands = (present(3), integers(2), same_type(0, 1), block_fits)

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (-2, max(layer.input(0).shape, default=0) + 1) if index == 2 else None  # both ends are limits

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        y, block, starts = np.array(given(inputs, 0)), given(inputs, 1), given(inputs, 2)
        first = np.clip(starts.reshape(-1), 0, np.asarray(y.shape) - np.asarray(block.shape))
        y[tuple(slice(a, a + n) for a, n in zip(first.tolist(), block.shape, strict=True))] = block
        return (y,)


class DynamicUpdateLoops(InPlace[DynamicUpdate]):
    """A copy of x, where it is not there already, then loops over the block."""

    name = "dynamic-update loops"

    def emit(self, layer: Layer[DynamicUpdate], sheet: Sheet) -> None:
        x, block = layer.input(0), layer.input(1)
        strides = c.contiguous(x.shape)
        sheet.include("<string.h>")
        copy_first(sheet)
        sheet.line("int32_t first = 0;")
        sheet.line()
        for axis, (size, extent) in enumerate(zip(x.shape, block.shape, strict=True)):
            if size > extent:
                start = sheet.limited(f"{sheet.x(2)}[{axis}]", 0, size - extent)
                sheet.line(f"first += {start} * {strides[axis]};")
        walks = {"y": c.Walk(strides), "u": c.Walk(c.contiguous(block.shape))}
        with sheet.loops(c.nest(block.shape, walks)) as at:
            sheet.line(f"{sheet.y()}[first + {at['y']}] = {sheet.x(1)}[{at['u']}];")

    def play(self, layer: Layer[DynamicUpdate], sheet: Sheet) -> None:
        x, block, starts = (layer.input(i) for i in range(3))
        copy_first(sheet)
        if not block.elements:
            return
        if starts.dtype not in (DType.INT32, DType.INT64):
            raise NotPlayableError(f"the player has no starts of {starts.dtype.value}")
        strides, unit = c.contiguous(x.shape), x.dtype.bytes
        extents, (steps, packed) = merged(block.shape, strides, c.contiguous(block.shape))
        whole = bool(extents) and steps[-1] == packed[-1]  # rows of the block lie together in the output, too
        bytes_ = unit * (extents[-1] if whole else 1)
        free = [axis for axis, (size, n) in enumerate(zip(x.shape, block.shape, strict=True)) if size > n]
        members = {
            **array("extents", extents[: len(extents) - whole], 1),
            **array("steps", [step * unit for step in steps[: len(steps) - whole]], 0),
            ".bytes": bytes_,
            **array("last", [x.shape[axis] - block.shape[axis] for axis in free], 0),
            **array("last_steps", [strides[axis] * unit for axis in free], 0),
            **array("starts", free, 0),
            ".type": starts.dtype.code,
        }
        sheet.note("tinyml_play_update", members, sheet.x(1), sheet.x(2), sheet.y())


register_kernels(DynamicUpdate, DynamicUpdateLoops())


@tflite_op("DYNAMIC_UPDATE_SLICE")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(DynamicUpdate(), [node.input(i) for i in range(3)], node.outputs[0])]


@onnx_writer(DynamicUpdate)
def write_onnx(op: DynamicUpdate, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    """Along one axis, as rows are written into a cache, ScatterElements; otherwise ScatterND."""
    whole, block = layer.input(0).shape, layer.input(1).shape
    free = [axis for axis, (size, extent) in enumerate(zip(whole, block, strict=True)) if size > extent]
    if not free or not math.prod(block):
        out.node("Identity", [x[0 if free else 1]], y)
        return
    starts = out.node("Reshape", [out.node("Cast", [x[2]], to=INT64), out.integers([len(whole)], "row")])
    if len(free) == 1:
        (axis,) = free
        starts = out.node("Gather", [starts, out.integers([axis], "axis")])
        starts = _inside(out, starts, [whole[axis] - block[axis]])
        rows = np.arange(block[axis], dtype=np.int64).reshape(
            [-1 if a == axis else 1 for a in range(len(block))]
        )
        places = out.node("Add", [starts, out.constant(rows, "rows")])
        places = out.node("Expand", [places, out.integers(block, "shape")])
        out.node("ScatterElements", [x[0], places, x[1]], y, axis=axis)
        return
    starts = _inside(out, starts, [size - extent for size, extent in zip(whole, block, strict=True)])
    grid = np.moveaxis(np.indices(block), 0, -1).astype(np.int64)
    out.node("ScatterND", [x[0], out.node("Add", [starts, out.constant(grid, "grid")]), x[1]], y)


def _inside(out: OnnxWriter, starts: str, last: Sequence[int]) -> str:
    starts = out.node("Max", [starts, out.integers([0], "first")])
    return out.node("Min", [starts, out.integers(last, "last")])
