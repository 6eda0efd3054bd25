# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ConvInteger: a convolution of integers with zero points subtracted; the result is int32."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.ir import DType, Tensor
from tinyml.ops.conv.conv import read_conv
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.reshape import Reshape


@onnx_op("ConvInteger")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """The weights' zero point may be one for each output channel."""
    operands = []
    for index, zero in ((0, node.optional(2)), (1, node.optional(3))):
        x = cast(build, node.input(index), DType.INT32)
        if zero is not None:
            zero = cast(build, zero, DType.INT32)
            if zero.elements > 1:
                zero = build.add1(Reshape((zero.elements, *[1] * (len(x.shape) - 1))), [zero])
            x = build.add1(Binary("sub"), [x, zero])
        operands.append(x)
    return [read_conv(node, build, operands[0], operands[1], None)]
