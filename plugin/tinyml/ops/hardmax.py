"""Hardmax: 1 at the first largest element along an axis, 0 elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tinyml import c
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.kernel import Kernel, Sheet, register_kernels
from tinyml.ops._axes import Split, flattened_before_13, joined
from tinyml.reading import Builder, OnnxNode, onnx_op


@dataclass(frozen=True)
class Hardmax(Op):
    """Along ``axis``."""

    axis: int = 0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        y = np.zeros_like(x)
        np.put_along_axis(y, x.argmax(axis=self.axis, keepdims=True), 1, self.axis)
        return (y,)

    def overwrites(self, layer: Layer) -> tuple[int, ...]:
        return (0,)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return replace(self, axis=perm.index(self.axis))


class HardmaxLoops(Kernel):
    """Two passes: where the largest is, and the answer."""

    name = "hardmax loops"

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        assert isinstance(op, Hardmax)
        stride = c.contiguous(x.shape)[op.axis]
        loop = f"for (int32_t k = {{}}; k < {x.shape[op.axis]}; k++) {{{{"
        with sheet.loops(Split(x.shape, (op.axis,)).outer()) as index:

            def at(step: str) -> str:
                return joined(index["x"], step if stride == 1 else f"{step} * {stride}")

            sheet.line("int32_t best = 0;")
            with (
                sheet.block(loop.format(1)),
                sheet.block(f"if ({sheet.x()}[{at('k')}] > {sheet.x()}[{at('best')}]) {{"),
            ):
                sheet.line("best = k;")
            with sheet.block(loop.format(0)):
                sheet.line(f"{sheet.y()}[{at('k')}] = k == best ? 1 : 0;")


register_kernels(Hardmax, HardmaxLoops())


@onnx_op("Hardmax")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [flattened_before_13(node, build, lambda x, axis: build.add1(Hardmax(axis), [x]))]
