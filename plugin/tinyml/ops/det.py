# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Determinant of square matrices, by elimination with pivots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.shared.axes import count
from tinyml.ops.shared.constraints import real_numbers
from tinyml.ops.shared.operands import present


def square(layer: Layer) -> bool:
    """Its input consists of square matrices."""
    shape = layer.input(0).shape
    return len(shape) >= 2 and shape[-1] == shape[-2]


@dataclass(frozen=True)
class Determinant(Op):
    """(..., n, n) -> (...)."""

    operands = (present(1), square)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape[:-2], x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        return (np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype),)


class DeterminantLoops(Kernel[Determinant]):
    """Each matrix is copied and eliminated in scratch memory."""

    name = "elimination"
    constraints = (real_numbers,)

    def scratch_bytes(self, layer: Layer[Determinant], target: Target) -> int:
        x = layer.input(0)
        return x.shape[-1] ** 2 * x.dtype.bytes

    def emit(self, layer: Layer[Determinant], sheet: Sheet) -> None:
        x = layer.input(0)
        n, matrices = x.shape[-1], count(x.shape, range(len(x.shape) - 2))
        kind, size = x.dtype.c, sheet.maths("fabs", x.dtype)
        sheet.include("<string.h>")
        sheet.line(f"{kind} *m = {sheet.scratch};")
        sheet.line()
        with sheet.loop("i", matrices):
            sheet.line(f"{kind} product = 1;")
            sheet.line()
            sheet.line(f"memcpy(m, &{sheet.x()}[i * {n * n}], {n * n * x.dtype.bytes});")
            with sheet.block(f"for (int32_t c = 0; c < {n} && product != 0; c++) {{"):
                self._column(sheet, n, kind, size)
            sheet.line(f"{sheet.y()}[i] = product;")

    def _column(self, sheet: Sheet, n: int, kind: str, size: str) -> None:
        """Bring the largest element of column c to the diagonal, and zeros below it."""
        sheet.line("int32_t pivot = c;")
        sheet.line()
        with (
            sheet.block(f"for (int32_t r = c + 1; r < {n}; r++) {{"),
            sheet.block(f"if ({size}(m[r * {n} + c]) > {size}(m[pivot * {n} + c])) {{"),
        ):
            sheet.line("pivot = r;")
        with (
            sheet.block("if (pivot != c) {"),
        ):
            with sheet.loop("k", n):
                sheet.line(f"const {kind} swapped = m[c * {n} + k];")
                sheet.line()
                sheet.line(f"m[c * {n} + k] = m[pivot * {n} + k];")
                sheet.line(f"m[pivot * {n} + k] = swapped;")
            sheet.line("product = -product;")
        sheet.line(f"product *= m[c * {n} + c];")
        with sheet.block(f"for (int32_t r = c + 1; r < {n} && product != 0; r++) {{"):
            sheet.line(f"const {kind} factor = m[r * {n} + c] / m[c * {n} + c];")
            sheet.line()
            with sheet.block(f"for (int32_t k = c; k < {n}; k++) {{"):
                sheet.line(f"m[r * {n} + k] -= factor * m[c * {n} + k];")


register_kernels(Determinant, DeterminantLoops())


@onnx_op("Det")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(Determinant(), [node.input(0)])]
