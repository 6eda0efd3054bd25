# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Outputs whose int8 steps are too coarse stay real: the layer before them adds up integers and scales them.

int8 must represent zero, so scores of 1000 and a little share a few steps. A convolution or a dense layer
can give its sums as they are: nothing is rounded, and nothing but the last conversion is in float.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import onnx

from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize.subgraphs import drop_unread

COARSE = 30.0
"""Decibels below which an output may gain from its sums."""

GAIN = 3.0
"""Decibels that an output must gain: half a bit."""

SUMS = ("Conv", "Gemm", "MatMul")
"""Operators whose integer sums can become real numbers."""


def worth_opening(before: Mapping[str, float], after: Mapping[str, float]) -> frozenset[str]:
    """The outputs that gain enough, of their signal-to-noise ratios."""
    return frozenset(name for name, decibels in before.items() if after[name] >= decibels + GAIN)


def open_outputs(model: onnx.ModelProto, names: Collection[str]) -> None:
    """Remove the pairs of QuantizeLinear and DequantizeLinear between the last layer and these outputs."""
    for name in names:
        _open(model.graph, name)
    drop_unread(model.graph)


def _open(graph: onnx.GraphProto, output: str) -> None:
    producers = {name: node for node in graph.node for name in node.output}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    outputs = {value.name for value in graph.output}
    pairs: list[tuple[onnx.NodeProto, onnx.NodeProto]] = []
    name = output
    while True:
        after = producers.get(name)
        if after is None or len(readers.get(name, ())) > (0 if name == output else 1):
            return
        if after.op_type == "DequantizeLinear":
            before = producers.get(after.input[0])
            if before is None or before.op_type != "QuantizeLinear" or len(readers[after.input[0]]) > 1:
                return
            pairs.append((before, after))
            name = before.input[0]
            if name in outputs:
                return
        elif after.op_type in SUMS and pairs:
            break
        elif quantizing(after.op_type).moves or quantizing(after.op_type).limits:
            name = after.input[0]
        else:
            return
    for before, after in pairs:
        graph.node.remove(before)
        graph.node.remove(after)
        for node in graph.node:
            if after.output[0] == output:  # the output keeps its name
                node.output[:] = [output if n == before.input[0] else n for n in node.output]
            node.input[:] = [before.input[0] if n == after.output[0] else n for n in node.input]
