# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TensorScatter: new rows written into a cache, at a position given for each batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyml import c
from tinyml.errors import UnsupportedError
from tinyml.ir import Array, Layer, Tensor, given
from tinyml.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.indexing.gather import in_range
from tinyml.ops.indexing.replacement import Replacement, copy_first
from tinyml.ops.shared.axes import kept_shape
from tinyml.ops.shared.axis import from_front
from tinyml.ops.shared.operands import axis_exists, extents, integers, not_empty, optional, present, same_type
from tinyml.reading import Builder, OnnxNode, onnx_op


def rows_fit(layer: Layer[TensorScatter]) -> bool:
    """The update has the cache's extents except along the axis, where it is no longer; one start a batch."""
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
    axis: int = -2
    circular: bool = False

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        y, update = np.array(given(inputs, 0)), given(inputs, 1)
        starts = inputs[2] if len(inputs) > 2 and inputs[2] is not None else np.zeros(len(y), np.int64)
        size = y.shape[self.axis]
        for batch, start in enumerate(starts):
            places = int(start) + np.arange(update.shape[self.axis])
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
        with sheet.block(f"for (int32_t i = 0; i < {x.shape[0] * middle}; i++) {{"):
            start = "0"
            if layer.has_input(2):
                start = f"{sheet.x(2)}[{'i' if middle == 1 else f'i / {middle}'}]"
            with sheet.block(f"for (int32_t j = 0; j < {count}; j++) {{"):
                if op.circular:
                    sheet.line(f"const int64_t wrapped = ({start} + j) % {size};")
                    place = f"(int32_t)(wrapped < 0 ? wrapped + {size} : wrapped)"
                else:
                    sheet.include("<tinyml/index.h>")
                    place = f"tinyml_index({start} + j, {size})"
                sheet.line(f"const int32_t place = {place};")
                sheet.line()
                to, source = f"(i * {size} + place) * {row}", f"(i * {count} + j) * {row}"
                size_bytes = row * y.dtype.bytes
                sheet.line(f"memcpy(&{sheet.y()}[{to}], &{sheet.x(1)}[{source}], {size_bytes});")


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
