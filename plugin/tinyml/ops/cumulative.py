"""Cumulative: running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tinyml import c
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.kernel import Kernel, Sheet, register_kernels
from tinyml.ops._axes import Split, joined, normalized
from tinyml.ops._elementwise import fill
from tinyml.reading import Builder, OnnxNode, onnx_op


@dataclass(frozen=True)
class Cumulative(Op):
    """``exclusive``: without the element itself. ``reverse``: from the end."""

    axis: int = 0
    product: bool = False
    exclusive: bool = False
    reverse: bool = False

    def label(self) -> str:
        return "cumprod" if self.product else "cumsum"

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        if self.reverse:
            x = np.flip(x, self.axis)
        if self.exclusive:
            first = np.full_like(np.take(x, [0], self.axis), int(self.product))
            rest = np.take(x, range(x.shape[self.axis] - 1), self.axis)
            x = np.concatenate([first, rest], self.axis)
        run = np.cumprod if self.product else np.cumsum
        with np.errstate(all="ignore"):
            y = run(x, axis=self.axis, dtype=x.dtype)
        return (np.flip(y, self.axis) if self.reverse else y,)

    def overwrites(self, layer: Layer) -> tuple[int, ...]:
        return (0,)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return replace(self, axis=perm.index(self.axis))


class CumulativeLoops(Kernel):
    """An accumulator that walks along the axis."""

    name = "cumulative loops"

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        assert isinstance(op, Cumulative)
        extent, stride = x.shape[op.axis], c.contiguous(x.shape)[op.axis]
        operator = "*" if op.product else "+"
        step = (
            f"acc {operator} v"
            if x.dtype.is_float
            else fill(f"({{t}})(({{w}})acc {operator} ({{w}})v)", x.dtype, {})
        )
        with sheet.loops(Split(x.shape, (op.axis,)).outer()) as index:
            sheet.line(f"{x.dtype.c} acc = {int(op.product)};")
            with sheet.block(f"for (int32_t k = 0; k < {extent}; k++) {{"):
                place = f"({extent - 1} - k)" if op.reverse else "k"
                at = joined(index["x"], place if stride == 1 else f"{place} * {stride}")
                sheet.line(f"const {x.dtype.c} v = {sheet.x()}[{at}];")
                lines = [f"acc = {step};", f"{sheet.y()}[{at}] = acc;"]
                for line in reversed(lines) if op.exclusive else lines:
                    sheet.line(line)


register_kernels(Cumulative, CumulativeLoops())


@onnx_op("CumSum", "CumProd")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axis = normalized([int(node.const(1).reshape(()))], len(x.shape))[0]
    product = node.op_type == "CumProd"
    op = Cumulative(axis, product, bool(node.attr("exclusive", 0)), bool(node.attr("reverse", 0)))
    return [build.add1(op, [x])]
