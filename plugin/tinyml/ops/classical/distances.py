# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Squared distances between rows, as sums of squared differences: exact where a row equals a point.

|x|² - 2xp + |p|² would take fewer operations, but what is left after its subtraction is mostly rounding where
the row is near a point, and neighbours that are weighed by their distance differ there. With F features, the
sum below is within a factor of 1 ± (F + 2) * 2**-24 of the exact one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.shared.operands import present


def rows_of_equal_length(layer: Layer[Any]) -> bool:
    """Both operands are float32 matrices with rows of the same length."""
    shapes = [layer.input(i).shape for i in range(2)]
    floats = all(layer.input(i).dtype is DType.FLOAT32 for i in range(2))
    return floats and all(len(shape) == 2 for shape in shapes) and shapes[0][1] == shapes[1][1]


@dataclass(frozen=True)
class SquaredDistance(Op):
    """The sum over all features of (x - p)², from the first to the last, for every row and every point."""

    operands = (present(2), rows_of_equal_length)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType((given(inputs, 0).shape[0], given(inputs, 1).shape[0]), DType.FLOAT32),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, points = given(inputs, 0), given(inputs, 1)
        sums = np.zeros((len(x), len(points)), np.float32)
        for feature in range(x.shape[1]):
            difference = x[:, feature, None] - points[None, :, feature]
            sums = sums + difference * difference
        return (sums,)

    def macs(self, layer: Layer) -> int:
        return layer.output.elements * layer.input(0).shape[1]


class DistanceLoops(Kernel[SquaredDistance]):
    """A sum per row and point."""

    name = "distance loops"

    def emit(self, layer: Layer[SquaredDistance], sheet: Sheet) -> None:
        (rows, features), points = layer.input(0).shape, layer.input(1).shape[0]
        with (
            sheet.loop("i", rows),
            sheet.loop("j", points),
        ):
            sheet.line("float sum = 0.0f;")
            sheet.line()
            with sheet.loop("k", features):
                x, p = (f"{sheet.x(n)}[{at} * {features} + k]" for n, at in ((0, "i"), (1, "j")))
                sheet.line(f"const float difference = {x} - {p};")
                sheet.line()
                sheet.line("sum += difference * difference;")
            sheet.line(f"{sheet.y()}[i * {points} + j] = sum;")


register_kernels(SquaredDistance, DistanceLoops())


@onnx_op("CDist", domain="com.microsoft")
def read_distances(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Distances to points, as in k-nearest neighbours."""
    x, points = (cast(build, node.input(i), DType.FLOAT32) for i in range(2))
    if len(points.shape) != 2 or len(x.shape) != 2 or x.shape[1] != points.shape[1]:
        raise UnsupportedError(
            f"CDist node {node.name!r} has operands of shapes {x.shape} and {points.shape}",
            "two matrices with rows of the same length",
        )
    found = build.add1(SquaredDistance(), [x, points])
    metric = str(node.attr("metric", "sqeuclidean"))
    if metric == "euclidean":
        return [build.add1(Unary("sqrt"), [found])]
    if metric != "sqeuclidean":
        raise UnsupportedError(f"CDist node {node.name!r} has metric {metric}", "euclidean or sqeuclidean")
    return [found]
