# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""PairwiseCoupling: probabilities of classes from those of all pairs, as libsvm computes them for SVC.

libsvm iterates until it is close enough, and so do the runtimes that repeat it; the result depends on when
they stop. So this is the same iteration in float32, with the same limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.shared.operands import numbers_from, of_rank, of_type, present

MOST_STEPS = 100
CLOSE = 0.005  # divided by the number of classes


def all_pairs(layer: Layer[PairwiseCoupling]) -> bool:
    """The input has a probability for each pair of classes."""
    classes = layer.op.classes
    return layer.input(0).shape[1] == classes * (classes - 1) // 2


@dataclass(frozen=True)
class PairwiseCoupling(Op):
    """Each row: the probabilities of i rather than j, for all i < j, become those of the classes."""

    operands = (present(1), of_rank(0, 2), of_type(0, DType.FLOAT32), numbers_from(2, "classes"), all_pairs)
    classes: int = 2

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType((x.shape[0], self.classes), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (np.stack([_coupled(row, self.classes) for row in given(inputs, 0)]),)


def _coupled(pairs: Array, classes: int) -> Array:
    one: Any = pairs.dtype.type(1)
    q = np.zeros((classes, classes), pairs.dtype)
    for value, (i, j) in zip(pairs, combinations(range(classes), 2), strict=True):
        other = one - value
        q[i, j] = q[j, i] = -other * value
        q[i, i] += other * other
        q[j, j] += value * value
    p = np.full(classes, one / pairs.dtype.type(classes), pairs.dtype)
    close = pairs.dtype.type(CLOSE) / pairs.dtype.type(classes)
    for _ in range(MOST_STEPS):
        qp = q @ p
        total = p @ qp
        if np.abs(qp - total).max() < close:
            break
        for i in range(classes):
            step = (total - qp[i]) / q[i, i]
            p[i] += step
            total = (total + step * (step * q[i, i] + 2 * qp[i])) / (one + step) / (one + step)
            qp = (qp + step * q[i]) / (one + step)
            p = p / (one + step)
    return p


class PairwiseCouplingLoops(Kernel[PairwiseCoupling]):
    """The iteration, with its matrix in scratch memory."""

    name = "pairwise coupling"

    def scratch_bytes(self, layer: Layer[PairwiseCoupling], target: Target) -> int:
        return 4 * layer.op.classes * (layer.op.classes + 1)

    def emit(self, layer: Layer[PairwiseCoupling], sheet: Sheet) -> None:
        k, (rows, pairs) = layer.op.classes, layer.input(0).shape
        size = sheet.maths("fabs", DType.FLOAT32)
        sheet.include("<string.h>")
        sheet.line(f"float *q = {sheet.scratch};")
        sheet.line(f"float *qp = q + {k * k};")
        sheet.line()
        with sheet.loop("row", rows):
            sheet.line(f"const float *pair = &{sheet.x()}[row * {pairs}];")
            sheet.line(f"float *p = &{sheet.y()}[row * {k}];")
            sheet.line()
            sheet.line(f"memset(q, 0, {4 * k * k});")
            with sheet.loop("i", k):
                sheet.line(f"p[i] = 1.0f / {k}.0f;")
                with sheet.block(f"for (int32_t j = i + 1; j < {k}; j++) {{"):
                    sheet.line("const float first = *pair++;")
                    sheet.line("const float second = 1.0f - first;")
                    sheet.line()
                    sheet.line(f"q[i * {k} + j] = -second * first;")
                    sheet.line(f"q[j * {k} + i] = -second * first;")
                    sheet.line(f"q[i * {k + 1}] += second * second;")
                    sheet.line(f"q[j * {k + 1}] += first * first;")
            with sheet.loop("step", MOST_STEPS):
                sheet.line("float total = 0.0f;")
                sheet.line("float largest = 0.0f;")
                sheet.line()
                with sheet.loop("i", k):
                    sheet.line("qp[i] = 0.0f;")
                    with sheet.loop("j", k):
                        sheet.line(f"qp[i] += q[i * {k} + j] * p[j];")
                    sheet.line("total += p[i] * qp[i];")
                with sheet.loop("i", k):
                    sheet.line(f"const float error = {size}(qp[i] - total);")
                    sheet.line()
                    sheet.line("largest = error > largest ? error : largest;")
                with sheet.block(f"if (largest < {CLOSE}f / {k}.0f) {{"):
                    sheet.line("break;")
                with sheet.loop("i", k):
                    sheet.line(f"const float own = q[i * {k + 1}];")
                    sheet.line("const float by = (total - qp[i]) / own;")
                    sheet.line("const float sum = 1.0f + by;")
                    sheet.line()
                    sheet.line("p[i] += by;")
                    sheet.line("total = (total + by * (by * own + 2.0f * qp[i])) / sum / sum;")
                    with sheet.loop("j", k):
                        sheet.line(f"qp[j] = (qp[j] + by * q[i * {k} + j]) / sum;")
                        sheet.line("p[j] /= sum;")


register_kernels(PairwiseCoupling, PairwiseCouplingLoops())
