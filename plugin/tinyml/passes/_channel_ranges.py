# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The range of stored values of each channel (slice of the last axis) of each tensor.

Integer arithmetic is exact here: a channel whose smallest value is its largest has that value at every
position, for every input of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Graph, Layer, Shape, Tensor
from tinyml.ops.weighted.weighted import Weighted


@dataclass(frozen=True, eq=False)
class Ranges:
    """Smallest and largest stored value of each channel."""

    low: Array
    high: Array

    @property
    def constant(self) -> Array:
        """Which channels have one value everywhere."""
        return np.asarray((self.low == self.high) & np.isfinite(self.low))


def is_channelwise(layer: Layer) -> bool:
    """Whether channels do not mix, and all tensors have the same channels."""
    if not layer.op.channelwise(layer):
        return False
    y = layer.output
    variable = [t for t in layer.inputs if t is not None and not t.is_constant]
    constant = [t for t in layer.inputs if t is not None and t.is_constant]
    per_tensor = all(t.quant is None or not t.quant.per_channel for t in (*variable, *constant, y))
    return (
        per_tensor
        and all(t.shape and t.shape[-1] == y.shape[-1] for t in variable)
        and all(not t.shape or t.shape[-1] in (1, y.shape[-1]) for t in constant)
    )


def linear_terms(layer: Layer) -> tuple[Array, Array] | None:
    """Weights of a layer without their zero point, and the bias; None if they are unknown, or in groups."""
    op = layer.op
    if not isinstance(op, Weighted) or not op.sums_all_inputs or not layer.input(1).is_constant:
        return None
    bias = layer.input(2) if layer.has_input(2) else None
    if op.real or (bias is not None and not bias.is_constant):
        return None
    w = layer.input(1)
    axis = op.channel_axis
    outputs = w.shape[axis]
    weights = w.value
    if w.quant is not None:
        zero = np.asarray(w.quant.zero_points, np.int64)
        shape = [1] * weights.ndim
        shape[axis] = -1
        weights = weights.astype(np.int64) - zero.reshape(shape)
    else:
        weights = weights.astype(np.float64)
    values = np.zeros(outputs, weights.dtype) if bias is None else bias.value.reshape(-1)
    return (weights, values.astype(weights.dtype)) if values.size == outputs else None


def zero_of(tensor: Tensor) -> int:
    """The stored value that means 0."""
    return 0 if tensor.quant is None else tensor.quant.zero_point


def analyse(graph: Graph) -> dict[str, Ranges]:
    """Ranges of every tensor that has channels and is not a constant."""
    known: dict[str, Ranges] = {}
    for name, tensor in graph.tensors.items():
        if not tensor.is_constant and tensor.shape:
            known[name] = _anything(tensor)
    for layer in graph.layers():
        if len(layer.outputs) == 1 and layer.output.shape:
            found = _ranges(layer, known)
            if found is not None:
                known[layer.output.name] = found
    return known


def _anything(tensor: Tensor) -> Ranges:
    channels = tensor.shape[-1]
    if tensor.dtype is DType.BOOL:
        return Ranges(np.zeros(channels, np.int64), np.ones(channels, np.int64))
    if tensor.dtype.is_float:
        return Ranges(np.full(channels, -np.inf), np.full(channels, np.inf))
    if tensor.dtype.bytes == 8:  # as float, since the limits leave no room to calculate
        return Ranges(np.full(channels, -np.inf), np.full(channels, np.inf))
    low, high = tensor.dtype.limits
    return Ranges(np.full(channels, low, np.int64), np.full(channels, high, np.int64))


def _ranges(layer: Layer, known: Mapping[str, Ranges]) -> Ranges | None:
    if any(t is not None and not t.is_constant and not t.shape for t in layer.inputs):
        return None
    if isinstance(layer.op, Weighted):
        return _linear(layer, layer.op, known)
    places = layer.op.carried_channels(layer)
    if places is not None:
        return _carried(layer, places, known)
    return _channelwise(layer, known) if is_channelwise(layer) else None


def _linear(layer: Layer, op: Weighted, known: Mapping[str, Ranges]) -> Ranges | None:
    """Sums with every term at its smallest and at its largest; padding counts as zero."""
    terms = linear_terms(layer)
    x = layer.input(0)
    if terms is None or x.is_constant or (x.quant is not None and x.quant.per_channel):
        return None
    weights, bias = terms
    low, high = (ends - zero_of(x) for ends in (known[x.name].low, known[x.name].high))
    if op.reads_padding:
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    if not op.mixes_channels:
        times = weights.shape[-1] // low.size
        low, high = np.repeat(low, times), np.repeat(high, times)
    with np.errstate(invalid="ignore"):
        small = np.where(weights == 0, 0, np.where(weights > 0, weights * low, weights * high))
        large = np.where(weights == 0, 0, np.where(weights > 0, weights * high, weights * low))
    axes = tuple(axis for axis in range(weights.ndim) if axis != op.channel_axis)
    least, most = bias + small.sum(axis=axes), bias + large.sum(axis=axes)
    if x.quant is not None and (np.any(least < -(1 << 31)) or np.any(most >= 1 << 31)):
        return None  # the accumulator could wrap
    if layer.output.dtype.is_integer and layer.output.quant is None:
        limits = layer.output.dtype.limits  # plain integers: ConvInteger, MatMulInteger
        if not (np.all(least >= limits[0]) and np.all(most <= limits[1])):
            return None
    ends = [_from_accumulator(layer, op, acc) for acc in (least, most)]
    return Ranges(ends[0], ends[1])


def _from_accumulator(layer: Layer, op: Weighted, acc: Array) -> Array:
    """The outputs for given sums: evaluates the operator with zero weights and the sums as bias."""
    op, x, w = op.at_one_position(), layer.input(0), layer.input(1)
    zero = 0 if w.quant is None else np.asarray(w.quant.zero_points)
    shape: Shape = (*[1] * (len(x.shape) - 1), x.shape[-1])
    w_shape = (w.shape[0], *[1] * (len(w.shape) - 2), w.shape[-1])
    along = [1] * len(w_shape)
    along[op.channel_axis] = -1
    w_zero = np.broadcast_to(np.reshape(zero, along), w_shape)
    kind = layer.input(2).dtype.numpy if layer.has_input(2) else acc.dtype
    bias = Tensor.constant("bias", acc.astype(kind))
    inputs = (
        Tensor(x.name, shape, x.dtype, x.quant),
        Tensor(w.name, w_shape, w.dtype, w.quant),
        bias,
    )
    small = Layer(layer.name, op, inputs, (replace_shape(layer.output, (*shape[:-1], acc.size)),))
    values = [np.full(shape, zero_of(x), x.dtype.numpy), w_zero.astype(w.dtype.numpy), bias.value]
    result = op.evaluate(small, values)[0].reshape(-1)
    return result if result.dtype.kind == "f" else result.astype(np.int64)


def replace_shape(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return Tensor(tensor.name, shape, tensor.dtype, tensor.quant)


def _carried(layer: Layer, places: Sequence[Array], known: Mapping[str, Ranges]) -> Ranges:
    """Each output channel has the range of all input channels that it holds."""
    anything = _anything(layer.output)
    low, high = anything.high.copy(), anything.low.copy()
    for index, channels in enumerate(places):
        tensor = layer.input(index)
        ranges = _of_constant(tensor) if tensor.is_constant else known[tensor.name]
        np.minimum.at(low, channels, np.broadcast_to(ranges.low, channels.shape))
        np.maximum.at(high, channels, np.broadcast_to(ranges.high, channels.shape))
    return Ranges(low, high)


def _of_constant(tensor: Tensor) -> Ranges:
    rows = tensor.value.reshape(-1, tensor.shape[-1])
    rows = rows.astype(np.float64 if tensor.dtype.is_float else np.int64)
    return Ranges(rows.min(axis=0), rows.max(axis=0))


def _channelwise(layer: Layer, known: Mapping[str, Ranges]) -> Ranges | None:
    """For constant input channels, evaluate the operator to get the output at every position."""
    variable = [t for t in layer.inputs if t is not None and not t.is_constant]
    constant = np.logical_and.reduce([known[t.name].constant for t in variable])
    if not variable or not np.any(constant):
        return None
    result = layer.op.evaluate(layer, _filled(layer, known))[0]
    rows = result.reshape(-1, result.shape[-1])
    rows = rows.astype(np.float64 if rows.dtype.kind == "f" else np.int64)
    anything = _anything(layer.output)
    return Ranges(
        np.where(constant, rows.min(axis=0), anything.low),
        np.where(constant, rows.max(axis=0), anything.high),
    )


def _filled(layer: Layer, known: Mapping[str, Ranges]) -> Sequence[Array | None]:
    """The inputs with each channel at its smallest value (0 where there is none)."""
    arrays: list[Array | None] = []
    for tensor in layer.inputs:
        if tensor is None or tensor.is_constant:
            arrays.append(None if tensor is None else tensor.value)
        else:
            low = np.where(np.isfinite(known[tensor.name].low), known[tensor.name].low, 0)
            arrays.append(np.broadcast_to(low, tensor.shape).astype(tensor.dtype.numpy))
    return arrays
