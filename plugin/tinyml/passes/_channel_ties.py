# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which channels have to stay or go together, and which must stay.

A channel of one tensor and a channel of another are tied where an operator carries one into the other. A
convolution or dense layer ties nothing: it can drop an input channel that is constant (its share moves into
the bias) or that it multiplies by zero, and it can drop any output channel.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyml.ir import Array, Graph, Layer, Tensor
from tinyml.ops.weighted.weighted import Weighted
from tinyml.passes._channel_ranges import Ranges, is_channelwise, linear_terms, zero_of


class Ties:
    """Classes of channels, by (tensor, channel), with a mark on those that must stay."""

    def __init__(self, graph: Graph) -> None:
        self.start: dict[str, int] = {}
        total = 0
        for name, tensor in graph.tensors.items():
            if not tensor.is_constant and tensor.shape:
                self.start[name] = total
                total += tensor.shape[-1]
        self.parent = list(range(total))
        self.stays = [False] * total

    def root(self, member: int) -> int:
        while self.parent[member] != member:
            self.parent[member] = self.parent[self.parent[member]]
            member = self.parent[member]
        return member

    def tie(self, a: int, b: int) -> None:
        first, second = self.root(a), self.root(b)
        if first > second:
            first, second = second, first
        if first != second:
            self.parent[second] = first
            self.stays[first] |= self.stays[second]

    def keep(self, member: int) -> None:
        self.stays[self.root(member)] = True

    def keep_all(self, tensor: Tensor | None) -> None:
        if tensor is not None and tensor.name in self.start:
            for channel in range(tensor.shape[-1]):
                self.keep(self.start[tensor.name] + channel)

    def tie_all(self, a: Tensor, b: Tensor, b_first: int = 0) -> None:
        """Channel i of ``a`` with channel i + b_first of ``b``."""
        for channel in range(a.shape[-1]):
            self.tie(self.start[a.name] + channel, self.start[b.name] + b_first + channel)

    def kept_channels(self, tensor: Tensor) -> Array:
        """Numbers of the channels that stay."""
        start = self.start[tensor.name]
        return np.array([c for c in range(tensor.shape[-1]) if self.stays[self.root(start + c)]], np.int64)


def find_ties(graph: Graph, ranges: Mapping[str, Ranges]) -> Ties:
    """All ties of a graph; every tensor keeps at least one channel."""
    ties = Ties(graph)
    outside = {*graph.inputs, *graph.outputs, *graph.kept(), *(state.tensor for state in graph.states)}
    for name in sorted(outside):
        ties.keep_all(graph.tensors[name])
    for layer in graph.layers():
        _tie_layer(ties, layer, ranges)
    for name in ties.start:
        tensor = graph.tensors[name]
        if tensor.shape[-1] and not len(ties.kept_channels(tensor)):
            ties.keep(ties.start[name])
    return ties


def _tie_layer(ties: Ties, layer: Layer, ranges: Mapping[str, Ranges]) -> None:
    variable = [t for t in layer.inputs if t is not None and not t.is_constant]
    odd = any(not t.shape or not t.elements for t in (*variable, layer.output))
    if len(layer.outputs) != 1 or odd or not variable:
        _keep_everything(ties, layer)
    elif isinstance(layer.op, Weighted):
        _tie_linear(ties, layer, layer.op, ranges)
    elif (places := layer.op.carried_channels(layer)) is not None and len(variable) == len(layer.inputs):
        for tensor, channels in zip(variable, places, strict=True):
            for first in channels.reshape(-1, tensor.shape[-1])[:, 0]:
                ties.tie_all(tensor, layer.output, int(first))
    elif is_channelwise(layer):
        for tensor in variable:
            ties.tie_all(tensor, layer.output)
    else:
        _keep_everything(ties, layer)


def _tie_linear(ties: Ties, layer: Layer, op: Weighted, ranges: Mapping[str, Ranges]) -> None:
    x, y = layer.input(0), layer.output
    terms = linear_terms(layer)
    if terms is None or x.is_constant or (x.quant is not None and x.quant.per_channel):
        _keep_everything(ties, layer)
        return
    weights, _ = terms
    if not op.mixes_channels:
        times = y.shape[-1] // x.shape[-1]
        for channel in range(y.shape[-1]):
            ties.tie(ties.start[x.name] + channel // times, ties.start[y.name] + channel)
        return
    unused = ~np.any(weights, axis=tuple(range(weights.ndim - 1)))
    known = ranges[x.name]
    harmless = known.constant if not op.reads_padding else known.constant & (known.low == zero_of(x))
    for needed in np.flatnonzero(~(unused | harmless)):
        ties.keep(ties.start[x.name] + int(needed))


def _keep_everything(ties: Ties, layer: Layer) -> None:
    for tensor in (*layer.inputs, *layer.outputs):
        ties.keep_all(tensor)
