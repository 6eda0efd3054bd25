# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""L2_POOL_2D of TFLite: the root of the mean of the squares in each window, from other operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tinyml.ir import Op, Tensor, TensorType
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.windows import read_tflite_pool
from tinyml.ops.shared.quant import NO_CLAMP


@tflite_op("L2_POOL_2D")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    def mean(*window: Any, clamp: object) -> Op:  # the limits apply after the root
        return AveragePool(*window)

    squares = build.add1(Unary("square"), [node.input(0)])
    output = TensorType(node.outputs[0].shape, squares.dtype)
    means = read_tflite_pool(replace(node, inputs=(squares,), outputs=(output,)), build, mean)
    y = build.add1(Unary("sqrt"), means)
    return [y if node.clamp == NO_CLAMP else build.add1(Clamp(*node.clamp), [y])]
