# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Converts float16 models to float32, which holds every float16 exactly, as the importer does."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper


def widen(graph: onnx.GraphProto) -> None:
    """Change all types and constants of a graph and its subgraphs in place."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT16:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and node.op_type == "Cast" and attribute.i == TensorProto.FLOAT16:
                attribute.i = TensorProto.FLOAT
            if attribute.HasField("t"):
                _widen_tensor(attribute.t)
            if attribute.HasField("g"):
                widen(attribute.g)


def _widen_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT16:
        values = np.asarray(numpy_helper.to_array(tensor)).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
