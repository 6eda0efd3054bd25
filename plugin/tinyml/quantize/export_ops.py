# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How each operator is written in ONNX: NHWC becomes NCHW between two transposes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tinyml.errors import UnsupportedError
from tinyml.ir import Layer
from tinyml.ops.concat import Concat
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.ops.dense.matmul import MatMul
from tinyml.ops.elementwise import unary
from tinyml.ops.elementwise.binary import ONNX_NAMES as BINARY_NAMES
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import Cast
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.power import Power
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.elementwise.where import Where
from tinyml.ops.expand import Tile
from tinyml.ops.indexing.gather import Gather
from tinyml.ops.pad import Pad
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.ops.reduce.reduce import ONNX_NAMES as REDUCE_NAMES
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.reshape import Reshape
from tinyml.ops.slice import Slice
from tinyml.ops.softmax.softmax import Softmax
from tinyml.ops.transpose import Transpose
from tinyml.quantize.export_writer import Writer, writes

BINARY = {function: name for name, function in BINARY_NAMES.items()} | {
    "max": "Max",
    "min": "Min",
    "prelu": "PRelu",
}
REDUCE = {function: name for name, function in REDUCE_NAMES.items()}
UNARY = {reading.function: name for name, reading in unary.ONNX_NAMES.items() if name != "Swish"}


def _first(rank: int) -> list[int]:
    """Channels from the last place to the second."""
    return [0, rank - 1, *range(1, rank - 1)]


def _last(rank: int) -> list[int]:
    return [0, *range(2, rank), 1]


def _spatial(out: Writer, x: str, y: str, rank: int, clamp: tuple[float, float], op_type: str,
             operands: list[str], **attributes: Any) -> None:  # fmt: skip
    """transpose, operator, clamp, transpose."""
    inner = out.node("Transpose", [x], perm=_first(rank))
    result = out.node(op_type, [inner, *operands], **attributes)
    if clamp != (-np.inf, np.inf):
        limited = f"{result}/clamped"
        out.clamped(result, clamp, limited)
        result = limited
    out.node("Transpose", [result], y, perm=_last(rank))


@writes(Conv)
def write_conv(op: Conv, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    weights = out.constant(layer.input(1).value.transpose(0, 3, 1, 2), "weights")
    _convolution(op, op.groups, weights, x, y, out)


@writes(DepthwiseConv)
def write_depthwise(op: DepthwiseConv, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    weights = out.constant(layer.input(1).value.transpose(3, 0, 1, 2), "weights")
    _convolution(op, layer.input(0).shape[3], weights, x, y, out)


def _convolution(
    op: Conv | DepthwiseConv, groups: int, weights: str, x: list[str], y: str, out: Writer
) -> None:
    bias = [x[2]] if len(x) > 2 and x[2] else []
    _spatial(out, x[0], y, 4, op.clamp, "Conv", [weights, *bias], strides=list(op.strides),
             dilations=list(op.dilations), pads=list(op.pads), group=groups)  # fmt: skip


@writes(ConvTranspose)
def write_conv_transpose(op: ConvTranspose, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    """ONNX says how much is cut off behind the output, or added there, instead of how large it is."""
    shape, values = layer.input(0).shape, layer.input(1).value
    kernel, ins = values.shape[1:-1], values.shape[-1]
    apart = values.reshape(op.groups, -1, *kernel, ins)
    weights = np.moveaxis(apart, -1, 1).reshape(op.groups * ins, -1, *kernel)
    spare = [
        stride * (size - 1) + dilation * (taps - 1) + 1 - pad - wanted
        for stride, size, dilation, taps, pad, wanted in zip(
            op.strides, shape[1:-1], op.dilations, kernel, op.pads, op.outputs, strict=True
        )
    ]
    bias = [x[2]] if len(x) > 2 and x[2] else []
    _spatial(out, x[0], y, len(shape), op.clamp, "ConvTranspose", [out.constant(weights, "weights"), *bias],
             strides=list(op.strides), dilations=list(op.dilations), group=op.groups,
             pads=[*op.pads, *(max(s, 0) for s in spare)],
             output_padding=[max(-s, 0) for s in spare])  # fmt: skip


@writes(Dense)
def write_dense(op: Dense, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    bias = [x[2]] if len(x) > 2 and x[2] else []
    if len(layer.input(0).shape) == 2:
        result = out.node("Gemm", [x[0], x[1], *bias], transB=1)
    else:
        result = out.node("MatMul", [x[0], out.constant(layer.input(1).value.T, "weights")])
        result = out.node("Add", [result, *bias]) if bias else result
    out.clamped(result, op.clamp, y)


@writes(MaxPool)
def write_max_pool(op: MaxPool, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    if op.indices:
        raise UnsupportedError("a max-pool that returns positions cannot be quantised")
    rank = len(layer.input(0).shape)
    _spatial(out, x[0], y, rank, op.clamp, "MaxPool", [], kernel_shape=list(op.kernel),
             strides=list(op.strides), dilations=list(op.dilations), pads=list(op.pads),
             ceil_mode=int(op.ceil))  # fmt: skip


@writes(AveragePool)
def write_average_pool(op: AveragePool, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    if any(step != 1 for step in op.dilations):
        raise UnsupportedError("an average pool with dilation cannot be quantised")
    rank = len(layer.input(0).shape)
    _spatial(out, x[0], y, rank, op.clamp, "AveragePool", [], kernel_shape=list(op.kernel),
             strides=list(op.strides), pads=list(op.pads), ceil_mode=int(op.ceil),
             count_include_pad=int(op.include_pad))  # fmt: skip


@writes(Binary)
def write_binary(op: Binary, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    if op.function == "squared_difference":
        difference = out.node("Sub", x)
        result = out.node("Mul", [difference, difference])
    elif op.function in BINARY:
        result = out.node(BINARY[op.function], x)
    else:
        raise UnsupportedError(f"the element-wise operator {op.function} cannot be quantised")
    out.clamped(result, op.clamp, y)


@writes(Unary)
def write_unary(op: Unary, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    if op.function == "rsqrt":
        out.node("Reciprocal", [out.node("Sqrt", x)], y)
    elif op.function == "square":
        out.node("Mul", [x[0], x[0]], y)
    elif op.function == "swish" and op.parameters == (1.0,):
        out.node("Mul", [x[0], out.node("Sigmoid", x)], y)
    elif op.function in UNARY:
        name = UNARY[op.function]
        words = [word for word, _ in unary.ONNX_NAMES[name].parameters]
        out.node(name, x, y, **dict(zip(words, op.parameters, strict=True)))
    else:
        raise UnsupportedError(f"the function {op.function} cannot be quantised")


@writes(Clamp)
def write_clamp(op: Clamp, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    out.clamped(x[0], (op.low, op.high), y)


@writes(Power)
def write_power(op: Power, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    out.node("Pow", x, y)


@writes(MatMul)
def write_matmul(op: MatMul, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    out.node("MatMul", x[:2], y)


@writes(Reduce)
def write_reduce(op: Reduce, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    if op.function == "sum":  # its axes became an input earlier than those of the others
        out.node("ReduceSum", [x[0], out.integers(op.axes, "axes")], y, keepdims=1)
    elif op.function in REDUCE:
        out.node(REDUCE[op.function], x, y, axes=list(op.axes), keepdims=1)
    else:
        raise UnsupportedError(f"the reduction {op.function} cannot be quantised")


@writes(Softmax)
def write_softmax(op: Softmax, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    source = x[0]
    if op.beta != 1.0:
        source = out.node("Mul", [source, out.constant(np.asarray(op.beta, np.float32), "beta")])
    out.node("Softmax", [source], y, axis=op.axis)


@writes(Reshape)
def write_reshape(op: Reshape, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    out.node("Reshape", [x[0], out.integers(op.shape, "shape")], y)


@writes(Transpose)
def write_transpose(op: Transpose, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    out.node("Transpose", x, y, perm=list(op.perm))


@writes(Concat)
def write_concat(op: Concat, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    out.node("Concat", x, y, axis=op.axis)


@writes(Pad)
def write_pad(op: Pad, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    value = out.constant(np.asarray(op.value, layer.output.dtype.numpy), "value")
    out.node("Pad", [x[0], out.integers((*op.begins, *op.ends), "pads"), value], y)


@writes(Slice)
def write_slice(op: Slice, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    steps = op.steps or (1,) * len(op.starts)
    ends = []
    for start, extent, step in zip(op.starts, op.extents, steps, strict=True):
        end = start + extent * step  # the first position that is not taken
        ends.append(end if step > 0 or end >= 0 else -(2**62))
    parts = [out.integers(v, word) for v, word in ((op.starts, "starts"), (ends, "ends"))]
    axes = out.integers(range(len(op.starts)), "axes")
    out.node("Slice", [x[0], *parts, axes, out.integers(steps, "steps")], y)


@writes(Gather)
def write_gather(op: Gather, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    out.node("Gather", x, y, axis=op.axis)


@writes(Tile)
def write_tile(op: Tile, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    out.node("Tile", [x[0], out.integers(op.repeats, "repeats")], y)


@writes(Where)
def write_where(op: Where, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    out.node("Where", x, y)


@writes(Cast)
def write_cast(op: Cast, layer: Layer, x: list[str], y: str, out: Writer) -> None:
    out.node("Cast", x, y, to=helper.np_dtype_to_tensor_dtype(op.dtype.numpy))
