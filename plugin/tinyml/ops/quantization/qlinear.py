# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""QLinearConv and related operators, with scales and zero points among their operands.

Each is read as Dequantize → float operator → Quantize. The QDQ fusion then makes it an integer
operator, so models in onnxruntime's QOperator format and in its QDQ format end up the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Quant, Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.framework.reading import ONNX_READERS, Builder, OnnxNode, onnx_op
from tinyml.ops.quantization.parameters import Parameters
from tinyml.ops.quantization.quantize import Dequantize
from tinyml.ops.quantization.quantize_onnx import dequantize, quantize
from tinyml.ops.reshape import with_quant

MICROSOFT = "com.microsoft"
STANDARD_OPSET = 17  # whose attributes the com.microsoft operators share


@dataclass(frozen=True)
class Form:
    """Which float operator it is, and where its operands, their scale and zero point are found."""

    float_op: str
    operands: tuple[tuple[int, int, int], ...]  # (value, scale, zero point)
    output: tuple[int, int]  # (scale, zero point)
    bias: int | None = None


PAIR = ((0, 1, 2), (3, 4, 5))
FORMS = {
    "QLinearConv": Form("Conv", PAIR, (6, 7), bias=8),
    "QLinearMatMul": Form("MatMul", PAIR, (6, 7)),
    "QLinearAdd": Form("Add", PAIR, (6, 7)),
    "QLinearMul": Form("Mul", PAIR, (6, 7)),
    "QGemm": Form("Gemm", PAIR, (7, 8), bias=6),
    "QLinearAveragePool": Form("AveragePool", PAIR[:1], (3, 4)),
    "QLinearGlobalAveragePool": Form("GlobalAveragePool", PAIR[:1], (3, 4)),
    "QLinearReduceMean": Form("ReduceMean", PAIR[:1], (3, 4)),
    "QLinearSigmoid": Form("Sigmoid", PAIR[:1], (3, 4)),
    "QLinearLeakyRelu": Form("LeakyRelu", PAIR[:1], (3, 4)),
    "QLinearSoftmax": Form("Softmax", PAIR[:1], (3, 4)),
}


@onnx_op("QLinearConv", "QLinearMatMul")
@onnx_op(*(name for name in FORMS if name not in ("QLinearConv", "QLinearMatMul")), domain=MICROSOFT)
def read_qlinear(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    form = FORMS[node.op_type]
    if node.attr("channels_last", 0):
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} is channels-last",
            "quantise the model without NHWC conversion",
        )
    operands = [_real(node, build, form, i) for i in range(len(form.operands))]
    if form.bias is not None and node.optional(form.bias) is not None:
        operands.append(_real_bias(node, build, form))
    call = replace(
        node,
        op_type=form.float_op,
        domain="",
        opset=int(node.attr("opset", node.opset if node.domain == "" else STANDARD_OPSET)),
        inputs=tuple(operands),
    )
    (y,) = ONNX_READERS[("", form.float_op)](call, build)
    return [quantized_output(node, build, y, form.output)]


@onnx_op("QLinearConcat", domain=MICROSOFT)
def read_concat(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Operands: output scale and zero point, then (value, scale, zero point) of each part."""
    parts = [
        build.add1(
            Dequantize(), [with_quant(build, node.input(i), operand_quant(node, (i, i + 1, i + 2), 0))]
        )
        for i in range(2, len(node.inputs), 3)
    ]
    call = replace(node, op_type="Concat", domain="", opset=STANDARD_OPSET, inputs=tuple(parts))
    (y,) = ONNX_READERS[("", "Concat")](call, build)
    return [quantized_output(node, build, y, (0, 1))]


def operand_quant(node: OnnxNode, places: tuple[int, int, int], axis: int) -> Quant:
    """Scale and zero point of one operand; along ``axis`` if there are several."""
    value, scale, zero = places
    scales = node.const(scale).astype(np.float32).reshape(-1)
    zeros: Array = np.zeros(1, np.int64)
    if node.optional(zero) is not None:
        zeros = node.const(zero).astype(np.int64).reshape(-1)
    if scales.size == 1:
        return Quant.per_tensor(float(scales[0]), int(zeros[0]))
    if scales.size != node.input(value).shape[axis]:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r}: {scales.size} scales for operand {value} of shape "
            f"{node.input(value).shape}",
            "one scale per tensor or per output channel is supported",
        )
    repeated = np.broadcast_to(zeros, scales.shape)
    return Quant(tuple(float(s) for s in scales), tuple(int(z) for z in repeated), axis)


def _channel_axis(node: OnnxNode, form: Form, operand: int) -> int:
    """The axis along which an operand may have several scales: output channels."""
    if operand == 0:
        return 0
    rank = len(node.input(form.operands[operand][0]).shape)
    if node.op_type == "QLinearConv" or (node.op_type == "QGemm" and node.attr("transB", 0)):
        return 0
    return rank - 1


def _run_time(node: OnnxNode, places: tuple[int, int, int], axis: int) -> Parameters | None:
    """Parameters of an operand that are known only at run time."""
    found = Parameters(node.input(places[1]), node.optional(places[2]), axis)
    return None if found.known else found


def _real(node: OnnxNode, build: Builder, form: Form, operand: int) -> Tensor:
    places = form.operands[operand]
    given = _run_time(node, places, _channel_axis(node, form, operand))
    if given is not None:
        return dequantize(build, node.input(places[0]), given)
    quant = operand_quant(node, places, _channel_axis(node, form, operand))
    return build.add1(Dequantize(), [with_quant(build, node.input(places[0]), quant)])


def _real_bias(node: OnnxNode, build: Builder, form: Form) -> Tensor:
    """The int32 bias has the scale of the accumulator: x.scale * w.scale."""
    assert form.bias is not None
    bias = node.input(form.bias)
    if any(_run_time(node, places, 0) for places in form.operands):
        scale = build.add1(Binary("mul"), [node.input(form.operands[i][1]) for i in (0, 1)])
        return dequantize(build, bias, Parameters(scale, None, len(bias.shape) - 1))
    x = operand_quant(node, form.operands[0], 0)
    w = operand_quant(node, form.operands[1], _channel_axis(node, form, 1))
    scales = tuple(x.scale * scale for scale in w.scales)
    axis = len(bias.shape) - 1 if len(scales) > 1 else None
    return build.add1(Dequantize(), [with_quant(build, bias, Quant(scales, (0,) * len(scales), axis))])


def quantized_output(node: OnnxNode, build: Builder, y: Tensor, places: tuple[int, int]) -> Tensor:
    """Quantise a result; an absent output scale (QGemm) means that it stays real."""
    scale, zero = places
    if node.optional(scale) is None:
        return y
    zero_point = node.optional(zero)
    dtype = DType.UINT8 if zero_point is None else zero_point.dtype
    return quantize(build, y, Parameters(node.input(scale), zero_point, 0), dtype)
