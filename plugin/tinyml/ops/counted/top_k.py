# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TopK with a number that arrives at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.counted.bound import COUNT, check_count, emit_count, rows_within
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.shared.operands import axis_exists, integers, numbers_from, present
from tinyml.ops.shared.ranking import best_places, ranks_before


def single_numbers(layer: Layer) -> bool:
    """The number of elements to choose, and that of elements that count, are single numbers."""
    return all(layer.input(i).elements == 1 for i in (1, 2) if layer.has_input(i))


@dataclass(frozen=True)
class SomeTop(Op):
    """Inputs: x, how many of its elements along ``axis`` to choose, and how many count, if not all.

    Outputs: ``rows`` values, best first, and their indices, zeros after the last; their number (1).
    """

    operands = (present(2), axis_exists, integers(1), integers(2), single_numbers, numbers_from(0, "rows"))
    folds = False  # the reader knows how many results constants give
    clears = True
    rows: int = 0
    axis: int = 0
    largest: bool = True

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (0, layer.input(0).shape[self.axis]) if index else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        shape = tuple(self.rows if a == self.axis else extent for a, extent in enumerate(x.shape))
        quant = x.quant if x.quant is None or not x.quant.per_channel else None
        return (TensorType(shape, x.dtype, quant), TensorType(shape, DType.INT64), COUNT)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, k = given(inputs, 0), int(given(inputs, 1).reshape(-1)[0])
        size = x.shape[self.axis]
        if len(inputs) > 2 and inputs[2] is not None:
            size = min(max(int(inputs[2].reshape(-1)[0]), 0), size)
            x = np.take(x, range(size), axis=self.axis)
        k = max(k, 0)
        check_count(k, min(size, self.rows), layer)
        places = np.take(best_places(x, self.axis, self.largest), range(k), axis=self.axis)
        values = np.take_along_axis(x, places, axis=self.axis)
        outputs = (rows_within(y, self.rows, layer, self.axis) for y in (values, places.astype(np.int64)))
        return (*outputs, np.array([k], np.int64))


class SomeTopLoops(Kernel[SomeTop]):
    """Insertion into a sorted list, which is the output itself."""

    name = "top loops with a run-time number"

    def emit(self, layer: Layer[SomeTop], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        extent, inner = x.shape[op.axis], c.contiguous(x.shape)[op.axis]
        outer = x.elements // (inner * extent) if x.elements else 0
        sheet.may_fail = True
        sheet.include("<string.h>")
        size = str(extent)
        if layer.has_input(2):
            sheet.line(f"const int32_t size = {sheet.limited(f'{sheet.x(2)}[0]', 0, extent)};")
            size = "size"
        sheet.line(f"const int32_t k = {sheet.limited(f'{sheet.x(1)}[0]', 0, max(op.rows, extent) + 1)};")
        sheet.line()
        emit_count(sheet, "k", sheet.y(2))
        with sheet.block(f"if (k > {op.rows} || k > {size}) {{"):
            emit_count(sheet, "0", sheet.y(2))
            sheet.line("return TINYML_EBOUND;")
        if y.elements and outer:
            for i, tensor in enumerate(layer.outputs[:2]):
                sheet.line(f"memset({sheet.y(i)}, 0, {tensor.bytes});")
            with sheet.block("if (k > 0) {"):
                self._insert(layer, sheet, outer, inner, size)
        sheet.line("return 0;")

    def _insert(self, layer: Layer[SomeTop], sheet: Sheet, outer: int, inner: int, size: str) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        walks = {
            "x": c.Walk((x.shape[op.axis] * inner, 1)),
            "y": c.Walk((op.rows * inner, 1)),
        }
        place, before = f"j * {inner}", f"(j - 1) * {inner}"
        with sheet.loops(c.nest((outer, inner), walks, "o")) as index:
            sheet.line(f"const {x.dtype.c} *in = &{sheet.x(0)}[{index['x']}];")
            sheet.line(f"{y.dtype.c} *best = &{sheet.y(0)}[{index['y']}];")
            sheet.line(f"int64_t *place = &{sheet.y(1)}[{index['y']}];")
            sheet.line("int32_t count = 0;")
            sheet.line()
            with sheet.loop("i", size if size == "size" else int(size)):
                sheet.line(f"const {x.dtype.c} v = in[i * {inner}];")
                sheet.line("int32_t j = count < k ? count : k - 1;")
                sheet.line()
                worse = ranks_before("v", f"best[(k - 1) * {inner}]", x.dtype, op.largest)
                with sheet.block(f"if (count == k && !({worse})) {{"):
                    sheet.line("continue;")
                sheet.line("count = j + 1;")
                better = ranks_before("v", f"best[{before}]", x.dtype, op.largest)
                with sheet.block(f"for (; j > 0 && {better}; j--) {{"):
                    sheet.line(f"best[{place}] = best[{before}];")
                    sheet.line(f"place[{place}] = place[{before}];")
                sheet.line(f"best[{place}] = v;")
                sheet.line(f"place[{place}] = i;")


register_kernels(SomeTop, SomeTopLoops())
