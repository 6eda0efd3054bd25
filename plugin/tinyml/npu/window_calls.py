# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions, dense layers and pools as TFLite operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tinyml.ir import DType, Layer, Op
from tinyml.npu.layer_calls import SAME, UNLIMITED, VALID, Own, Writer, activation, require
from tinyml.npu.tflite_writer import Call
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.ops.shared.window import tflite_pads


def _convolution(layer: Layer[Convolution], own: Own) -> Iterator[Call]:
    op, x, w, y = layer.op, layer.input(0), layer.input(1), layer.output
    depthwise = isinstance(op, DepthwiseConv)
    require(depthwise or op.groups == 1, len(op.strides) == 2)  # type: ignore[attr-defined]
    source, constants = x.name, _weights(layer, own, 3 if depthwise else 0)
    padding = VALID
    if any(op.pads):
        same = tflite_pads(True, (x.shape[1], x.shape[2]), (w.shape[1], w.shape[2]), op.strides, op.dilations)
        padding = SAME if op.pads == same else VALID
        if padding == VALID:
            border = _border(layer, own)
            source = border.outputs[0]
            yield border
    fields = {"Padding": padding, "StrideH": op.strides[0], "StrideW": op.strides[1]}
    fields |= {"DilationHFactor": op.dilations[0], "DilationWFactor": op.dilations[1]}
    fields["FusedActivationFunction"] = activation(op.clamp)
    if depthwise:
        fields["DepthMultiplier"] = y.shape[-1] // x.shape[-1]
    kind, table = ("DEPTHWISE_CONV_2D", "Depthwise") if depthwise else ("CONV_2D", "")
    yield Call(kind, [source, *constants], [y.name], f"{table}Conv2DOptions", fields)


def _border(layer: Layer[Convolution], own: Own) -> Call:
    """PAD, with the zero of the input: neither SAME nor VALID is this padding."""
    x, (top, left, bottom, right) = layer.input(0), layer.op.pads
    pads = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
    shape = tuple(n + int(a + b) for n, (a, b) in zip(x.shape, pads, strict=True))
    return Call("PAD", [x.name, own.constant("pads", pads)], [own.computed("padded", shape, x)], "PadOptions")


def _transposed(layer: Layer[ConvTranspose], own: Own) -> Iterator[Call]:
    op, x, w, y = layer.op, layer.input(0), layer.input(1), layer.output
    require(op.groups == 1, len(op.strides) == 2, op.dilations == (1, 1), op.clamp == UNLIMITED)
    sizes = [*zip(x.shape[1:3], op.strides, w.shape[1:3], op.outputs, strict=True)]
    before = tuple(max(0, (i - 1) * s + k - o) // 2 for i, s, k, o in sizes)
    if all(o == i * s for i, s, _, o in sizes) and op.pads == before:
        padding = SAME
    else:
        require(op.pads == (0, 0), all(o == (i - 1) * s + max(k, s) for i, s, k, o in sizes))
        padding = VALID
    weights, bias = _weights(layer, own, 0)
    shape = own.constant("shape", np.array(y.shape, np.int32))
    fields = {"Padding": padding, "StrideH": op.strides[0], "StrideW": op.strides[1]}
    yield Call("TRANSPOSE_CONV", [shape, weights, x.name, bias], [y.name], "TransposeConvOptions", fields)


def _dense(layer: Layer[Dense], own: Own) -> Iterator[Call]:
    operands = [layer.input(0).name, *_weights(layer, own, 0)]
    fields = {
        "FusedActivationFunction": activation(layer.op.clamp),
        "KeepNumDims": len(layer.output.shape) != 2,
    }
    yield Call("FULLY_CONNECTED", operands, [layer.output.name], "FullyConnectedOptions", fields)


def _weights(layer: Layer[Any], own: Own, axis: int) -> list[str]:
    """Names of weights and bias; a missing bias is zero, because Vela requires one with a type."""
    w, bias = layer.input(1), layer.inputs[2] if layer.has_input(2) else None
    quant = w.quant
    require(w.is_constant, w.dtype is DType.INT8, quant is not None)
    assert quant is not None
    require(not any(quant.zero_points), quant.axis in (None, axis))
    sums = DType.INT32 if layer.input(0).dtype is DType.INT8 else DType.INT64
    values = np.zeros(layer.output.shape[-1], sums.numpy)
    if bias is not None:
        require(bias.is_constant, bias.dtype in (DType.INT32, sums))
        values = bias.value.astype(sums.numpy)
    return [w.name, own.constant("bias", values, bias.quant if bias else None)]


def _pool(layer: Layer[Any], own: Own) -> Iterator[Call]:
    op, x, y = layer.op, layer.input(0), layer.output
    average = isinstance(op, AveragePool)
    require(len(op.kernel) == 2, op.dilations == (1, 1), len(layer.outputs) == 1, x.quant == y.quant)
    require(not (average and op.include_pad and any(op.pads)))
    fitting = [padding for padding in (VALID, SAME) if _pads_as(padding, layer)]
    require(bool(fitting))
    fields = {"Padding": fitting[0], "StrideH": op.strides[0], "StrideW": op.strides[1]}
    fields |= {"FilterHeight": op.kernel[0], "FilterWidth": op.kernel[1]}
    fields["FusedActivationFunction"] = activation(op.clamp)
    kind = "AVERAGE_POOL_2D" if average else "MAX_POOL_2D"
    yield Call(kind, [x.name], [y.name], "Pool2DOptions", fields)


def _pads_as(padding: int, layer: Layer[Any]) -> bool:
    """Whether a pool has the borders and the output that TFLite's padding gives."""
    op, x, y = layer.op, layer.input(0), layer.output
    pads = tflite_pads(padding == SAME, (x.shape[1], x.shape[2]), op.kernel, op.strides)
    sizes = [n + pads[i] + pads[i + 2] for i, n in enumerate(x.shape[1:3])]
    found = tuple((n - k) // s + 1 for n, k, s in zip(sizes, op.kernel, op.strides, strict=True))
    return pads == op.pads and found == y.shape[1:3]


WRITERS: Mapping[type[Op], Writer] = {
    Conv: _convolution,
    DepthwiseConv: _convolution,
    ConvTranspose: _transposed,
    Dense: _dense,
    MaxPool: _pool,
    AveragePool: _pool,
}
