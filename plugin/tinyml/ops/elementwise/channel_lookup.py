# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ChannelLookup: a function of one byte for each channel, as tables of 256 bytes computed at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ir.hook_types import RowWindow
from tinyml.ops.elementwise.lookup import bytes_to_bytes, of_bytes
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.shared.operands import axis_exists, present


def a_table_for_each_channel(layer: Layer[Any]) -> bool:
    """There is a table of 256 entries for each channel of the axis."""
    op = layer.op
    return len(op.tables) == layer.input(0).shape[op.axis] and all(len(table) == 256 for table in op.tables)


@dataclass(frozen=True)
class ChannelLookup(Op):
    """y = tables[channel][x], counted from the smallest values as in Lookup; channels are along ``axis``."""

    operands = (present(1), of_bytes, axis_exists, a_table_for_each_channel)
    axis: int = 0
    tables: tuple[tuple[int, ...], ...] = ()

    def label(self) -> str:
        return "normalize"

    def attributes(self) -> dict[str, Any]:
        return {"axis": self.axis}

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, y = layer.input(0).dtype, layer.output.dtype
        index = given(inputs, 0).astype(np.int16) - x.limits[0]
        channel = np.arange(len(self.tables)).reshape(-1, *[1] * (index.ndim - 1 - self.axis))
        found = np.asarray(self.tables, np.int16)[channel, index] + y.limits[0]
        return (found.astype(y.numpy),)

    def row_window(self, layer: Layer, axis: int) -> RowWindow | None:
        """At the beginning of a model, where bytes change their type."""
        same = layer.input(0).dtype is layer.output.dtype
        return None if same or axis == self.axis else RowWindow.row_by_row(layer.output.shape[axis])

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return replace(self, axis=list(perm).index(self.axis))


class ChannelLookupLoop(InPlace[ChannelLookup]):
    """One load per element from the tables in flash."""

    name = "table lookup by channels"
    in_bands = True
    constraints = (bytes_to_bytes,)

    def emit(self, layer: Layer[ChannelLookup], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        by_bits = np.arange(256, dtype=np.uint8).view(x.dtype.numpy)  # the tables' order: as unsigned bytes
        entries = np.asarray(op.tables, np.int16)[:, by_bits.astype(np.int16) - x.dtype.limits[0]]
        table = sheet.table("tables", (entries + y.dtype.limits[0]).astype(y.dtype.numpy).reshape(-1))
        places = tuple(256 if axis == op.axis else 0 for axis in range(len(y.shape)))
        walks = {"i": c.Walk(c.contiguous(y.shape)), "t": c.Walk(places)}
        with sheet.loops(c.nest(y.shape, walks)) as index:
            element = f"{sheet.x()}[{index['i']}]"
            byte = element if x.dtype is DType.UINT8 else f"(uint8_t){element}"
            sheet.line(f"{sheet.y()}[{index['i']}] = {table}[{index['t']} + {byte}];")


register_kernels(ChannelLookup, ChannelLookupLoop())
