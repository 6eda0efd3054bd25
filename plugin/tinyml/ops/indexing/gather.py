# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Gather, GatherElements, GatherND: elements selected by indices, which may be computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Quant, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_loops import LOOPS, array, merged
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, element_type, onnx_writer
from tinyml.ops.indexing.packed_rows import GatherPacked, GatherPackedBytes, index_code
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axes import normalized, onnx_axis
from tinyml.ops.shared.indices import in_range
from tinyml.ops.shared.operands import axis_exists, integers, not_empty, present
from tinyml.ops.shared.quant import dequantize
from tinyml.ops.slice import take
from tinyml.ops.transpose import Transpose


def chooses_from_something(layer: Layer[Gather]) -> bool:
    """If there are indices, the axis that they index is not empty."""
    return layer.input(0).shape[layer.op.axis] > 0 or layer.input(1).elements == 0


def indices_inside(layer: Layer[GatherElements]) -> bool:
    """The indices have as many axes as the first input and, except along `axis`, none longer than its."""
    x, indices = layer.input(0).shape, layer.input(1).shape
    return len(x) == len(indices) and all(
        have <= room for a, (have, room) in enumerate(zip(indices, x, strict=True)) if a != layer.op.axis
    )


def positions_fit(layer: Layer[GatherND]) -> bool:
    """Both inputs have the same batch axes, and the last axis of the indices is at most as long as the first
    input has axes after them."""
    x, indices, batch = layer.input(0).shape, layer.input(1).shape, layer.op.batch_dims
    return 0 <= batch < len(indices) and x[:batch] == indices[:batch] and 1 <= indices[-1] <= len(x) - batch


@dataclass(frozen=True)
class Gather(Op):
    """Slices of x along ``axis``; the indices take the place of that axis. Inputs: x, indices."""

    operands = (present(2), axis_exists, integers(1), chooses_from_something)
    movement: ClassVar[bool] = True
    axis: int = 0

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (0, max(layer.input(0).shape[self.axis] - 1, 0)) if index == 1 else None

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        if index == 1:
            return (self.axis + axis,)
        if axis == self.axis:
            return None  # indices may count from the end
        return (axis if axis < self.axis else axis - 1 + len(layer.input(1).shape),)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, indices = given(inputs, 0), given(inputs, 1)
        shape = (*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1 :])
        return (TensorType(shape, x.dtype, per_tensor(x)),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, indices = given(inputs, 0), given(inputs, 1)
        return (np.take(x, in_range(indices, x.shape[self.axis]), axis=self.axis),)


@dataclass(frozen=True)
class GatherElements(Op):
    """y[.., i, ..] = x[.., indices[.., i, ..], ..]; indices and y have one shape."""

    operands = (present(2), axis_exists, integers(1), chooses_from_something, indices_inside)
    movement: ClassVar[bool] = True
    axis: int = 0

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (0, max(layer.input(0).shape[self.axis] - 1, 0)) if index == 1 else None

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        return None if index == 0 or axis == self.axis else (axis,)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, indices = given(inputs, 0), given(inputs, 1)
        return (TensorType(indices.shape, x.dtype, per_tensor(x)),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, indices = given(inputs, 0), given(inputs, 1)
        places: list[Array] = list(np.indices(indices.shape))
        places[self.axis] = in_range(indices, x.shape[self.axis])
        return (x[tuple(places)],)


@dataclass(frozen=True)
class GatherND(Op):
    """The last axis of the indices is a position in x, after ``batch_dims`` common axes."""

    operands = (present(2), integers(1), not_empty(0), positions_fit)
    movement: ClassVar[bool] = True
    batch_dims: int = 0

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        chosen = layer.input(0).shape[self.batch_dims : self.batch_dims + layer.input(1).shape[-1]]
        return (0, min(chosen) - 1) if index == 1 else None

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        whole = index == 1 and self.batch_dims == 0 and axis < len(layer.input(1).shape) - 1
        return (axis,) if whole else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, indices = given(inputs, 0), given(inputs, 1)
        depth = self.batch_dims + indices.shape[-1]
        return (TensorType((*indices.shape[:-1], *x.shape[depth:]), x.dtype, per_tensor(x)),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, indices = given(inputs, 0), given(inputs, 1)
        batch = self.batch_dims
        sizes = np.asarray(x.shape[batch : batch + indices.shape[-1]], np.int64)
        position = np.moveaxis(in_range(indices, sizes), -1, 0)
        lead = [np.indices(indices.shape[:-1])[a] for a in range(batch)]
        places = (*lead, *position)
        return (x[places].reshape(layer.output.shape),)


def per_tensor(x: Tensor) -> Quant | None:
    """Quantisation that stays valid when slices move."""
    return x.quant if x.quant is None or not x.quant.per_channel else None


class GatherLoops(Kernel[Gather]):
    """One copy of a row for each index."""

    name = "gather loops"

    def emit(self, layer: Layer[Gather], sheet: Sheet) -> None:
        op, x, indices, y = layer.op, layer.input(0), layer.input(1), layer.output
        if y.elements == 0:
            return
        outer = int(np.prod(x.shape[: op.axis], dtype=np.int64))
        size = x.shape[op.axis]
        row = int(np.prod(x.shape[op.axis + 1 :], dtype=np.int64))
        count = indices.elements
        with sheet.loops(c.nest((outer, count), {"o": c.Walk((1, 0)), "i": c.Walk((0, 1))})) as at:
            o, i = at["o"], at["i"]
            place = index_code(sheet, indices, f"{sheet.x(1)}[{i}]", size)
            sheet.line(f"const int32_t k = {place};")
            source, target = o * (size * row) + c.Expr("k") * row, o * (count * row) + i * row
            sheet.line()
            if row == 1:
                sheet.line(f"{sheet.y()}[{target}] = {sheet.x(0)}[{source}];")
            else:
                sheet.include("<string.h>")
                bytes_ = row * x.dtype.bytes
                sheet.line(f"memcpy(&{sheet.y()}[{target}], &{sheet.x(0)}[{source}], {bytes_});")

    def play(self, layer: Layer[Gather], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        if y.elements == 0:
            return
        outer, size = math.prod(x.shape[: op.axis]), x.shape[op.axis]
        row = math.prod(x.shape[op.axis + 1 :]) * x.dtype.bytes
        members = {
            ".batches": outer,
            ".batch_step": size * row,
            ".count": layer.input(1).elements,
            ".index_step": 0,
        }
        _play(layer, sheet, members, [size], [row], row)


class GatherElementsLoops(Kernel[GatherElements]):
    """Loops over the indices."""

    name = "gather-elements loops"

    def emit(self, layer: Layer[GatherElements], sheet: Sheet) -> None:
        op, x, indices = layer.op, layer.input(0), layer.input(1)
        strides = list(c.contiguous(x.shape))
        step = strides[op.axis]
        strides[op.axis] = 0
        walks = {"x": c.Walk(tuple(strides)), "i": c.Walk(c.contiguous(indices.shape))}
        with sheet.loops(c.nest(indices.shape, walks)) as at:
            place = index_code(sheet, indices, f"{sheet.x(1)}[{at['i']}]", x.shape[op.axis])
            sheet.line(f"const int32_t k = {place};")
            sheet.line()
            sheet.line(f"{sheet.y()}[{at['i']}] = {sheet.x(0)}[{at['x'] + c.Expr('k') * step}];")

    def play(self, layer: Layer[GatherElements], sheet: Sheet) -> None:
        op, x, indices = layer.op, layer.input(0), layer.input(1)
        if indices.dtype not in (DType.INT32, DType.INT64):
            raise NotPlayableError(f"the player has no gather with indices of {indices.dtype.value}")
        if layer.output.elements == 0:
            return
        strides = list(c.contiguous(x.shape))
        step = strides[op.axis]
        strides[op.axis] = 0
        extents, (steps, _) = merged(indices.shape, strides, c.contiguous(indices.shape))
        unit = x.dtype.bytes
        members = {
            **array("extents", extents, 1),
            **array("steps", [value * unit for value in steps], 0),
            ".size": x.shape[op.axis],
            ".step": step * unit,
            ".bytes": unit,
            ".type": indices.dtype.code,
        }
        sheet.note("tinyml_play_gather_elements", members, sheet.x(0), sheet.x(1), sheet.y())


class GatherNDLoops(Kernel[GatherND]):
    """One copy of a piece for each position."""

    name = "gather-nd loops"

    def emit(self, layer: Layer[GatherND], sheet: Sheet) -> None:
        op, x, indices, y = layer.op, layer.input(0), layer.input(1), layer.output
        if y.elements == 0:
            return
        depth = indices.shape[-1]
        row = int(np.prod(x.shape[op.batch_dims + depth :], dtype=np.int64))
        batches = int(np.prod(x.shape[: op.batch_dims], dtype=np.int64))
        count = indices.elements // depth // batches
        per_batch = x.elements // batches
        with sheet.loops(c.nest((batches, count), {"b": c.Walk((1, 0)), "t": c.Walk((count, 1))})) as at:
            position_code(sheet, x, indices, op.batch_dims, at["t"])
            first = at["b"] * per_batch + "place"
            if row == 1:
                sheet.line(f"{sheet.y()}[{at['t']}] = {sheet.x(0)}[{first}];")
            else:
                sheet.include("<string.h>")
                bytes_ = row * x.dtype.bytes
                sheet.line(f"memcpy(&{sheet.y()}[{at['t'] * row}], &{sheet.x(0)}[{first}], {bytes_});")

    def play(self, layer: Layer[GatherND], sheet: Sheet) -> None:
        op, x, indices, y = layer.op, layer.input(0), layer.input(1), layer.output
        if y.elements == 0:
            return
        first, depth = op.batch_dims, indices.shape[-1]
        batches = math.prod(x.shape[:first])
        unit, strides = x.dtype.bytes, c.contiguous(x.shape)
        members = {
            ".batches": batches,
            ".batch_step": x.bytes // batches,
            ".count": indices.elements // depth // batches,
            ".index_step": indices.elements // batches,
        }
        steps = [stride * unit for stride in strides[first : first + depth]]
        row = math.prod(x.shape[first + depth :]) * unit
        _play(layer, sheet, members, x.shape[first : first + depth], steps, row)


def _play(
    layer: Layer,
    sheet: Sheet,
    members: Mapping[str, object],
    sizes: Sequence[int],
    steps: Sequence[int],
    row: int,
) -> None:
    """Note the call that copies rows of bytes whose places are ``len(sizes)`` indices each."""
    dtype = layer.input(1).dtype
    if dtype not in (DType.INT32, DType.INT64) or len(sizes) > LOOPS:
        raise NotPlayableError(f"the player has no gather with {len(sizes)} indices of {dtype.value}")
    missing = [1] * (LOOPS - len(sizes))
    all_members = {
        **members,
        ".depth": len(sizes),
        **{f".sizes.{i}": value for i, value in enumerate([*sizes, *missing])},
        **{f".steps.{i}": value for i, value in enumerate([*steps, *missing])},
        ".bytes": row,
        ".type": dtype.code,
    }
    sheet.note("tinyml_play_gather", all_members, sheet.x(0), sheet.x(1), sheet.y())


def position_code(sheet: Sheet, x: Tensor, indices: Tensor, batch_dims: int, number: c.Operand) -> None:
    """Declare ``place``: the offset in x (within its batch) of position ``number`` of the indices."""
    depth = indices.shape[-1]
    strides = c.contiguous(x.shape)
    sheet.line(f"const {indices.dtype.c} *at = &{sheet.x(1)}[{c.Expr(number) * depth}];")
    sheet.line("int32_t place = 0;")
    sheet.line()
    for d in range(depth):
        axis = batch_dims + d
        value = index_code(sheet, indices, f"at[{d}]", x.shape[axis])
        sheet.line(f"place += {value * strides[axis]};")


register_kernels(Gather, GatherPacked(), GatherPackedBytes(), GatherLoops())
register_kernels(GatherElements, GatherElementsLoops())
register_kernels(GatherND, GatherNDLoops())


def known_indices(build: Builder, indices: Tensor, size: Array | int) -> Tensor:
    """Constant indices as small numbers from 0; an index out of range is an error in the model."""
    if not indices.is_constant:
        return indices
    wide = indices.value.astype(np.int64)
    if wide.size and bool(np.any((wide < -np.asarray(size)) | (wide >= np.asarray(size)))):
        raise ModelError(
            f"index out of range: {indices.name!r} has indices outside the {size} elements of the axis"
        )
    return build.constant(in_range(wide, size).astype(np.int32), f"{indices.name}/index")


def gather(build: Builder, x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Slices of ``x``; a Slice if the indices are evenly spaced."""
    (axis,) = normalized([axis], len(x.shape))
    indices = known_indices(build, indices, x.shape[axis])
    if indices.is_constant and indices.elements:
        flat = indices.value.reshape(-1).astype(np.int64)
        step = int(flat[1] - flat[0]) if flat.size > 1 else 1
        if step and bool(np.all(np.diff(flat) == step)):
            part = take(build, x, {axis: (int(flat[0]), flat.size, step)})
            shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
            return part if part.shape == shape else build.add1(Reshape(shape), [part])
    return build.add1(Gather(axis), [x, indices])


quantizes("Gather", "GatherElements", "GatherND", moves=True, keeps_scale=True)


@onnx_op("Gather")
def read_gather(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [gather(build, node.input(0), node.input(1), int(node.attr("axis", 0)))]


@onnx_op("GatherElements")
def read_gather_elements(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axis = onnx_axis(node, len(x.shape), 0)
    indices = known_indices(build, node.input(1), x.shape[axis])
    return [build.add1(GatherElements(axis), [x, indices])]


@onnx_op("GatherND")
def read_gather_nd(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, indices = node.input(0), node.input(1)
    batch = int(node.attr("batch_dims", 0))
    sizes = np.asarray(x.shape[batch : batch + indices.shape[-1]], np.int64)
    return [build.add1(GatherND(batch), [x, known_indices(build, indices, sizes)])]


@tflite_op("GATHER")
def read_tflite_gather(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, indices, axis, batch = node.input(0), node.input(1), node.options.Axis(), node.options.BatchDims()
    batch = batch + len(indices.shape) if batch < 0 else batch
    if batch == 0:
        return [gather(build, x, indices, axis)]
    axis = axis + len(x.shape) if axis < 0 else axis
    if not 0 < batch <= min(axis, len(indices.shape)):
        raise ModelError(
            f"GATHER operator {node.name!r} has {batch} batch axes",
            "at most `axis`, and those of the indices",
        )
    return [_gather_in_batches(build, x, indices, axis, batch)]


def _gather_in_batches(build: Builder, x: Tensor, indices: Tensor, axis: int, batch: int) -> Tensor:
    """The first axes of both go together; those between them and ``axis`` come before the indices' others."""
    rank, between, others = len(x.shape), axis - batch, len(indices.shape) - batch
    if between:
        order = (*range(batch), axis, *range(batch, axis), *range(axis + 1, rank))
        x = build.add1(Transpose(order), [x])
    places = build.add1(Reshape((*indices.shape, 1)), [indices])
    size = np.asarray([x.shape[batch]], np.int64)
    y = build.add1(GatherND(batch), [x, known_indices(build, places, size)])
    if not between:
        return y
    chosen, kept = range(batch, batch + others), range(batch + others, batch + others + between)
    return build.add1(Transpose((*range(batch), *kept, *chosen, *range(kept.stop, len(y.shape)))), [y])


@tflite_op("GATHER_ND")
def read_tflite_gather_nd(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, indices = node.input(0), node.input(1)
    sizes = np.asarray(x.shape[: indices.shape[-1]], np.int64)
    return [build.add1(GatherND(0), [x, known_indices(build, indices, sizes)])]


@tflite_op("EMBEDDING_LOOKUP")
def read_embedding_lookup(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    table = node.input(1)
    if table.quant is not None and node.outputs[0].dtype.is_float and table.is_constant:
        table = build.constant(dequantize(table.value, table.quant), f"{table.name}/real")
    return [gather(build, table, node.input(0), 0)]


@onnx_writer(Gather)
def write_onnx(op: Gather, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("Gather", x, y, axis=op.axis)


@onnx_writer(GatherElements)
def write_onnx_elements(op: GatherElements, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("GatherElements", x, y, axis=op.axis)


@onnx_writer(GatherND)
def write_onnx_nd(op: GatherND, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    whole = x[1]
    if layer.input(1).dtype is not DType.INT64:
        whole = out.node("Cast", [x[1]], to=element_type(DType.INT64))
    out.node("GatherND", [x[0], whole], y, batch_dims=op.batch_dims)
