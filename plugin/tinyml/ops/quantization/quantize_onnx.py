# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear: constant parameters become Quantize and Dequantize.

Parameters that are known only at run time, per channel of an activation, or per block become ordinary
arithmetic: the readers write it out with element-wise operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import DType, Quant, Shape, Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import cast, onnx_type
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.reshape import Reshape, with_quant
from tinyml.ops.shared.axis import from_front


@dataclass(frozen=True)
class Parameters:
    """Scale and zero point (absent: 0) of a tensor, and how they are spread over it."""

    scale: Tensor
    zero_point: Tensor | None
    axis: int
    block: int = 0

    @property
    def per_tensor(self) -> bool:
        return self.scale.elements == 1

    @property
    def known(self) -> bool:
        return self.scale.is_constant and (self.zero_point is None or self.zero_point.is_constant)

    def quant(self) -> Quant:
        """As constants, per tensor or per slice of the axis."""
        scales = self.scale.value.astype(np.float32).reshape(-1)
        zeros = np.zeros(1, np.int64) if self.zero_point is None else self.zero_point.value.reshape(-1)
        zeros = np.broadcast_to(zeros.astype(np.int64), scales.shape)
        axis = None if self.per_tensor else self.axis
        return Quant(tuple(float(s) for s in scales), tuple(int(z) for z in zeros), axis)


def parameters(node: OnnxNode) -> Parameters:
    """As the attributes state them. A single scale has no axis, so there ONNX allows any number."""
    scale, rank = node.input(1), len(node.input(0).shape)
    axis = 0 if scale.elements == 1 else from_front(node.attr("axis", 1), rank)
    return Parameters(scale, node.optional(2), axis, int(node.attr("block_size", 0)))


def quantize(build: Builder, x: Tensor, given: Parameters, dtype: DType) -> Tensor:
    """round(x / scale) + zero_point, saturated."""
    if given.known and given.per_tensor:
        return build.add1(Quantize(dtype, given.quant()), [x])
    split, spread = _layout(build, x.shape, given)
    steps = build.add1(Binary("div"), [build.add1(Reshape(split), [x]), _spread(build, given.scale, spread)])
    steps = build.add1(Unary("round"), [steps])
    if given.zero_point is not None:
        zero = _spread(build, cast(build, given.zero_point, x.dtype), spread)
        steps = build.add1(Binary("add"), [steps, zero])
    low, high = dtype.limits
    stored = cast(build, build.add1(Clamp(low, high), [steps]), dtype)
    return build.add1(Reshape(x.shape), [stored])


def dequantize(build: Builder, x: Tensor, given: Parameters) -> Tensor:
    """(x - zero_point) * scale."""
    if given.known and (given.per_tensor or (x.is_constant and len(given.scale.shape) == 1)):
        return build.add1(Dequantize(), [with_quant(build, x, given.quant())])
    split, spread = _layout(build, x.shape, given)
    dtype = given.scale.dtype
    real = build.add1(Reshape(split), [cast(build, x, dtype)])
    if given.zero_point is not None:
        zero = _spread(build, cast(build, given.zero_point, dtype), spread)
        real = build.add1(Binary("sub"), [real, zero])
    real = build.add1(Binary("mul"), [real, _spread(build, given.scale, spread)])
    return build.add1(Reshape(x.shape), [real])


def _layout(build: Builder, shape: Shape, given: Parameters) -> tuple[Shape, Shape]:
    """Shapes for the tensor and for its parameters in which one is broadcast over the other."""
    axis, scale = given.axis, given.scale
    if given.per_tensor:
        return shape, ()
    if len(scale.shape) == 1 and not given.block:
        return shape, (scale.elements, *(1,) * (len(shape) - axis - 1))
    blocks = scale.shape[axis]
    if len(scale.shape) != len(shape) or blocks == 0 or shape[axis] % blocks:
        raise UnsupportedError(
            f"scales of shape {scale.shape} do not fit a tensor of shape {shape}",
            "blocks of equal size along one axis are supported",
        )
    split = (*shape[:axis], blocks, shape[axis] // blocks, *shape[axis + 1 :])
    return split, (*scale.shape[:axis], blocks, 1, *scale.shape[axis + 1 :])


def _spread(build: Builder, values: Tensor, shape: Shape) -> Tensor:
    return values if values.shape == shape else build.add1(Reshape(shape), [values])


@onnx_op("QuantizeLinear")
@onnx_op("QuantizeLinear", domain="com.microsoft")  # int16 in models of opsets before 21
def read_quantize(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    given = parameters(node)
    dtype = DType.UINT8 if given.zero_point is None else given.zero_point.dtype
    if given.zero_point is None and node.attr("output_dtype", 0):
        dtype = onnx_type(int(node.attr("output_dtype")))
    x = cast(build, node.input(0), given.scale.dtype)
    return [quantize(build, x, given, dtype)]


@onnx_op("DequantizeLinear")
@onnx_op("DequantizeLinear", domain="com.microsoft")
def read_dequantize(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [dequantize(build, node.input(0), parameters(node))]
