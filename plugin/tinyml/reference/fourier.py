# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""STFT and DFT in float64: in float32 onnxruntime loses four digits where the length is no power of two."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from tinyml.reference.rewriting import Rewriting

SIGNALS = {"STFT": (0, 2), "DFT": (0,)}
"""Which operands are floats: the signal, and the window."""


def rewrite(node: onnx.NodeProto, graph: Rewriting) -> bool:
    if node.op_type not in SIGNALS or graph.type_of(node.input[0]) == TensorProto.DOUBLE:
        return False
    for index in SIGNALS[node.op_type]:
        if index < len(node.input) and node.input[index]:
            node.input[index] = graph.cast(node.input[index], TensorProto.DOUBLE)
    result = node.output[0]
    node.output[0] = f"{result}/float64"
    graph.nodes.append(node)
    graph.cast(node.output[0], TensorProto.FLOAT, result)
    return True
