# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN: weights as int8 with one scale per row, activations in float.

This takes a quarter of the flash. Rounding errors of the state would accumulate from step to step, while
the matrices are rounded once. Rows of both directions share a scale, since ONNX supports one scale axis.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tinyml.ir import Array
from tinyml.ops.framework.quantization_facts import quantizing

LARGEST = 127
ROWS = 1
"""The axis of the rows in (directions, rows, columns)."""


def shrink_weights(model: onnx.ModelProto, names: Collection[str]) -> None:
    """Replace the matrices of these nodes, which are constants, by int8 and a DequantizeLinear each."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    done: set[str] = set()
    for node in [n for n in model.graph.node if n.name in names]:
        for place in quantizing(node.op_type).matrices:
            name = node.input[place]
            if name not in done:
                _add(model, node, name, numpy_helper.to_array(constants[name]))
                done.add(name)
            node.input[place] = f"{name}/real"
    still_read = {name for node in model.graph.node for name in node.input}
    for name in done - still_read:
        model.graph.initializer.remove(constants[name])


def _add(model: onnx.ModelProto, before: onnx.NodeProto, name: str, values: Array) -> None:
    """Constants ``name/int8`` and ``name/scales``, and the node that makes ``name/real`` of them."""
    largest = np.abs(values).max(axis=(0, 2))
    scales = np.where(largest > 0, largest / LARGEST, 1).astype(np.float32)
    stored = np.clip(np.rint(values / scales[:, np.newaxis]), -LARGEST, LARGEST).astype(np.int8)
    parts: dict[str, Array] = {f"{name}/int8": stored, f"{name}/scales": scales}
    model.graph.initializer.extend(numpy_helper.from_array(array, part) for part, array in parts.items())
    node = helper.make_node("DequantizeLinear", [*parts], [f"{name}/real"], f"{name}/real", axis=ROWS)
    model.graph.node.insert(list(model.graph.node).index(before), node)
