# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where a reference computes differently by design, the same graph in its arithmetic: so that nothing else
has to be compared with a tolerance.

LiteRT's dense layers multiply by a double and round once. We multiply by a fixed-point number and round
twice, as earlier releases, TensorFlow Lite Micro and CMSIS-NN do.

onnxruntime computes functions of int16 in float32. Ours are tables of 513 entries and straight lines between
them; ``tests/host/test_quantize_int16.py`` holds each of them against the real function on all 65,536 inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from unittest.mock import patch

import numpy as np

from tests.random_graphs.recipe import Model
from tinyml import fixed_point as fp
from tinyml.ir import Array, Graph, Layer, Op, given
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.shared.quant import centred, clamp_range, quant_of
from tinyml.ops.softmax import int16
from tinyml.pipeline import optimize


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


def in_their_arithmetic(model: Model, graph: Graph) -> Graph:
    """The optimised graph as the reference of ``model`` computes it."""
    if model.is_tflite:
        optimized = optimize(graph)
        nodes = (replace(node, op=_their_op(node.op, optimized.layer(node))) for node in optimized.nodes)
        return replace(optimized, nodes=tuple(nodes))
    with (
        patch.object(Unary, "_on_int16", lambda *_: None),
        patch.object(int16, "has_integer_form", lambda *_: False),
    ):
        return optimize(graph)


def _their_op(op: Op, layer: Layer) -> Op:
    if type(op) is not Dense or layer.input(0).quant is None:
        return op
    return DenseOfLiteRt(**{field.name: getattr(op, field.name) for field in fields(op)})
