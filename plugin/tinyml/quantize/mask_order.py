# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A bias is added to scores before a mask, not together with it.

T5 adds what hides padding to the relative positions, and their sum to the scores of every layer. In int8 such
a sum has no scale: what hides keys takes all steps. Scores + bias have one, and the mask stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import onnx
from onnx import helper

from tinyml.base.errors import TinymlError
from tinyml.importers import onnx_graph
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.passes._attention_bits import MOST_NODES, Reach, cases_of
from tinyml.passes.editor import Editor
from tinyml.quantize.subgraphs import outside_names

HIDES = -1000.0
"""This or less, added to a score, leaves it no weight if scores are what int8 can represent well."""


def mask_last(model: onnx.ModelProto) -> None:
    """scores + (bias + mask) is (scores + bias) + mask: the same floats where the mask adds 0.

    Where it hides a key, both are so far below the other scores that the softmax gives 0.
    """
    file = _File(model)
    changed = False
    for outer in [node for node in model.graph.node if node.op_type == "Add"]:
        found = next(file.sums(outer), None) if file.meets_softmax(outer.output[0]) else None
        if found is not None:
            _reorder(file, outer, *found)
            changed = True
    if changed:
        read = {name for node in model.graph.node for name in (*node.input, *outside_names(node))} | file.kept
        unread = [node for node in model.graph.node if node.op_type == "Add" and node.output[0] not in read]
        for node in unread:
            model.graph.node.remove(node)


def _reorder(file: _File, outer: onnx.NodeProto, scores: str, bias: str, mask: str) -> None:
    sums = file.fresh(f"{outer.output[0]}/biased")
    first = helper.make_node("Add", [scores, bias], [sums], name=f"{outer.name}/bias" if outer.name else "")
    place = next(i for i, node in enumerate(file.model.graph.node) if node is outer)
    outer.input[:] = [sums, mask]
    file.model.graph.node.insert(place, first)


class _File:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.makers = {name: node for node in model.graph.node for name in node.output}
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.inputs = {value.name: value for value in model.graph.input}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.kept = {value.name for value in model.graph.output}
        self.taken = {*self.makers, *self.constants, *self.inputs}
        self.masks: dict[str, bool] = {}

    @cached_property
    def shapes(self) -> dict[str, list[int]]:
        """Of inputs and computed tensors, where they are known."""
        graph = onnx.shape_inference.infer_shapes(self.model).graph
        known = (*graph.input, *graph.value_info)
        return {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in known}

    def fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def sums(self, outer: onnx.NodeProto) -> Iterator[tuple[str, str, str]]:
        """Scores, bias and mask of scores + (bias + mask)."""
        for scores, added in (tuple(outer.input), tuple(outer.input)[::-1]):
            inner = self.makers.get(added)
            if inner is None or inner.op_type != "Add" or self.hides(scores):
                continue
            if not self.has_shape(scores, outer.output[0]):
                continue
            masks = [name for name in inner.input if self.hides(name)]
            others = [name for name in inner.input if name not in masks]
            if len(masks) == len(others) == 1:
                yield scores, others[0], masks[0]

    def has_shape(self, name: str, other: str) -> bool:
        return name in self.shapes and self.shapes[name] == self.shapes.get(other)

    def meets_softmax(self, name: str) -> bool:
        """Whether nothing but a softmax reads a tensor, perhaps in another shape."""
        while name not in self.kept and len(readers := self.readers.get(name, [])) == 1:
            if readers[0].op_type == "Softmax":
                return True
            if not quantizing(readers[0].op_type).moves or len(readers[0].output) != 1:
                return False
            name = readers[0].output[0]
        return False

    def hides(self, name: str) -> bool:
        """Whether each element is 0 or hides a key, as one bit of another tensor says."""
        if name not in self.masks:
            self.masks[name] = self._hides(name)
        return self.masks[name]

    def _hides(self, name: str) -> bool:
        part = self._part(name)
        if part is None:
            return False
        try:
            edit = Editor(onnx_graph.read(part, "mask", {}))
        except TinymlError:
            return False
        for reach in Reach:
            cases = cases_of(edit, name, reach)
            if cases is None or len(cases.bits) != 1:
                continue
            shown = [bool(np.all(values == 0)) for values in cases.values]
            hidden = [bool(np.all(values <= HIDES)) for values in cases.values]
            if any(shown) and any(hidden):
                return True
        return False

    def _part(self, name: str) -> onnx.ModelProto | None:
        """The model that computes this tensor alone; None if it has many nodes."""
        nodes: list[onnx.NodeProto] = []
        waiting, seen = [name], {name}
        while waiting:
            node = self.makers.get(waiting.pop())
            if node is None or any(node is other for other in nodes):
                continue
            nodes.append(node)
            before = [operand for operand in node.input if operand and operand not in seen]
            waiting += before
            seen.update(before)
            if len(nodes) > MOST_NODES or any(attribute.HasField("g") for attribute in node.attribute):
                return None
        if not nodes:
            return None
        places = {id(node): place for place, node in enumerate(self.model.graph.node)}
        graph = helper.make_graph(
            sorted(nodes, key=lambda node: places[id(node)]),
            "mask",
            [value for key, value in self.inputs.items() if key in seen],
            [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)],
            [tensor for key, tensor in self.constants.items() if key in seen],
        )
        opsets, version = self.model.opset_import, self.model.ir_version
        return helper.make_model(graph, opset_imports=opsets, ir_version=version)
