# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Unique: the different elements or slices of a tensor, where each is first, and how often."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.counted.bound import COUNT, check_count, emit_count, emit_overflow, rows_within
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.indexing.gather import Gather
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axis import from_front
from tinyml.ops.shared.operands import integers, numbers_from, of_rank, present
from tinyml.ops.transpose import Transpose


@dataclass(frozen=True)
class Unique(Op):
    """Inputs: x (n, m), of which rows are compared, and how many of them count, if not all.

    Outputs, each with zeros after the last: the first row with each value (rows), the value that each row of
    x has (n), how many rows have each (rows); the number of values (1). ``ordered``: values ascend; else they
    are in the order in which they come.
    """

    operands = (present(1), of_rank(0, 2), integers(1), numbers_from(0, "rows"))
    folds = False  # the reader knows how many results constants give
    clears = True
    rows: int = 0
    ordered: bool = True

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (0, layer.input(0).shape[0]) if index == 1 else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        values = TensorType((self.rows,), DType.INT64)
        return (values, TensorType(given(inputs, 0).shape[:1], DType.INT64), values, COUNT)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        if len(inputs) > 1 and inputs[1] is not None:
            x = x[: max(int(inputs[1].reshape(-1)[0]), 0)]
        rows = [tuple(row) for row in x.tolist()]
        firsts = dict(reversed([(row, place) for place, row in enumerate(rows)]))
        values = sorted(firsts) if self.ordered else sorted(firsts, key=lambda row: firsts[row])
        check_count(len(values), self.rows, layer)
        places = {row: place for place, row in enumerate(values)}
        inverse = np.array([places[row] for row in rows], np.int64)
        first = np.array([firsts[row] for row in values], np.int64)
        counts = np.array([rows.count(row) for row in values], np.int64)
        return (
            rows_within(first, self.rows, layer),
            rows_within(inverse, layer.input(0).shape[0], layer),
            rows_within(counts, self.rows, layer),
            np.array([len(values)], np.int64),
        )


class UniqueLoops(Kernel[Unique]):
    """A list of values: sorted and searched by halves, or in the order in which they come."""

    name = "unique loops"

    def emit(self, layer: Layer[Unique], sheet: Sheet) -> None:
        op, (extent, width) = layer.op, layer.input(0).shape
        first, inverse, counts, number = (sheet.y(i) for i in range(4))
        sheet.may_fail = True
        sheet.include("<string.h>")
        if op.rows:
            sheet.line(f"memset({first}, 0, {layer.outputs[0].bytes});")
            sheet.line(f"memset({counts}, 0, {layer.outputs[2].bytes});")
        if extent:
            sheet.line(f"memset({inverse}, 0, {layer.outputs[1].bytes});")
        end: int | str = extent
        if layer.has_input(1):
            sheet.line(f"const int32_t end = {sheet.limited(f'{sheet.x(1)}[0]', 0, extent)};")
            end = "end"
        sheet.line("int32_t count = 0;")
        sheet.line()
        with sheet.loop("i", end):
            self._search(layer, sheet, width)
            with sheet.block("if (!found) {"):
                emit_overflow(sheet, "count", op.rows, number)
                with sheet.block("for (int32_t j = count; j > low; j--) {"):
                    sheet.line(f"{first}[j] = {first}[j - 1];")
                    sheet.line(f"{counts}[j] = {counts}[j - 1];")
                sheet.line(f"{first}[low] = i;")
                sheet.line(f"{counts}[low] = 0;")
                sheet.line("count++;")
            sheet.line(f"{counts}[low]++;")
        with sheet.loop("i", end):
            self._search(layer, sheet, width)
            sheet.line(f"{inverse}[i] = found ? low : 0;")
        emit_count(sheet, "count", number)
        sheet.line("return 0;")

    def _search(self, layer: Layer[Unique], sheet: Sheet, width: int) -> None:
        """Declare ``low``, the place of row i in the list, and whether it is ``found`` there."""
        x, first = layer.input(0), sheet.y(0)
        sheet.line(f"const {x.dtype.c} *own = &{sheet.x(0)}[i * {width}];")
        sheet.line("bool found = false;")
        sheet.line("int32_t low = 0;")
        if layer.op.ordered:
            sheet.line("int32_t high = count;")
        sheet.line()
        with sheet.block(f"while (!found && low < {'high' if layer.op.ordered else 'count'}) {{"):
            middle = "low + (high - low) / 2" if layer.op.ordered else "low"
            sheet.line(f"const int32_t at = {middle};")
            sheet.line(f"const {x.dtype.c} *other = &{sheet.x(0)}[{first}[at] * {width}];")
            sheet.line("int32_t k = 0;")
            sheet.line()
            with sheet.block(f"while (k < {width} && own[k] == other[k]) {{"):
                sheet.line("k++;")
            with sheet.block(f"if (k == {width}) {{"):
                sheet.line("found = true;")
                sheet.line("low = at;")
            if layer.op.ordered:
                with sheet.block("else if (other[k] < own[k]) {"):
                    sheet.line("low = at + 1;")
                with sheet.block("else {"):
                    sheet.line("high = at;")
            else:
                with sheet.block("else {"):
                    sheet.line("low++;")


register_kernels(Unique, UniqueLoops())


def _different(
    build: Builder, x: Tensor, axis: int | None, ordered: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Values, their first places, the value of each element, and how often each is there."""
    if axis is None:
        x = x if len(x.shape) == 1 else build.add1(Reshape((x.elements,)), [x])
        axis = 0
    rank = len(x.shape)
    known = build.count_along(x, axis)
    front = x
    if axis:
        front = build.add(Transpose((axis, *(a for a in range(rank) if a != axis))), [x], counts=True)[0]
    extent = x.shape[axis]
    width = math.prod(front.shape[1:])
    rows = build.add(Reshape((extent, width)), [front], counts=True)[0]
    if x.data is not None:
        exact = _exact(build, rows.value, ordered)
        return (build.add1(Gather(axis), [x, exact[0]]), *exact)
    operator = Unique(build.bound(extent), ordered)
    first, inverse, counts, number = build.add(operator, [rows, known], counts=True)
    build.count(first, 0, number)
    build.count(counts, 0, number)
    if known is not None:
        build.count(inverse, 0, known)
    values = build.add(Gather(axis), [x, first], counts=True)[0]
    build.count(values, axis, number)
    return values, first, inverse, counts


def _exact(build: Builder, rows: Array, ordered: bool) -> tuple[Tensor, Tensor, Tensor]:
    """For a constant: as many as there are."""
    most = len(rows)
    layer = Layer("", Unique(most, ordered), (Tensor.constant("x", rows),), ())
    first, inverse, counts, number = layer.op.evaluate(layer, [rows])
    count = int(number[0])
    parts = (first[:count], inverse, counts[:count])
    return tuple(build.constant(part) for part in parts)  # type: ignore[return-value]


@onnx_op("Unique")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, axis = node.input(0), node.attr("axis")
    axis = None if axis is None else from_front(int(axis), len(x.shape))
    return _different(build, x, axis, bool(node.attr("sorted", 1)))


@tflite_op("UNIQUE")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """In the order in which they come; the second output says which value each element has."""
    values, _, inverse, _ = _different(build, node.input(0), None, False)
    return [values, cast(build, inverse, node.outputs[1].dtype)]
