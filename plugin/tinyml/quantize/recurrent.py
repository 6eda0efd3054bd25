# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN: weights as int8 with one scale per row; input, steps and states as integers.

The activations of a layer that has no integer form stay float; its weights take a quarter of the flash all
the same. Rows of both directions share a scale, since ONNX supports one scale axis.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tinyml.ir import Array
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize.subgraphs import outside_names

LARGEST = 127
ROWS = 1
"""The axis of the rows in (directions, rows, columns)."""


def drop_unread_states(model: onnx.ModelProto) -> None:
    """Outputs that nothing reads need no scale."""
    read = {name for node in model.graph.node for name in node.input}
    read |= {value.name for value in model.graph.output}
    for node in model.graph.node:
        if quantizing(node.op_type).matrices:
            kept = [name if name in read else "" for name in node.output]
            while kept and not kept[-1]:
                kept.pop()
            node.output[:] = kept


def computed_weights(model: onnx.ModelProto) -> list[str]:
    """Layers whose matrices are not constants."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return [
        node.name
        for node in model.graph.node
        if any(node.input[place] not in constants for place in quantizing(node.op_type).matrices)
    ]


def limited_states(model: onnx.ModelProto) -> list[str]:
    """Activations right after such a layer, which must not become limits of its state."""
    states = {name for node in model.graph.node if quantizing(node.op_type).matrices for name in node.output}
    nodes = [node for node in model.graph.node if quantizing(node.op_type).limits]
    return [node.name for node in nodes if node.input[0] in states]


def register_recurrent() -> None:
    """Tell onnxruntime's quantiser which tensors of these operators are activations."""
    from onnxruntime.quantization.operators.qdq_base_operator import QDQOperatorBase
    from onnxruntime.quantization.registry import QDQRegistry

    class Recurrent(QDQOperatorBase):  # type: ignore[misc]  # the base class is untyped
        def quantize(self) -> None:
            places = quantizing(self.node.op_type).places
            inputs = [self.node.input[i] for i in places if i < len(self.node.input)]
            for name in (*inputs, *self.node.output):
                if name and name not in self.quantizer.initializers:
                    self.quantizer.quantize_activation_tensor(name)

    for op_type in ("RNN", "GRU", "LSTM"):
        QDQRegistry.setdefault(op_type, Recurrent)


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
    still_read = {name for node in model.graph.node for name in (*node.input, *outside_names(node))}
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
