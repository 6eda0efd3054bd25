# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Lookup: any function of one byte is a table of 256 bytes, computed at compile time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Quant, Tensor, TensorType, given
from tinyml.ir.hook_types import RowWindow
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.shared.operands import present
from tinyml.ops.shared.quant import quant_of

BYTES = (DType.INT8, DType.UINT8)


def of_bytes(layer: Layer) -> bool:
    """The input is int8 or uint8."""
    return layer.input(0).dtype in BYTES


def table_of_bytes(layer: Layer[Any]) -> bool:
    """The table has one entry for each value of a byte."""
    return len(layer.op.table) == 256


@dataclass(frozen=True)
class Lookup(Op):
    """y = table[x]. Both count from the smallest value of their type, so that the table is the same
    whether bytes are signed or not; ``function`` is only a name."""

    operands = (present(1), of_bytes, table_of_bytes)
    elementwise: ClassVar[bool] = True
    table: tuple[int, ...] = ()
    function: str = "lookup"

    def label(self) -> str:
        return self.function

    def attributes(self) -> dict[str, Any]:
        return {"function": self.function}

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, y = layer.input(0).dtype, layer.output.dtype
        index = given(inputs, 0).astype(np.int16) - x.limits[0]
        found = np.asarray(self.table, np.int16)[index] + y.limits[0]
        return (found.astype(y.numpy),)

    def row_window(self, layer: Layer, axis: int) -> RowWindow:
        return RowWindow.row_by_row(layer.output.shape[axis])

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self


def bytes_to_bytes(layer: Layer) -> bool:
    """Input and output are int8 or uint8."""
    return layer.input(0).dtype in BYTES and layer.output.dtype in BYTES


class LookupLoop(InPlace[Lookup]):
    """One load per element from a table in flash."""

    name = "table lookup"
    in_bands = True
    constraints = (bytes_to_bytes,)

    def emit(self, layer: Layer[Lookup], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        by_bits = np.arange(256, dtype=np.uint8).view(x.dtype.numpy)  # the table's order: as unsigned bytes
        entries = np.asarray(op.table, np.int16)[by_bits.astype(np.int16) - x.dtype.limits[0]]
        table = sheet.table("table", (entries + y.dtype.limits[0]).astype(y.dtype.numpy))
        if sheet.plays:
            members = {".count": y.elements, ".table": table}
            sheet.note("tinyml_play_lookup", members, sheet.x(), sheet.y())
            return
        with sheet.loops(c.nest(y.shape, {"i": c.Walk(c.contiguous(y.shape))})) as index:
            element = f"{sheet.x()}[{index['i']}]"
            place = element if x.dtype is DType.UINT8 else f"(uint8_t){element}"
            sheet.line(f"{sheet.y()}[{index['i']}] = {table}[{place}];")


register_kernels(Lookup, LookupLoop())


def stored_values(dtype: DType) -> Array:
    """All values of a byte, from the smallest on."""
    low, high = dtype.limits
    return np.arange(low, high + 1, dtype=np.int64)


def from_integers(name: str, x: Tensor, y: Tensor | TensorType, stored: Array) -> Lookup:
    """A table of ``stored`` results, one for each value of x's type; saturates at the ends of y's."""
    low, high = y.dtype.limits
    table = np.clip(stored, low, high).astype(np.int64) - low
    return Lookup(tuple(int(entry) for entry in table), name)


def from_function(
    name: str,
    function: Callable[[Array], Array],
    x: Tensor,
    y: Tensor | TensorType,
    halves_to_even: bool = True,
) -> Lookup:
    """A table of a function on real numbers (float32), between two quantisations.

    The function is computed in double, so that the table is the same on every CPU.
    """
    assert y.quant is not None
    quant = quant_of(x)
    real = (stored_values(x.dtype) - quant.zero_point).astype(np.float32) * np.float32(quant.scale)
    with np.errstate(all="ignore"):
        results = np.asarray(function(real.astype(np.float64)), np.float32)
    return from_integers(name, x, y, quantized(results, y.quant, y.dtype, halves_to_even))


def quantized(real: Array, quant: Quant, dtype: DType, halves_to_even: bool) -> Array:
    """Real numbers as stored integers, not yet cut to a byte; what is not a number counts as 0."""
    with np.errstate(over="ignore"):
        steps = np.clip(np.nan_to_num(real / np.float32(quant.scale), nan=0.0), -1e6, 1e6)
    rounded = np.rint(steps) if halves_to_even else fp.round_half_away(steps)
    return np.asarray(rounded.astype(np.int64) + quant.zero_point)


def takes(x: Tensor | None, y: Tensor | TensorType) -> bool:
    """Whether a function from x to y can be a table: both are bytes, quantised per tensor."""
    if x is None or x.quant is None or y.quant is None:
        return False
    return x.dtype in BYTES and y.dtype in BYTES and not x.quant.per_channel and not y.quant.per_channel
