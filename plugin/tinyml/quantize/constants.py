# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The constants of an ONNX model, and how many bytes they have in flash."""

from __future__ import annotations

import math

import onnx
from onnx import numpy_helper

from tinyml.quantize.subgraphs import graphs_inside

FOUR_BITS = (onnx.TensorProto.INT4, onnx.TensorProto.UINT4)


def constants(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    return {tensor.name: tensor for tensor in model.graph.initializer}


def float_bytes(model: onnx.ModelProto) -> int:
    """Bytes of all constants."""
    return sum(constant_bytes(t) for graph in graphs_inside(model.graph) for t in graph.initializer)


def constant_bytes(tensor: onnx.TensorProto) -> int:
    """Bytes of a constant in flash; two integers of four bits share one."""
    if tensor.data_type in FOUR_BITS:
        return (math.prod(tensor.dims) + 1) // 2
    return int(numpy_helper.to_array(tensor).nbytes)
