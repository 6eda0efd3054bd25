# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear: constant parameters become Quantize and Dequantize.

Parameters that are known only at run time, per channel of an activation, or per block become ordinary
arithmetic: the readers write it out with element-wise operators. Constants with parameters per block become
real numbers here; kernels that keep them packed find the blocks in the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.ir import DType, Shape, Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.elementwise.cast_onnx import onnx_kind
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.narrow import Narrow
from tinyml.ops.framework.reading import MALFORMED, Builder, OnnxNode, onnx_op
from tinyml.ops.quantization.parameters import Parameters, parameters
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.reshape import Reshape, with_quant


def quantize(build: Builder, x: Tensor, given: Parameters, kind: DType | Narrow) -> Tensor:
    """round(x / scale) + zero_point, saturated."""
    dtype, (low, high) = (kind.holder if isinstance(kind, Narrow) else kind), kind.limits
    if given.known and given.per_tensor:
        quant = given.quant()
        if isinstance(kind, Narrow):  # real limits: the layer before takes them over
            ends = [
                float(np.float32(end - quant.zero_point) * np.float32(quant.scale)) for end in (low, high)
            ]
            x = build.add1(Clamp(*ends), [x])
        return build.add1(Quantize(dtype, quant), [x])
    split, spread = _layout(x.shape, given)
    steps = build.add1(Binary("div"), [build.add1(Reshape(split), [x]), _spread(build, given.scale, spread)])
    steps = build.add1(Unary("round"), [steps])
    if given.zero_point is not None:
        zero = _spread(build, cast(build, given.zero_point, x.dtype), spread)
        steps = build.add1(Binary("add"), [steps, zero])
    stored = cast(build, build.add1(Clamp(low, high), [steps]), dtype)
    return build.add1(Reshape(x.shape), [stored])


def dequantize(build: Builder, x: Tensor, given: Parameters) -> Tensor:
    """(x - zero_point) * scale."""
    if given.known and x.is_constant and not given.per_tensor and not given.per_channel:
        return build.constant(given.real(x.value), f"{x.name}/real")
    if given.known and (given.per_tensor or (x.is_constant and given.per_channel)):
        quant = given.quant()
        stored = with_quant(build, x, quant) if not x.is_constant else given.stored(build, x, quant)
        return build.add1(Dequantize(), [stored])
    split, spread = _layout(x.shape, given)
    dtype = given.scale.dtype
    real = build.add1(Reshape(split), [cast(build, x, dtype)])
    if given.zero_point is not None:
        zero = _spread(build, cast(build, given.zero_point, dtype), spread)
        real = build.add1(Binary("sub"), [real, zero])
    real = build.add1(Binary("mul"), [real, _spread(build, given.scale, spread)])
    return build.add1(Reshape(x.shape), [real])


def _layout(shape: Shape, given: Parameters) -> tuple[Shape, Shape]:
    """Shapes for the tensor and for its parameters in which one is broadcast over the other."""
    axis, scale = given.axis, given.scale
    if given.per_tensor:
        return shape, ()
    if given.per_channel:
        return shape, (scale.elements, *(1,) * (len(shape) - axis - 1))
    blocks = scale.shape[axis]
    if shape[axis] % blocks:
        raise UnsupportedError(
            f"{shape[axis]} elements in {blocks} blocks of {given.block}: the last one is shorter",
            "that is supported for constants; pad what is computed, or choose blocks that divide it",
        )
    split = (*shape[:axis], blocks, shape[axis] // blocks, *shape[axis + 1 :])
    return split, (*scale.shape[:axis], blocks, 1, *scale.shape[axis + 1 :])


def _spread(build: Builder, values: Tensor, shape: Shape) -> Tensor:
    return values if values.shape == shape else build.add1(Reshape(shape), [values])


@onnx_op("QuantizeLinear")
@onnx_op("QuantizeLinear", domain="com.microsoft")  # int16 in models of opsets before 21
def read_quantize(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    given = parameters(node, build)
    kind = DType.UINT8 if given.zero_point is None else build.kind(given.zero_point)
    if given.zero_point is None and node.attr("output_dtype", 0):
        kind = onnx_kind(int(node.attr("output_dtype")))
    x = cast(build, node.input(0), given.scale.dtype)
    stored = quantize(build, x, given, kind)
    if isinstance(kind, Narrow):
        build.narrow[stored.name] = kind
    return [stored]


@onnx_op("DequantizeLinear")
@onnx_op("DequantizeLinear", domain="com.microsoft")
def read_dequantize(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, zero = node.input(0), node.optional(2)
    kind = build.kind(x)
    if isinstance(kind, Narrow) and zero is not None and zero.is_constant:
        low, high = kind.limits
        outside = zero.value[(zero.value < low) | (zero.value > high)].reshape(-1)
        if outside.size:
            raise ModelError(
                f"DequantizeLinear {node.name!r} has a zero point of {outside[0]} for a tensor of type "
                f"{kind.name} ({low} to {high})",
                MALFORMED,
            )
    return [dequantize(build, x, parameters(node, build))]
