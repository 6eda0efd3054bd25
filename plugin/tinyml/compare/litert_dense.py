# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""LiteRT's dense layers multiply by a double and round once: the same graph in that arithmetic.

Ours multiply by a fixed-point number and round twice, as TensorFlow Lite Micro and CMSIS-NN do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Graph, Layer, Op, given
from tinyml.ops.dense.dense import Dense
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.shared.quant import centred, clamp_range, quant_of


@dataclass(frozen=True, kw_only=True)
class DenseOfLiteRt(Dense):
    """The sums times a double, halves away from zero."""

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        sums = self.accumulate(centred(layer, inputs, 0), centred(layer, inputs, 1, channel_axis=0))
        if layer.has_input(2):
            sums = sums + given(inputs, 2)
        x, w, y = (quant_of(tensor) for tensor in (layer.input(0), layer.input(1), layer.output))
        scaled = sums * (x.scale * np.asarray(w.scales, np.float64) / y.scale)
        steps = fp.round_half_away(scaled).astype(np.int64) + y.zero_point
        return (np.clip(steps, *clamp_range(self.clamp, layer.output)).astype(layer.output.dtype.numpy),)


def with_their_dense_layers(graph: Graph) -> Graph:
    """The graph as LiteRT computes it; the very same one if it has no quantised dense layer."""
    nodes = tuple(replace(node, op=_their_op(node.op, graph.layer(node))) for node in graph.nodes)
    changed = any(new.op is not old.op for new, old in zip(nodes, graph.nodes, strict=True))
    return replace(graph, nodes=nodes) if changed else graph


def _their_op(op: Op, layer: Layer) -> Op:
    if type(op) is not Dense or layer.input(0).quant is None:
        return op
    return DenseOfLiteRt(**{field.name: getattr(op, field.name) for field in fields(op)})
