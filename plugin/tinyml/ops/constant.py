# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Constant: a value written into the graph itself. Becomes a tensor, never a node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import Tensor
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op

_KINDS = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}


@onnx_op("Constant")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    if "value" in node.attributes:
        return [build.constant(node.attributes["value"], node.output_names[0])]
    for name, kind in _KINDS.items():
        if name in node.attributes:
            return [build.constant(np.asarray(node.attributes[name], kind), node.output_names[0])]
    raise UnsupportedError(
        f"Constant node {node.name!r} holds {', '.join(node.attributes) or 'nothing'}",
        "dense numeric constants are supported, strings and sparse tensors are not",
    )


quantizes("Identity", moves=True, keeps_scale=True)


@onnx_op("Identity")
def read_identity(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [node.input(0)]
