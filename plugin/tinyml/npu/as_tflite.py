# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A graph that came from another format as a TFLite file, for Vela.

Layers that TFLite can express exactly, up to the rounding, become its operators. All others become custom
operators, which stay on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyml.ir import DType, Graph, Layer, Op, Tensor
from tinyml.npu.tflite_writer import Call, Part, Value, write
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.window import tflite_pads

SAME, VALID = 0, 1
ACTIVATIONS = {(-math.inf, math.inf): 0, (0.0, math.inf): 1, (0.0, 6.0): 3}
BINARIES = {"add": ("ADD", "AddOptions"), "sub": ("SUB", "SubOptions"), "mul": ("MUL", "MulOptions")}


class NotWritable(Exception):
    """TFLite has no operator for the layer."""


@dataclass(frozen=True)
class Written:
    """The file, the operators of each node, and the tensors of the graph by their number in the file."""

    content: bytes
    operators: tuple[tuple[int, ...], ...]
    tensors: Mapping[int, str]


def written(graph: Graph) -> Written:
    """The graph without its states, each of which is one more input."""
    values: dict[str, Value] = {}
    calls: list[Call] = []
    operators: list[tuple[int, ...]] = []
    for layer in graph.layers():
        own: list[Value] = []
        try:
            made = list(_calls(layer, own))
        except NotWritable:
            made = [Call("CUSTOM", _names(layer), [t.name for t in layer.outputs], custom=layer.op.kind)]
        operators.append(tuple(range(len(calls), len(calls) + len(made))))
        calls += made
        values |= {value.name: value for value in own}
    used = dict.fromkeys(name for call in calls for name in (*call.inputs, *call.outputs) if name)
    listed = [values.get(name) or _value(graph.tensors[name]) for name in used]
    inputs = [*graph.inputs, *(state.tensor for state in graph.states)]
    outputs = [name for name in used if name in graph.kept()]
    part = Part(listed, calls, [name for name in inputs if name in used], outputs)
    known = {i: value.name for i, value in enumerate(listed) if value.name in graph.tensors}
    return Written(write(part), tuple(operators), known)


def _calls(layer: Layer[Any], own: list[Value]) -> Iterator[Call]:
    """The operators of a layer; ``own`` gets the tensors that the graph does not have."""
    writer = WRITERS.get(type(layer.op))
    tensors = [t for t in (layer.inputs[0], *layer.outputs) if t is not None]
    if writer is None or any(t.dtype is not DType.INT8 or t.quant is None for t in tensors):
        raise NotWritable
    yield from writer(layer, own)


def _convolution(layer: Layer[Convolution], own: list[Value]) -> Iterator[Call]:
    op, x, w, y = layer.op, layer.input(0), layer.input(1), layer.output
    depthwise = isinstance(op, DepthwiseConv)
    if isinstance(op, Conv) and op.groups != 1:
        raise NotWritable
    operands = [x.name, *_weights(layer, own, 3 if depthwise else 0)]
    kernel = (w.shape[1], w.shape[2])
    padding = VALID
    if any(op.pads):
        same = tflite_pads(True, (x.shape[1], x.shape[2]), kernel, op.strides, op.dilations)
        padding = SAME if op.pads == same else VALID
        if padding == VALID:
            yield _border(layer, own)
            operands[0] = own[-1].name
    fields = {"Padding": padding, "StrideH": op.strides[0], "StrideW": op.strides[1]}
    fields |= {"DilationHFactor": op.dilations[0], "DilationWFactor": op.dilations[1]}
    fields["FusedActivationFunction"] = _activation(op.clamp)
    if depthwise:
        fields["DepthMultiplier"] = y.shape[-1] // x.shape[-1]
    kind, table = ("DEPTHWISE_CONV_2D", "Depthwise") if depthwise else ("CONV_2D", "")
    yield Call(kind, operands, [y.name], f"{table}Conv2DOptions", fields)


def _border(layer: Layer[Convolution], own: list[Value]) -> Call:
    """PAD, with the zero of the input: neither SAME nor VALID is this padding."""
    x, (top, left, bottom, right) = layer.input(0), layer.op.pads
    pads = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
    shape = tuple(n + int(a + b) for n, (a, b) in zip(x.shape, pads, strict=True))
    own.append(Value.constant(f"{layer.output.name}/pads", pads))
    own.append(Value(f"{layer.output.name}/padded", shape, "int8", x.quant))
    return Call("PAD", [x.name, own[-2].name], [own[-1].name], "PadOptions")


def _dense(layer: Layer[Dense], own: list[Value]) -> Iterator[Call]:
    if len(layer.input(0).shape) != 2:
        raise NotWritable
    operands = [layer.input(0).name, *_weights(layer, own, 0)]
    fields = {"FusedActivationFunction": _activation(layer.op.clamp)}
    yield Call("FULLY_CONNECTED", operands, [layer.output.name], "FullyConnectedOptions", fields)


def _weights(layer: Layer[Any], own: list[Value], axis: int) -> list[str]:
    """Names of weights and bias; a missing bias is zero, because Vela requires one with a type."""
    w, bias = layer.input(1), layer.inputs[2] if layer.has_input(2) else None
    quant = w.quant
    if not w.is_constant or w.dtype is not DType.INT8 or quant is None or any(quant.zero_points):
        raise NotWritable
    if quant.axis not in (None, axis) or (bias is not None and not bias.is_constant):
        raise NotWritable
    if bias is not None and bias.dtype is not DType.INT32:
        raise NotWritable
    zeros = np.zeros(layer.output.shape[-1], np.int32)
    name = f"{layer.output.name}/bias"
    own.append(Value.constant(name, zeros if bias is None else bias.value, bias.quant if bias else None))
    return [w.name, name]


def _pool(layer: Layer[Any], own: list[Value]) -> Iterator[Call]:
    op, x, y = layer.op, layer.input(0), layer.output
    average = isinstance(op, AveragePool)
    plain = len(op.kernel) == 2 and op.dilations == (1, 1) and len(layer.outputs) == 1
    if not plain or x.quant != y.quant or (average and op.include_pad and any(op.pads)):
        raise NotWritable
    for padding in (VALID, SAME):
        pads = tflite_pads(padding == SAME, (x.shape[1], x.shape[2]), op.kernel, op.strides)
        sizes = [n + pads[i] + pads[i + 2] for i, n in enumerate(x.shape[1:3])]
        found = tuple((n - k) // s + 1 for n, k, s in zip(sizes, op.kernel, op.strides, strict=True))
        if pads == op.pads and found == y.shape[1:3]:
            break
    else:
        raise NotWritable
    fields = {"Padding": padding, "StrideH": op.strides[0], "StrideW": op.strides[1]}
    fields |= {"FilterHeight": op.kernel[0], "FilterWidth": op.kernel[1]}
    fields["FusedActivationFunction"] = _activation(op.clamp)
    kind = "AVERAGE_POOL_2D" if average else "MAX_POOL_2D"
    yield Call(kind, [x.name], [y.name], "Pool2DOptions", fields)


def _binary(layer: Layer[Binary], own: list[Value]) -> Iterator[Call]:
    both = [layer.input(0), layer.input(1)]
    if layer.op.function not in BINARIES or any(t.dtype is not DType.INT8 or t.quant is None for t in both):
        raise NotWritable
    kind, table = BINARIES[layer.op.function]
    fields = {"FusedActivationFunction": _activation(layer.op.clamp)}
    yield Call(kind, [t.name for t in both], [layer.output.name], table, fields)


def _reshape(layer: Layer[Reshape], own: list[Value]) -> Iterator[Call]:
    if layer.input(0).quant != layer.output.quant:
        raise NotWritable
    own.append(Value.constant(f"{layer.output.name}/shape", np.array(layer.output.shape, np.int32)))
    yield Call("RESHAPE", [layer.input(0).name, own[-1].name], [layer.output.name], "ReshapeOptions")


WRITERS: Mapping[type[Op], Callable[[Layer[Any], list[Value]], Iterator[Call]]] = {
    Conv: _convolution,
    DepthwiseConv: _convolution,
    Dense: _dense,
    MaxPool: _pool,
    AveragePool: _pool,
    Binary: _binary,
    Reshape: _reshape,
}


def _activation(clamp: tuple[float, float]) -> int:
    if clamp not in ACTIVATIONS:
        raise NotWritable
    return ACTIVATIONS[clamp]


def _names(layer: Layer) -> list[str]:
    return [t.name for t in layer.inputs if t is not None]


def _value(tensor: Tensor) -> Value:
    """Custom operators may have any type; where the file has none for it, it does not matter."""
    dtype = tensor.dtype.value if tensor.dtype.value in ("int8", "uint8", "int16", "int32") else "float32"
    if tensor.is_constant and dtype == tensor.dtype.value:
        return Value(tensor.name, tensor.shape, dtype, tensor.quant, tensor.value)
    return Value(tensor.name, tensor.shape, dtype, tensor.quant if dtype != "float32" else None)
