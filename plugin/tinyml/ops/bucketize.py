# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Bucketize: the number of the interval that each element lies in (Keras: Discretization)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.shared.operands import numbers, present


def ascending(layer: Layer[Any]) -> bool:
    """There is at least one boundary, and the boundaries ascend."""
    boundaries = layer.op.boundaries
    known = len(boundaries) > 0 and not any(math.isnan(b) for b in boundaries)
    return known and all(a <= b for a, b in pairwise(boundaries))


@dataclass(frozen=True)
class Bucketize(Op):
    """How many boundaries are not greater than the element. Integers are compared as float32; NaN is last."""

    operands = (present(1), numbers(0), ascending)
    elementwise: ClassVar[bool] = True
    boundaries: tuple[float, ...] = ()  # float32

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType(given(inputs, 0).shape, DType.INT32),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        real: Array = x if layer.input(0).dtype.is_float else x.astype(np.float32)
        intervals = np.searchsorted(np.array(self.boundaries, np.float32), real, side="right")
        return (np.asarray(intervals, np.int32),)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self


def plain_numbers(layer: Layer) -> bool:
    """The input is not quantised."""
    return layer.input(0).quant is None


class BucketizeLoop(InPlace[Bucketize]):
    """A binary search of the boundaries per element."""

    name = "binary search"
    constraints = (plain_numbers,)

    def emit(self, layer: Layer[Bucketize], sheet: Sheet) -> None:
        boundaries = np.array(layer.op.boundaries, np.float32)
        x = layer.input(0).dtype
        table = sheet.table("boundaries", boundaries)
        with sheet.loop("i", layer.output.elements):
            real = x.c if x.is_float else "float"
            sheet.line(f"const {real} v = {'' if x.is_float else '(float)'}{sheet.x()}[i];")
            sheet.line(f"int32_t low = 0, high = {boundaries.size};")
            sheet.line()
            with sheet.block("while (low < high) {"):
                sheet.line("const int32_t middle = (low + high) / 2;")
                sheet.line(f"const bool below = v < {table}[middle];")
                sheet.line()
                sheet.line("high = below ? middle : high;")
                sheet.line("low = below ? low : middle + 1;")
            sheet.line(f"{sheet.y()}[i] = low;")


register_kernels(Bucketize, BucketizeLoop())


@tflite_op("BUCKETIZE")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    if node.options.BoundariesLength() == 0:
        return [build.constant(np.zeros(x.shape, np.int32))]
    boundaries = tuple(float(b) for b in node.options.BoundariesAsNumpy())
    return [build.add1(Bucketize(boundaries), [x])]
