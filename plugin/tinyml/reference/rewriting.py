# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A graph while it is rewritten: what is known about its tensors, and new nodes in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.importers.states import states_of
from tinyml.ir import Array

OFFSET = 128
"""What makes an int8 a uint8."""


class Rewriting:
    """``nodes`` are those of the copy so far; ``finish`` puts them into the graph."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        states = {state.input for state in states_of(model)}  # whose first value looks like a constant
        self.constants = {t.name: t for t in model.graph.initializer if t.name not in states}
        for node in model.graph.node:
            value = next(
                (a.t for a in node.attribute if node.op_type == "Constant" and a.name == "value"), None
            )
            if value is not None:
                self.constants[node.output[0]] = value
        self.producers = {name: node for node in model.graph.node for name in node.output if name}
        self.types = _types(model)
        self.nodes: list[onnx.NodeProto] = []
        self._unsigned: dict[str, str] = {}
        self._count = 0

    def finish(self) -> None:
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)

    def value(self, name: str) -> Array | None:
        """The data of a constant."""
        tensor = self.constants.get(name)
        return None if tensor is None else numpy_helper.to_array(tensor)

    def type_of(self, name: str) -> int:
        tensor = self.constants.get(name)
        return self.types.get(name, TensorProto.UNDEFINED) if tensor is None else tensor.data_type

    def constant(self, array: Array) -> str:
        name = self._new_name()
        tensor = numpy_helper.from_array(np.asarray(array), name)
        self.graph.initializer.append(tensor)
        self.constants[name] = tensor
        return name

    def add(
        self, op_type: str, inputs: Sequence[str], output: str = "", domain: str = "", **more: Any
    ) -> str:
        """A new node; returns the name of its output."""
        output = output or self._new_name()
        self.nodes.append(helper.make_node(op_type, list(inputs), [output], domain=domain, **more))
        return output

    def cast(self, name: str, kind: int, output: str = "") -> str:
        return self.add("Cast", [name], output, to=kind)

    def unsigned(self, name: str) -> str:
        """The same int8 tensor as uint8."""
        if name not in self._unsigned:
            data = self.value(name)
            if data is not None:
                self._unsigned[name] = self.constant((data.astype(np.int16) + OFFSET).astype(np.uint8))
            else:
                self._unsigned[name] = self.moved(name, OFFSET, TensorProto.UINT8)
        return self._unsigned[name]

    def moved(self, name: str, by: int, kind: int, output: str = "") -> str:
        """``by`` added to every element of an 8-bit tensor, as another 8-bit type."""
        wide = self.add("Add", [self.cast(name, TensorProto.INT32), self.constant(np.array(by, np.int32))])
        return self.cast(wide, kind, output)

    def _new_name(self) -> str:
        self._count += 1
        return f"tinyml/reference/{self._count}"


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def _types(model: onnx.ModelProto) -> dict[str, int]:
    """Element types, as far as ONNX can infer them."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    values = (*graph.input, *graph.value_info, *graph.output)
    return {value.name: value.type.tensor_type.elem_type for value in values}
