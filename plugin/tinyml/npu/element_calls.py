# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Element-wise layers, reductions, and layers that move elements, as TFLite operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tinyml.importers.tflite_file import parse
from tinyml.importers.tflite_graph import read_parsed
from tinyml.ir import Layer, Op, Tensor
from tinyml.npu.layer_calls import UNLIMITED, Own, Writer, activation, quantized, require
from tinyml.npu.tflite_writer import Call, Part, Value, write
from tinyml.ops.concat import Concat
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.clamp import TFLITE_LIMITS, Clamp
from tinyml.ops.elementwise.lookup import Lookup
from tinyml.ops.pad import Pad
from tinyml.ops.quantization.requantize import Requantize
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.reshape import Reshape
from tinyml.ops.resize.bilinear import ResizeBilinear
from tinyml.ops.resize.tflite import ResizePixels
from tinyml.ops.slice import Slice
from tinyml.ops.softmax.softmax import Softmax
from tinyml.ops.transpose import Transpose

BINARIES = {"add": ("ADD", "AddOptions"), "sub": ("SUB", "SubOptions"), "mul": ("MUL", "MulOptions")}
EXTREMES = {"max": "MAXIMUM", "min": "MINIMUM"}
FUNCTIONS = {
    "sigmoid": ("LOGISTIC", ""),
    "tanh": ("TANH", ""),
    "hard_swish": ("HARD_SWISH", "HardSwishOptions"),
    "abs": ("ABS", "AbsOptions"),
    "exp": ("EXP", "ExpOptions"),
    "log": ("LOG", ""),
    "rsqrt": ("RSQRT", ""),
}


def _binary(layer: Layer[Binary], own: Own) -> Iterator[Call]:
    a, b, y, function = layer.input(0), layer.input(1), layer.output, layer.op.function
    require(quantized(a, b, y))
    if function in EXTREMES:
        require(a.quant == b.quant == y.quant, layer.op.clamp == UNLIMITED)
        yield Call(EXTREMES[function], [a.name, b.name], [y.name], "MaximumMinimumOptions")
        return
    if function == "prelu":
        require(b.is_constant, layer.op.clamp == UNLIMITED)
        yield Call("PRELU", [a.name, b.name], [y.name])
        return
    require(function in BINARIES)
    kind, table = BINARIES[function]
    fields = {"FusedActivationFunction": activation(layer.op.clamp)}
    if function != "mul":
        fields["PotScaleInt16"] = False
    yield Call(kind, [a.name, b.name], [y.name], table, fields)


def _clamp(layer: Layer[Clamp], own: Own) -> Iterator[Call]:
    x, y = layer.input(0), layer.output
    kinds = [kind for kind, limits in TFLITE_LIMITS.items() if limits == (layer.op.low, layer.op.high)]
    require(x.quant == y.quant, bool(kinds))
    yield Call(kinds[0], [x.name], [y.name])


def _lookup(layer: Layer[Lookup], own: Own) -> Iterator[Call]:
    """The function that has this table in TFLite; ONNX's may differ from it by one step."""
    found = [(_distance(layer, call), call) for call in _candidates(layer)]
    steps, call = min(found, key=lambda one: one[0], default=(2, None))
    require(call is not None, steps <= 1)
    assert call is not None
    own.exact = steps == 0
    yield call


def _candidates(layer: Layer[Lookup]) -> Iterator[Call]:
    names = [layer.input(0).name], [layer.output.name]
    function = layer.op.function
    if function in FUNCTIONS:
        kind, table = FUNCTIONS[function]
        yield Call(kind, *names, table)
    elif function == "clamp":
        for kind in TFLITE_LIMITS:
            yield Call(kind, *names)
    elif function == "leaky_relu":
        slope = _slope(layer)
        for alpha in dict.fromkeys((*(round(slope, digits) for digits in range(1, 6)), slope)):
            yield Call("LEAKY_RELU", *names, "LeakyReluOptions", {"Alpha": alpha})


def _slope(layer: Layer[Lookup]) -> float:
    """That of the negative inputs, as well as the table shows it."""
    x, y = layer.input(0).quant, layer.output.quant
    assert x is not None
    assert y is not None
    low, high = layer.input(0).dtype.limits
    reals = (np.arange(low, high + 1) - x.zero_point) * x.scale
    found = np.asarray(layer.op.table) + layer.output.dtype.limits[0]
    values = (found - y.zero_point) * y.scale
    used = (reals < 0) & (found > layer.output.dtype.limits[0])
    return float((reals[used] * values[used]).sum() / (reals[used] ** 2).sum()) if used.any() else 0.0


def _distance(layer: Layer[Lookup], call: Call) -> int:
    """By how many steps a table differs from the one that the TFLite reader makes of an operator."""
    values = [_plain(layer.input(0)), _plain(layer.output)]
    content = write(Part(values, [call], call.inputs, call.outputs))
    graph = read_parsed(Path("part"), parse(Path("part"), content), {})
    (node,) = graph.nodes
    assert isinstance(node.op, Lookup)
    return int(np.abs(np.subtract(node.op.table, layer.op.table)).max())


def _plain(tensor: Tensor) -> Value:
    return Value(tensor.name, tensor.shape, tensor.dtype.value, tensor.quant)


def _softmax(layer: Layer[Softmax], own: Own) -> Iterator[Call]:
    x, y = layer.input(0), layer.output
    require(layer.op.axis in (-1, len(x.shape) - 1))
    yield Call("SOFTMAX", [x.name], [y.name], "SoftmaxOptions", {"Beta": layer.op.beta})


def _mean(layer: Layer[Reduce], own: Own) -> Iterator[Call]:
    require(layer.op.function == "mean")
    axes = own.constant("axes", np.array(layer.op.axes, np.int32))
    yield Call("MEAN", [layer.input(0).name, axes], [layer.output.name], "ReducerOptions", {"KeepDims": True})


def _requantize(layer: Layer[Requantize], own: Own) -> Iterator[Call]:
    yield Call("QUANTIZE", [layer.input(0).name], [layer.output.name], "QuantizeOptions")


def _reshape(layer: Layer[Reshape], own: Own) -> Iterator[Call]:
    shape = own.constant("shape", np.array(layer.output.shape, np.int32))
    yield Call("RESHAPE", [layer.input(0).name, shape], [layer.output.name], "ReshapeOptions")


def _transpose(layer: Layer[Transpose], own: Own) -> Iterator[Call]:
    order = own.constant("order", np.array(layer.op.perm, np.int32))
    yield Call("TRANSPOSE", [layer.input(0).name, order], [layer.output.name], "TransposeOptions")


def _concat(layer: Layer[Concat], own: Own) -> Iterator[Call]:
    require(
        quantized(*layer.inputs), all(x is not None and x.quant == layer.output.quant for x in layer.inputs)
    )
    names = [x.name for x in layer.inputs if x is not None]
    fields = {"Axis": layer.op.axis, "FusedActivationFunction": 0}
    yield Call("CONCATENATION", names, [layer.output.name], "ConcatenationOptions", fields)


def _slice(layer: Layer[Slice], own: Own) -> Iterator[Call]:
    op, x, y = layer.op, layer.input(0), layer.output
    require(all(step > 0 for step in op.steps))
    places = zip(x.shape, op.starts, op.extents, op.steps, strict=True)
    ends = [min(start + extent * step, size) for size, start, extent, step in places]
    named = {"begin": op.starts, "end": ends, "strides": op.steps}
    constants = [own.constant(what, np.array(values, np.int32)) for what, values in named.items()]
    yield Call("STRIDED_SLICE", [x.name, *constants], [y.name], "StridedSliceOptions")


def _pad(layer: Layer[Pad], own: Own) -> Iterator[Call]:
    op, x, y = layer.op, layer.input(0), layer.output
    pads = own.constant("pads", np.array([*zip(op.begins, op.ends, strict=True)], np.int32))
    if x.quant is not None and op.stored_value(y) == x.quant.zero_point:
        yield Call("PAD", [x.name, pads], [y.name], "PadOptions")
        return
    value = own.constant("value", np.array([op.stored_value(y)], y.dtype.numpy), y.quant)
    yield Call("PADV2", [x.name, pads, value], [y.name], "PadV2Options")


def _resize(layer: Layer[Any], own: Own) -> Iterator[Call]:
    op = layer.op
    kind, table = "RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"
    if isinstance(op, ResizeBilinear):
        require(not op.unsigned)
        kind, table = "RESIZE_BILINEAR", "ResizeBilinearOptions"
    size = own.constant("size", np.array([op.height, op.width], np.int32))
    fields = {"AlignCorners": op.grid.align_corners, "HalfPixelCenters": op.grid.half_pixel_centers}
    yield Call(kind, [layer.input(0).name, size], [layer.output.name], table, fields)


def _unchanged(writer: Writer) -> Writer:
    """For layers whose output has the quantisation of the input."""

    def check(layer: Layer[Any], own: Own) -> Iterator[Call]:
        require(layer.input(0).quant == layer.output.quant)
        yield from writer(layer, own)

    return check


_MOVING: Mapping[type[Op], Writer] = {
    Reshape: _reshape,
    Transpose: _transpose,
    Slice: _slice,
    Pad: _pad,
    ResizePixels: _resize,
    ResizeBilinear: _resize,
}
WRITERS: Mapping[type[Op], Writer] = {
    Binary: _binary,
    Clamp: _clamp,
    Lookup: _lookup,
    Softmax: _softmax,
    Reduce: _mean,
    Requantize: _requantize,
    Concat: _concat,
    **{kind: _unchanged(writer) for kind, writer in _MOVING.items()},
}
