# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""SoftmaxTable: softmax between two quantisations of bytes, with exp as a table: no libm, no floats.

The exponential of a difference of two bytes is one of 256 numbers. Their sum fits 32 bits; one division
per row gives the factor from exponential to output, good to far more than the eight bits that are left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Tensor, TensorType, given
from tinyml.ops.elementwise import lookup
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.reduce.reduce import largest
from tinyml.ops.shared.axes import AlongAxis, Split, inner_loop
from tinyml.ops.shared.quant import quant_of


@dataclass(frozen=True)
class SoftmaxTable(AlongAxis):
    """exp(beta * x) divided by its sum along ``axis``."""

    beta: float = 1.0

    def label(self) -> str:
        return "softmax"

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        plan = plan_of(self, layer.input(0), layer.output)
        return (rows_by_table(plan, given(inputs, 0), layer.output, self.axis),)


@dataclass(frozen=True, eq=False)
class Plan:
    """The numbers of a layer: y = exp * (numerator / sum) >> shift, all in unsigned integers."""

    exps: Array  # uint32; by how far an element is below the largest; zeros at the end left out
    numerator: int
    shift: int


def plan_of(op: SoftmaxTable, x: Tensor, y: Tensor) -> Plan:
    """The largest exponential is 2**bits, so that a whole row of them still fits 32 bits."""
    bits = 31 - max(math.ceil(math.log2(max(x.shape[op.axis], 1))), 1)
    step = op.beta * quant_of(x).scale
    exps = np.rint(np.exp(-step * np.arange(256)) * 2.0**bits).astype(np.uint32)
    exps = exps[: int(np.flatnonzero(exps)[-1]) + 1]
    steps = 1.0 / quant_of(y).scale  # of the output from 0 to 1
    shift = bits + 31 - max(math.ceil(math.log2(steps)), 0)  # the factor of a row fits 32 bits
    return Plan(exps, round(steps * 2.0**shift), shift)


def rows_by_table(plan: Plan, x: Array, y: Tensor, axis: int, hidden: Array | None = None) -> Array:
    """The softmax of stored integers; those that are ``hidden`` count for nothing."""
    least = np.iinfo(np.int64).min // 2
    wide = x.astype(np.int64) if hidden is None else np.where(hidden, least, x.astype(np.int64))
    below = np.minimum(wide.max(axis=axis, keepdims=True) - wide, 256)
    padded = np.zeros(257, np.int64)
    padded[: plan.exps.size] = plan.exps
    exps = padded[below]
    sums = exps.sum(axis=axis, keepdims=True)
    factors = (plan.numerator + sums // 2) // sums
    found = (exps * factors + (1 << (plan.shift - 1))) >> plan.shift
    return np.clip(found + quant_of(y).zero_point, *y.dtype.limits).astype(y.dtype.numpy)


def bytes_to_bytes(layer: Layer[SoftmaxTable]) -> bool:
    """Input and output are int8 or uint8, quantised per tensor, and the output has a scale above 2⁻¹⁶."""
    x, y = layer.input(0), layer.output
    return lookup.takes(x, y) and quant_of(y).scale > 2.0**-16 and x.shape[layer.op.axis] < 1 << 16


class SoftmaxTableLoops(InPlace[SoftmaxTable]):
    """Three passes over each row: the largest, the sum, the result."""

    name = "softmax by table"
    constraints = (bytes_to_bytes,)

    def emit(self, layer: Layer[SoftmaxTable], sheet: Sheet) -> None:
        x, y = layer.input(0), layer.output
        plan, split = plan_of(layer.op, x, y), Split(x.shape, (layer.op.axis,))
        table = sheet.table("exps", plan.exps)
        high = y.dtype.limits[1]
        zero = quant_of(y).zero_point
        offset = f" + {zero}" if zero > 0 else f" - {-zero}" if zero else ""
        size = plan.exps.size
        if sheet.plays and x.dtype is y.dtype is DType.INT8:
            _play(layer, sheet, plan, table)
            return

        def exponential(place: c.Expr, name: str) -> str:
            """``name`` differs between the passes: a row of one element needs no loop and opens no scope."""
            sheet.line(f"const int32_t {name} = top - {sheet.x()}[{place}];")
            return f"{table}[{name}]" if size == 256 else f"({name} < {size} ? {table}[{name}] : 0)"

        with sheet.loops(split.outer()) as index:
            largest(sheet, split, index["x"], x.dtype, "top")
            sheet.line("uint32_t sum = 0;")
            with inner_loop(sheet, split, index["x"]) as place:
                sheet.line(f"sum += {exponential(place, 'below')};")
            sheet.line(f"const uint32_t factor = (uint32_t)((UINT64_C({plan.numerator}) + sum / 2) / sum);")
            sheet.line()
            with inner_loop(sheet, split, index["x"]) as place:
                value = (
                    f"(uint64_t){exponential(place, 'distance')} * factor + (UINT64_C(1) << {plan.shift - 1})"
                )
                sheet.line(f"const int32_t q = (int32_t)(({value}) >> {plan.shift}){offset};")
                sheet.line(f"{sheet.y()}[{place}] = ({y.dtype.c})(q > {high} ? {high} : q);")


def _play(layer: Layer[SoftmaxTable], sheet: Sheet, plan: Plan, table: str) -> None:
    x, axis = layer.input(0), layer.op.axis
    columns = math.prod(x.shape[axis + 1 :])
    members = {
        ".rows": math.prod(x.shape[:axis]),
        ".columns": columns,
        ".row_step": columns * x.shape[axis],
        ".depth": x.shape[axis],
        ".step": columns,
        ".exps": table,
        ".size": plan.exps.size,
        ".numerator": plan.numerator & 0xFFFFFFFF,
        ".numerator_high": plan.numerator >> 32,
        ".shift": plan.shift,
        ".zero": quant_of(layer.output).zero_point,
        ".out_max": layer.output.dtype.limits[1],
    }
    sheet.note("tinyml_play_softmax_table_s8", members, sheet.x(), sheet.y())


register_kernels(SoftmaxTable, SoftmaxTableLoops())
