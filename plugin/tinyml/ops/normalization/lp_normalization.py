# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""LpNormalization: divided by the norm along an axis; where that is 0, so is the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.where import Where
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.quantization.quantize import Quantize
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.shared.axes import onnx_axis
from tinyml.ops.shared.real import to_real


@onnx_op("LpNormalization")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, p = node.input(0), int(node.attr("p", 2))
    if p not in (1, 2):
        raise UnsupportedError(f"LpNormalization with p = {p} is not supported", "1 or 2")
    return [normalized(build, x, onnx_axis(node, len(x.shape), -1), p)]


def normalized(build: Builder, x: Tensor, axis: int, p: int) -> Tensor:
    norm = build.add1(Reduce(f"l{p}", (axis,)), [x])
    zero, one = (build.constant(np.asarray(value, x.dtype.numpy)) for value in (0, 1))
    divisor = build.add1(Where(), [build.add1(Binary("equal"), [norm, zero]), one, norm])
    return build.add1(Binary("div"), [x, divisor])


@tflite_op("L2_NORMALIZATION")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """Along the last axis, with a norm of at least 1e-6."""
    x, output = to_real(build, node.input(0)), node.outputs[0]
    assert x is not None
    norm = build.add1(Reduce("l2", (len(x.shape) - 1,)), [x])
    least = build.constant(np.asarray(1e-6, np.float32))
    y = build.add1(Binary("div"), [x, build.add1(Binary("max"), [norm, least])])
    if output.quant is None:
        return [y]
    return [build.add1(Quantize(output.dtype, output.quant, halves_to_even=False), [y])]
