# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TensorScatter: new rows written into a cache, at a position given for each batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Tensor, given
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.indexing.replacement import Replacement, copy_first
from tinyml.ops.shared.axes import kept_shape
from tinyml.ops.shared.axis import from_front
from tinyml.ops.shared.indices import in_range
from tinyml.ops.shared.operands import axis_exists, extents, integers, not_empty, optional, present, same_type

INT64 = 7
"""Its number among ONNX's element types."""


def rows_fit(layer: Layer[TensorScatter]) -> bool:
    """The update has the extents of the cache, or fewer along the axis, and there is one start per batch."""
    cache, update, axis = layer.input(0).shape, layer.input(1).shape, layer.op.axis
    return (
        len(cache) == len(update)
        and axis % len(cache) != 0
        and kept_shape(cache, (axis % len(cache),)) == kept_shape(update, (axis % len(cache),))
        and update[axis] <= cache[axis]
        and extents(optional(layer, 2), cache[:1])
    )


@dataclass(frozen=True)
class TensorScatter(Replacement):
    """Inputs: cache, update, and optionally the first index along ``axis`` of each batch."""

    operands = (present(2), axis_exists, integers(2), same_type(0, 1), not_empty(0), rows_fit)
    updates = 1
    axis: int = -2
    circular: bool = False

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        size, count = (layer.input(i).shape[self.axis] for i in (0, 1))
        return (0, size - 1 if self.circular else max(size - count, 0)) if index == 2 else None

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        y, update = np.array(given(inputs, 0)), given(inputs, 1)
        starts = inputs[2] if len(inputs) > 2 and inputs[2] is not None else np.zeros(len(y), np.int64)
        size, count = y.shape[self.axis], update.shape[self.axis]
        for batch, start in enumerate(starts):
            first = int(start) % size if self.circular else max(-size - count, min(int(start), size))
            places = first + np.arange(count)
            places = places % size if self.circular else in_range(places, size)
            target = np.moveaxis(y[batch], self.axis - 1 if self.axis > 0 else self.axis, 0)
            source = np.moveaxis(update[batch], self.axis - 1 if self.axis > 0 else self.axis, 0)
            for row, place in enumerate(places):
                target[place] = source[row]
        return (y,)


class TensorScatterLoops(InPlace[TensorScatter]):
    """A memcpy for each row."""

    name = "tensor-scatter loops"

    def emit(self, layer: Layer[TensorScatter], sheet: Sheet) -> None:
        op, x, update, y = layer.op, layer.input(0), layer.input(1), layer.output
        sheet.include("<string.h>")
        axis = op.axis % len(x.shape)
        size, count = x.shape[axis], update.shape[axis]
        row = c.contiguous(x.shape)[axis]
        middle = int(np.prod(x.shape[1:axis], dtype=np.int64))
        copy_first(sheet)
        with sheet.loop("i", x.shape[0] * middle):
            place: str | c.Expr = "j"
            if layer.has_input(2):
                start = f"{sheet.x(2)}[{'i' if middle == 1 else f'i / {middle}'}]"
                sheet.line(f"const int32_t first = {_first(sheet, op, start, size, count)};")
                sheet.line()
                at = c.Expr("first") + "j"
                place = sheet.wrapped(at, size) if op.circular else sheet.index(at, size)
            with sheet.loop("j", count):
                sheet.line(f"const int32_t place = {place};")
                sheet.line()
                to, source = f"(i * {size} + place) * {row}", f"(i * {count} + j) * {row}"
                size_bytes = row * y.dtype.bytes
                sheet.line(f"memcpy(&{sheet.y()}[{to}], &{sheet.x(1)}[{source}], {size_bytes});")


def _first(sheet: Sheet, op: TensorScatter, start: str, size: int, count: int) -> c.Expr:
    """C for the place of the first row, to which the numbers of the others can be added."""
    if op.circular:
        return sheet.wrapped(start, size)
    return sheet.limited(start, -size - count, size)  # beyond these limits, the places are the same


register_kernels(TensorScatter, TensorScatterLoops())


@onnx_op("TensorScatter")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    cache = node.input(0)
    axis = from_front(int(node.attr("axis", -2)), len(cache.shape))
    if axis == 0:
        raise UnsupportedError(f"TensorScatter node {node.name!r} writes along the batch axis")
    op = TensorScatter(axis, str(node.attr("mode", "linear")) == "circular")
    operands = [cache, node.input(1), node.optional(2)]
    return [build.add1(op, operands if operands[2] is not None else operands[:2])]


@onnx_writer(TensorScatter)
def write_onnx(op: TensorScatter, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    """As ScatterElements, which versions of ONNX before 24 have, too."""
    cache, update = layer.input(0), layer.input(1)
    axis = op.axis % len(cache.shape)
    rows = [update.shape[a] if a == axis else 1 for a in range(len(update.shape))]
    places = out.constant(np.arange(update.shape[axis], dtype=np.int64).reshape(rows), "rows")
    if layer.has_input(2):
        column = [cache.shape[0], *(1 for _ in cache.shape[1:])]
        starts = out.node("Cast", [x[2]], to=INT64)
        starts = out.node("Reshape", [starts, out.integers(column, "column")])
        places = out.node("Add", [starts, places])
    if op.circular:
        places = out.node("Mod", [places, out.integers([cache.shape[axis]], "size")])
    places = out.node("Expand", [places, out.integers(update.shape, "shape")])
    out.node("ScatterElements", [x[0], places, x[1]], y, axis=axis)
