# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Factors of keys move to their queries.

PyTorch divides the factor of the scores between both. With a cache of bytes, every key would be multiplied
again in every run.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from tinyml.ir import Array
from tinyml.quantize.subgraphs import drop_unread

MOVES = ("Expand", "Reshape", "Transpose", "Unsqueeze")
"""What may be between a factor and the product."""


def move_key_factors(model: onnx.ModelProto) -> None:
    """(queries · a) x (keys · b) is (queries · ab) x keys, for constant numbers a and b."""
    graph = model.graph
    if any(attribute.HasField("g") for node in graph.node for attribute in node.attribute):
        return  # branches read tensors from outside, too
    file = _File(graph)
    for node in [node for node in graph.node if node.op_type == "MatMul"]:
        _move(file, node)
    drop_unread(model.graph)


class _File:
    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.makers = {name: node for node in graph.node for name in node.output}
        self.kept = {value.name for value in graph.output}
        self.readers: dict[str, int] = {}
        for node in graph.node:
            for name in node.input:
                self.readers[name] = self.readers.get(name, 0) + 1

    def factor(self, name: str) -> tuple[onnx.NodeProto, int] | None:
        """The multiplication by a number whose result only a product reads, and the place of the number."""
        node = self.makers.get(name)
        while node is not None and self.readers[name] == 1 and name not in self.kept:
            if node.op_type == "Mul":
                found = [i for i in (0, 1) if self.number(node.input[i]) is not None]
                return (node, found[0]) if len(found) == 1 else None
            if node.op_type not in MOVES:
                return None
            name = node.input[0]
            node = self.makers.get(name)
        return None

    def number(self, name: str) -> Array | None:
        tensor = self.constants.get(name)
        if tensor is None or tensor.data_type != onnx.TensorProto.FLOAT:
            return None
        value = numpy_helper.to_array(tensor)
        return value if value.size == 1 and value.ndim <= 1 else None


def _move(file: _File, product: onnx.NodeProto) -> None:
    queries, keys = (file.factor(name) for name in product.input)
    if queries is None or keys is None:
        return
    (first, a), (second, b) = queries, keys
    both = [file.number(node.input[place]) for node, place in ((first, a), (second, b))]
    assert both[0] is not None and both[1] is not None
    fresh = f"{first.output[0]}/factor"
    while fresh in file.constants or fresh in file.makers:
        fresh += "_"
    file.constants[fresh] = numpy_helper.from_array((both[0] * both[1]).astype(np.float32), fresh)
    file.graph.initializer.append(file.constants[fresh])
    first.input[a] = fresh
    (reader,) = (node for node in file.graph.node if second.output[0] in node.input)
    for index, name in enumerate(reader.input):
        if name == second.output[0]:
            reader.input[index] = second.input[1 - b]
    file.graph.node.remove(second)
