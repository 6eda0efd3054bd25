# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Whole ONNX models in a few lines, as the bytes of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.ir import Array

Shape = Sequence[int | str]


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """Names are separated by spaces; ``_`` is an absent operand."""
    names = ["" if name == "_" else name for name in inputs.split()]
    return helper.make_node(op_type, names, outputs.split(), name=outputs.split()[0], **attributes)


def branch(nodes: Sequence[onnx.NodeProto], outputs: str, **constants: Array) -> onnx.GraphProto:
    """A subgraph; its outputs have no declared type."""
    values = [onnx.ValueInfoProto(name=name) for name in outputs.split()]
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    return helper.make_graph(list(nodes), "branch", [], values, stored)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Shape],
    outputs: str,
    *,
    types: Mapping[str, int] | None = None,
    opset: int = 17,
    domains: Mapping[str, int] | None = None,
    **constants: Array,
) -> bytes:
    """Inputs are float, unless ``types`` says otherwise; outputs have the type that ONNX infers."""
    types = types or {}
    graph = helper.make_graph(
        list(nodes),
        "model",
        [
            helper.make_tensor_value_info(n, types.get(n, TensorProto.FLOAT), list(s))
            for n, s in inputs.items()
        ],
        [helper.make_tensor_value_info(n, types.get(n, TensorProto.FLOAT), None) for n in outputs.split()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    imports = [helper.make_opsetid(*pair) for pair in {"": opset, **(domains or {})}.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()
