# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Trilu: the upper or lower triangle of each matrix, zeros elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.axes import count
from tinyml.ops.shared.operands import at_least_rank, integers, present


@dataclass(frozen=True)
class Trilu(Op):
    """Kept: elements with column - row >= k (upper) or <= k (lower). A second input is k at run time."""

    operands = (present(1), at_least_rank(0, 2), integers(1))
    upper: bool = True
    k: int = 0

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        rows, columns = layer.input(0).shape[-2:]
        return (-rows - 1, columns + 1) if index == 1 else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        k = int(given(inputs, 1).reshape(())) if len(inputs) > 1 else self.k
        inside = _inside(k, x.shape)
        return ((np.triu if self.upper else np.tril)(x, inside),)


def _inside(k: int, shape: Sequence[int]) -> int:
    """k may be any int64, but makes no difference beyond the ends of the matrix."""
    return max(min(k, shape[-1] + 1), -shape[-2] - 1)


class TriluLoops(InPlace[Trilu]):
    """A comparison of row and column per element."""

    name = "triangle loops"

    def emit(self, layer: Layer[Trilu], sheet: Sheet) -> None:
        op, shape = layer.op, layer.output.shape
        rows, columns = shape[-2:]
        matrices = count(shape, range(len(shape) - 2))
        limit = f"{sheet.x(1)}[0]" if layer.has_input(1) else str(_inside(op.k, shape))
        sign = f"c - r {'>=' if op.upper else '<='} {limit}"
        with (
            sheet.loop("m", matrices),
            sheet.loop("r", rows),
            sheet.loop("c", columns),
        ):
            sheet.line(f"const int32_t i = (m * {rows} + r) * {columns} + c;")
            sheet.line()
            sheet.line(f"{sheet.y()}[i] = {sign} ? {sheet.x(0)}[i] : 0;")


register_kernels(Trilu, TriluLoops())


@onnx_op("Trilu")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, k, upper = node.input(0), node.optional(1), bool(node.attr("upper", 1))
    if k is not None and not k.is_constant:
        return [build.add1(Trilu(upper), [x, k])]
    return [build.add1(Trilu(upper, 0 if k is None else int(k.value.reshape(()))), [x])]


@onnx_writer(Trilu)
def write_onnx(op: Trilu, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    k = x[1] if len(x) > 1 else out.constant(np.asarray(_inside(op.k, layer.output.shape), np.int64), "k")
    out.node("Trilu", [x[0], k], y, upper=int(op.upper))
