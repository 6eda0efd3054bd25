# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Int16Table: a function of int16 as a table of 513 values with straight lines between them.

The scheme is that of TensorFlow Lite for int16: entries at every 128th input, each moved half way towards
what makes the middle of its interval right. The error is checked for all 65536 inputs when the table is made,
and a table that is too far off is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Tensor, TensorType, given
from tinyml.ops.elementwise import lookup
from tinyml.ops.elementwise.int16_activation import Int16Activation, symmetric_int16
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.shared.quant import quant_of

BITS = 7
INTERVALS = 1 << (16 - BITS)

LARGEST_ERROR = 4
"""In steps of the output: a 64th of what a step of int8 would be."""


def whole_table(layer: Layer[Any]) -> bool:
    """The table has a value for each end of an interval."""
    return len(layer.op.table) == INTERVALS + 1


@dataclass(frozen=True)
class Int16Table(Int16Activation):
    """``function`` is only a name."""

    operands = (*Int16Activation.operands, whole_table)
    table: tuple[int, ...] = ()
    function: str = "table"

    def label(self) -> str:
        return self.function

    def attributes(self) -> dict[str, Any]:
        return {"function": self.function}

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (interpolated(np.asarray(self.table, np.int64), given(inputs, 0)),)


def interpolated(table: Array, x: Array) -> Array:
    place, rest = (x.astype(np.int64) >> BITS) + INTERVALS // 2, x.astype(np.int64) & ((1 << BITS) - 1)
    below, above = table[place], table[place + 1]
    return (below + (((above - below) * rest + (1 << (BITS - 1))) >> BITS)).astype(np.int16)


class Int16TableLoop(InPlace[Int16Table]):
    """Two loads and a multiplication per element."""

    name = "interpolated table"
    constraints = (symmetric_int16,)

    def emit(self, layer: Layer[Int16Table], sheet: Sheet) -> None:
        op, y = layer.op, layer.output
        table = sheet.table("table", np.asarray(op.table, np.int16))
        with sheet.loops(c.nest(y.shape, {"i": c.Walk(c.contiguous(y.shape))})) as index:
            sheet.line(f"const int32_t v = {sheet.x()}[{index['i']}];")
            sheet.line(f"const int16_t *const t = &{table}[(v >> {BITS}) + {INTERVALS // 2}];")
            sheet.line(f"const int32_t rise = (t[1] - t[0]) * (v & {(1 << BITS) - 1});")
            sheet.line()
            sheet.line(
                f"{sheet.y()}[{index['i']}] = (int16_t)(t[0] + ((rise + {1 << (BITS - 1)}) >> {BITS}));"
            )

    def play(self, layer: Layer[Int16Table], sheet: Sheet) -> None:
        table = sheet.table("table", np.asarray(layer.op.table, np.int16))
        members = {".count": layer.output.elements, ".table": table}
        sheet.note("tinyml_play_table_s16", members, sheet.x(), sheet.y())


register_kernels(Int16Table, Int16TableLoop())


def from_function(
    name: str, function: Callable[[Array], Array], x: Tensor, y: Tensor | TensorType
) -> Int16Table | None:
    """The table of a function on real numbers; None where it would be further off than is allowed."""
    low, high = DType.INT16.limits
    scale = quant_of(x).scale

    def stored(steps: Array) -> Array:
        assert y.quant is not None
        with np.errstate(all="ignore"):
            real = np.asarray(function(steps * scale), np.float32)  # in double: the same on every CPU
        return np.clip(lookup.quantized(real, y.quant, DType.INT16, halves_to_even=True), low, high)

    ends = np.arange(low, high + 2, 1 << BITS)
    at = stored(ends)
    bend = (at[:-1] + at[1:]) / 2 - stored(ends[:-1] + (1 << (BITS - 1)))
    table = np.clip(np.append(np.rint(at[:-1] - bend / 2), at[-1]), low, high).astype(np.int64)
    everything = np.arange(low, high + 1)
    error = np.abs(interpolated(table, everything) - stored(everything)).max()
    return Int16Table(tuple(int(entry) for entry in table), name) if error <= LARGEST_ERROR else None
