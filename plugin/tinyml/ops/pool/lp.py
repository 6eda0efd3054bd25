# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""LpPool: the p-norm of each window, channels last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.pool.windows import PoolKernel, PoolLoops, Window, read_pool
from tinyml.ops.shared.constraints import single_precision


@dataclass(frozen=True)
class LpPool(Window):
    """(sum of |x| ** p) ** (1 / p) over each window."""

    p: int = 2

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(self.output_shape(x), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        powers = np.abs(self.windows(x, 0)) ** self.p
        total = powers.sum(axis=self.taps)
        return ((total ** (1 / self.p)).astype(layer.output.dtype.numpy),)


class LpPoolLoops(PoolKernel[LpPool]):
    """Sums of powers inside loops; no powf where p is 1 or 2."""

    name = "lp-pool loops"
    constraints = (single_precision,)

    def emit(self, layer: Layer[LpPool], sheet: Sheet) -> None:
        op = layer.op
        size, power_of, sqrt = (sheet.maths(f, DType.FLOAT32) for f in ("fabs", "pow", "sqrt"))
        loops = PoolLoops(layer, sheet, op)
        with loops.outputs() as out:
            sheet.line("float sum = 0.0f;")
            sheet.line()
            with loops.taps() as at:
                sheet.line(f"const float v = {size}({sheet.x()}[{at}]);")
                sheet.line()
                power = {1: "v", 2: "v * v"}.get(op.p, f"{power_of}(v, {sheet.number(op.p)})")
                sheet.line(f"sum += {power};")
            root = {1: "sum", 2: f"{sqrt}(sum)"}.get(op.p, f"{power_of}(sum, {sheet.number(1 / op.p)})")
            sheet.line(f"{sheet.y()}[{out}] = {root};")


register_kernels(LpPool, LpPoolLoops())


@onnx_op("LpPool", "GlobalLpPool")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return read_pool(node, build, LpPool, p=int(node.attr("p", 2)))
