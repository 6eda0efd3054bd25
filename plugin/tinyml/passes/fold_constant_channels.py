# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Remove channels that are constant or unused; their contribution moves into a bias.

Pruned models keep filters that are all zero. Their output is the same number at every position, so the next
layer can include it in its bias. Integer models give the same bytes before and after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tinyml.ir import Array, DType, Graph, Layer, Node, Quant, Tensor, TensorType
from tinyml.ops.weighted.weighted import Weighted
from tinyml.passes._channel_ranges import Ranges, analyse, linear_terms, zero_of
from tinyml.passes._channel_ties import find_ties
from tinyml.passes.editor import Editor

ROUNDS = 8  # removing a channel may leave others unused; two rounds are usual

Kept = Mapping[str, Array]
"""Indices of the channels that stay, for tensors that lose some."""


def fold_constant_channels(graph: Graph) -> Graph:
    """Repeat until nothing more can go."""
    for _ in range(ROUNDS):
        ranges = analyse(graph)
        ties = find_ties(graph, ranges)
        kept = {name: ties.kept_channels(graph.tensors[name]) for name in ties.start}
        kept = {
            name: numbers for name, numbers in kept.items() if len(numbers) < graph.tensors[name].shape[-1]
        }
        if not kept:
            break
        graph = _shrink(graph, kept, ranges)
    return graph


def _shrink(graph: Graph, kept: Kept, ranges: Mapping[str, Ranges]) -> Graph:
    edit = Editor(graph)
    for node in list(edit.nodes):
        layer = graph.layer(node)
        if any(t is not None and t.name in kept for t in (*layer.inputs, *layer.outputs)):
            edit.replace(node, [_shrunk(edit, node, layer, kept, ranges)])
    for name, channels in kept.items():
        tensor = graph.tensors[name]
        edit.retype(name, TensorType((*tensor.shape[:-1], len(channels)), tensor.dtype, tensor.quant))
    return edit.graph()


def _shrunk(edit: Editor, node: Node, layer: Layer, kept: Kept, ranges: Mapping[str, Ranges]) -> Node:
    terms = linear_terms(layer)
    if terms is not None and isinstance(layer.op, Weighted):
        bias = _absorbed(layer, layer.op, terms, kept, ranges)
        return _shrunk_linear(edit, node, layer, layer.op, kept, bias)
    op = node.op.with_channels(len(kept[layer.output.name]))
    inputs = list(node.inputs)
    for index, tensor in enumerate(layer.inputs):
        if tensor is not None and tensor.is_constant and tensor.shape[-1:] == layer.output.shape[-1:]:
            part = tensor.value[..., kept[layer.output.name]]
            inputs[index] = edit.constant(f"{tensor.name}/kept", part, tensor.quant).name
    return replace(node, op=op, inputs=tuple(inputs))


def _absorbed(
    layer: Layer, op: Weighted, terms: tuple[Array, Array], kept: Kept, ranges: Mapping[str, Ranges]
) -> Array:
    """The bias, including the contribution of the removed input channels."""
    weights, bias = terms
    x = layer.input(0)
    if x.name not in kept or not op.mixes_channels:
        return bias
    gone = np.setdiff1d(np.arange(x.shape[-1]), kept[x.name])
    values = np.where(np.isfinite(ranges[x.name].low[gone]), ranges[x.name].low[gone] - zero_of(x), 0)
    share: Array = (weights[..., gone] * values).reshape(weights.shape[0], -1).sum(axis=1)
    return bias + share


def _shrunk_linear(edit: Editor, node: Node, layer: Layer, op: Weighted, kept: Kept, bias: Array) -> Node:
    x, w, y = layer.input(0), layer.input(1), layer.output
    outputs = kept.get(y.name, np.arange(y.shape[-1]))
    inputs = kept.get(x.name, np.arange(x.shape[-1]))
    data = np.take(w.value, outputs, op.channel_axis)
    if op.mixes_channels:
        data = data[..., inputs]
    weights = edit.constant(f"{w.name}/kept", data, _part(w.quant, outputs, op.channel_axis))
    names = [x.name, weights.name]
    if layer.has_input(2) or np.any(bias):
        names.append(_bias(edit, layer, bias, outputs).name)
    return replace(node, inputs=tuple(names))


def _bias(edit: Editor, layer: Layer, values: Array, outputs: Sequence[int] | Array) -> Tensor:
    old = layer.input(2) if layer.has_input(2) else None
    if old is not None:
        kind, quant, name = old.dtype, _part(old.quant, outputs, 0), old.name
    else:
        x, w = layer.input(0), layer.input(1)
        kind, quant, name = x.dtype, None, f"{w.name}/bias"
        if x.quant is not None and w.quant is not None:
            kind = DType.INT64 if x.dtype is DType.INT16 else DType.INT32
            scales = np.broadcast_to(x.quant.scale * np.asarray(w.quant.scales), values.shape)
            quant = _part(Quant(tuple(map(float, scales)), (0,) * len(scales), 0), outputs, 0)
    data = values[np.asarray(outputs)].astype(kind.numpy)
    return edit.constant(f"{name}/kept", data, quant)


def _part(quant: Quant | None, channels: Sequence[int] | Array, axis: int) -> Quant | None:
    """The quantisation of a part of the output channels."""
    if quant is None or quant.axis is None:
        return quant
    assert quant.axis == axis, "weights are quantised along their output channels"
    return Quant(
        tuple(quant.scales[c] for c in channels), tuple(quant.zero_points[c] for c in channels), quant.axis
    )
