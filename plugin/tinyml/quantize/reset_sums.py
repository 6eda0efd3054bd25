# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the reset gate of a GRU multiplies, if that is a sum and not the state: int8 layers limit it.

It has three integer bits, as gates have. But a gate at 8 is closed or open, while this is a term of another
sum, and what is cut off would be missing there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tinyml.ir import Array
from tinyml.quantize.calibrate import Ranges

LIMIT = 8.0


def with_reset_sums(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model for calibration that computes them too, from the states of all steps."""
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    graph = watched.graph
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in _layers(model):
        if node.input[2] not in constants:
            continue
        matrix = numpy_helper.to_array(constants[node.input[2]])
        hidden = matrix.shape[2]
        bias: Array = np.zeros((len(matrix), 1, hidden), np.float32)
        if len(node.input) > 3 and node.input[3] in constants:
            bias = numpy_helper.to_array(constants[node.input[3]])[:, np.newaxis, 5 * hidden :]
        name = _sums(node)
        rows = matrix[:, 2 * hidden :].transpose(0, 2, 1)
        graph.initializer.extend(
            [numpy_helper.from_array(rows, f"{name}/rows"), numpy_helper.from_array(bias, f"{name}/bias")]
        )
        graph.node.extend(
            [
                helper.make_node("MatMul", [node.output[0], f"{name}/rows"], [f"{name}/products"]),
                helper.make_node("Add", [f"{name}/products", f"{name}/bias"], [name]),
            ]
        )
    return watched


def large_reset_sums(model: onnx.ModelProto, ranges: Ranges) -> list[str]:
    """Layers in which int8 would cut them off."""
    reach = {node.name: max(map(abs, ranges.get(_sums(node), (0.0, 0.0)))) for node in _layers(model)}
    return [name for name, most in reach.items() if most > LIMIT]


def _layers(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    for node in model.graph.node:
        before = next((a.i for a in node.attribute if a.name == "linear_before_reset"), 0)
        if node.op_type == "GRU" and before:
            yield node


def _sums(node: onnx.NodeProto) -> str:
    return f"{node.name}/reset sums"
