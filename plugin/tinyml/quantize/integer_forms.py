# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Finds nodes of a quantised model that the compiler would still compute in float."""

from __future__ import annotations

import onnx

from tinyml.importers import onnx_graph
from tinyml.ir import Graph
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.passes import PASSES


def optimized(model: onnx.ModelProto) -> Graph:
    """The graph that the compiler makes of a model."""
    graph = onnx_graph.read(model, "probe", {})
    for step in PASSES:
        graph = step(graph)
    return graph


def float_nodes(model: onnx.ModelProto) -> set[str]:
    """Names of nodes that gain nothing from int8: they would only lose precision."""
    found = set()
    for layer in optimized(model).layers():
        tensors = (*layer.inputs, *layer.outputs)
        if isinstance(layer.op, Quantize | Dequantize):
            continue
        if any(tensor is not None and tensor.dtype.is_float for tensor in tensors):
            found.add(layer.name)
    return found
