# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Channels between layers with weights: which tensors can carry a channel in another unit.

A channel can be divided by a factor where it is made, in the weights and the bias of one layer, and
multiplied by it again where it is read, in the weights of the next. Between them only operators may lie that
pass a positive factor on: Relu, pools, reshapes, sums of tensors in the same unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array

SAME_PLACES = frozenset(
    ["Relu", "LeakyRelu", "Identity", "Dropout", "MaxPool", "AveragePool", "GlobalAveragePool"]
) | {"GlobalMaxPool"}
"""Operators that pass a factor of a channel on, and leave the channels where they are."""

MOVES = frozenset(["Flatten", "Reshape", "Transpose", "Squeeze", "Unsqueeze"])
"""Operators after which the elements of a channel lie elsewhere."""

BIAS = 2


@dataclass(frozen=True)
class Place:
    """Where the channels of a group lie in a tensor: the axis, and the channel of each index along it."""

    group: int
    axis: int
    channels: tuple[int, ...]


@dataclass
class Group:
    """Channels that can be scaled by factors of their own."""

    count: int
    makers: list[onnx.NodeProto] = field(default_factory=list)
    readers: list[tuple[onnx.NodeProto, Place]] = field(default_factory=list)
    offsets: list[tuple[str, Place]] = field(default_factory=list)  # constants that are added
    tensors: dict[str, Place] = field(default_factory=dict)
    fixed: bool = False


class Groups:
    """All groups of a float model, found in one walk through it."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.shapes = _shapes(model)
        self.uses = Counter(name for node in model.graph.node for name in node.input)
        self.places: dict[str, Place] = {}
        self.groups: list[Group] = []
        self.joined: dict[int, int] = {}
        for node in model.graph.node:
            self._visit(node)
        for name in (*(value.name for value in model.graph.output), *_inner_inputs(model.graph)):
            self._fix(name)

    def free(self) -> list[Group]:
        """Those that have layers on both sides and nothing that would notice a factor."""
        for name, place in self.places.items():
            self._group(place).tensors[name] = place
        roots = [group for index, group in enumerate(self.groups) if self._root(index) == index]
        return [group for group in roots if not group.fixed and group.makers and group.readers]

    def _visit(self, node: onnx.NodeProto) -> None:
        if self._weights(node) is not None:
            self._weighted(node)
        elif node.op_type in SAME_PLACES or (node.op_type == "PRelu" and node.input[1] in self.constants):
            self._same(node, node.input[0])
        elif node.op_type in MOVES:
            self._moved(node)
        elif node.op_type == "ReduceMean":
            self._mean(node)
        elif node.op_type == "Add":
            self._sum(node)
        elif node.op_type == "Mul":
            self._product(node)
        else:
            self._stop(node)

    def _weights(self, node: onnx.NodeProto) -> Array | None:
        """The constant weights of a layer whose channels can be scaled on both sides."""
        if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul") or node.domain not in (
            "",
            "ai.onnx",
        ):
            return None
        if len(node.input) < 2 or node.input[1] not in self.constants or self.uses[node.input[1]] > 1:
            return None
        values: Array = numpy_helper.to_array(self.constants[node.input[1]])
        more = attributes(node)
        bias = node.input[BIAS] if len(node.input) > BIAS else ""
        if bias and (bias not in self.constants or self.uses[bias] > 1):
            return None
        if node.op_type in ("Gemm", "MatMul"):
            return values if values.ndim == 2 and not more.get("transA") else None
        return values if node.op_type == "Conv" or more.get("group", 1) == 1 else None

    def _weighted(self, node: onnx.NodeProto) -> None:
        weights = self._weights(node)
        assert weights is not None
        axis, count = made(node, weights)
        place = self.places.get(node.input[0])
        shape = self.shapes.get(node.input[0], ())
        if place is not None:
            if place.axis == (1 if "Conv" in node.op_type else len(shape) - 1):
                self._group(place).readers.append((node, place))
            else:
                self._group(place).fixed = True
        rank = len(self.shapes.get(node.output[0], ()))
        if not rank:
            return
        self.groups.append(Group(count, [node]))
        here = axis if "Conv" in node.op_type else rank - 1
        self.places[node.output[0]] = Place(len(self.groups) - 1, here, tuple(range(count)))

    def _same(self, node: onnx.NodeProto, source: str) -> None:
        place = self.places.get(source)
        if place is None or len(node.output) > 1:
            self._stop(node)
            return
        self.places[node.output[0]] = place

    def _moved(self, node: onnx.NodeProto) -> None:
        place = self.places.get(node.input[0])
        before, after = self.shapes.get(node.input[0]), self.shapes.get(node.output[0])
        if place is None:
            return
        if not before or not after:
            self._stop(node)
            return
        along = np.array(place.channels).reshape(
            [-1 if axis == place.axis else 1 for axis in range(len(before))]
        )
        numbers = np.broadcast_to(along, before)
        if node.op_type == "Transpose":
            numbers = numbers.transpose(attributes(node).get("perm", range(len(before))[::-1]))
        numbers = numbers.reshape(after)
        axes = [axis for axis in range(len(after)) if _is_along(numbers, axis)]
        wanted = [axis for axis in axes if after[axis] > 1] or axes
        if not wanted:
            self._stop(node)
            return
        row = np.moveaxis(numbers, wanted[0], 0).reshape(after[wanted[0]], -1)[:, 0]
        self.places[node.output[0]] = Place(place.group, wanted[0], tuple(int(number) for number in row))

    def _mean(self, node: onnx.NodeProto) -> None:
        place, more = self.places.get(node.input[0]), attributes(node)
        axes = more.get("axes")
        if len(node.input) > 1 and node.input[1] in self.constants:
            axes = numpy_helper.to_array(self.constants[node.input[1]]).tolist()
        rank = len(self.shapes.get(node.input[0], ()))
        if place is None or not axes or place.axis in (gone := {axis % rank for axis in axes}):
            self._stop(node)
            return
        before = 0 if more.get("keepdims", 1) else sum(axis < place.axis for axis in gone)
        self.places[node.output[0]] = Place(place.group, place.axis - before, place.channels)

    def _sum(self, node: onnx.NodeProto) -> None:
        one, other = (self.places.get(name) for name in node.input)
        if one is not None and other is not None:
            same = (one.axis, one.channels) == (other.axis, other.channels)
            if same and self.shapes.get(node.input[0]) == self.shapes.get(node.input[1]):
                self._join(one.group, other.group)
                self.places[node.output[0]] = one
                return
        variable, constant = node.input if one is not None else reversed(node.input)
        place = self.places.get(variable)
        if place is not None and constant in self.constants and self.uses[constant] == 1:
            rank, dims = len(self.shapes[variable]), tuple(self.constants[constant].dims)
            along = place.axis - rank + len(dims)
            if 0 <= along < len(dims) <= rank and dims[along] == len(place.channels):
                self._group(place).offsets.append((constant, Place(place.group, along, place.channels)))
                self.places[node.output[0]] = place
                return
        self._stop(node)

    def _product(self, node: onnx.NodeProto) -> None:
        known = [name for name in node.input if name in self.places]
        if len(known) == 1 and self.shapes.get(known[0]) == self.shapes.get(node.output[0]):
            self.places[node.output[0]] = self.places[known[0]]
        else:
            self._stop(node)

    def _stop(self, node: onnx.NodeProto) -> None:
        for name in node.input:
            self._fix(name)

    def _fix(self, name: str) -> None:
        if name in self.places:
            self._group(self.places[name]).fixed = True

    def _group(self, place: Place) -> Group:
        return self.groups[self._root(place.group)]

    def _root(self, index: int) -> int:
        while index in self.joined:
            index = self.joined[index]
        return index

    def _join(self, one: int, other: int) -> None:
        first, second = self._root(one), self._root(other)
        if first == second:
            return
        self.joined[second] = first
        kept, gone = self.groups[first], self.groups[second]
        kept.makers += gone.makers
        kept.readers += gone.readers
        kept.offsets += gone.offsets
        kept.fixed |= gone.fixed or kept.count != gone.count


def made(node: onnx.NodeProto, weights: Array) -> tuple[int, int]:
    """The axis of the output channels in the weights of a convolution (or 1), and how many there are."""
    if node.op_type == "Conv":
        return 1, weights.shape[0]
    if node.op_type == "Gemm" and attributes(node).get("transB"):
        return 1, weights.shape[0]
    return 1, weights.shape[1]


def attributes(node: onnx.NodeProto) -> Mapping[str, Any]:
    return {item.name: helper.get_attribute_value(item) for item in node.attribute}


def _inner_inputs(graph: onnx.GraphProto) -> Iterator[str]:
    """What the bodies of If, Loop and Scan read: they can see every tensor outside."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from (name for inner in attribute.g.node for name in inner.input)
                yield from (value.name for value in attribute.g.output)
                yield from _inner_inputs(attribute.g)


def _is_along(numbers: Array, axis: int) -> bool:
    rows = np.moveaxis(numbers, axis, 0).reshape(numbers.shape[axis], -1)
    return bool((rows == rows[:, :1]).all())


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    known = onnx.shape_inference.infer_shapes(model).graph
    found = {}
    for value in (*known.input, *known.value_info, *known.output):
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in dims):
            found[value.name] = tuple(dim.dim_value for dim in dims)
    return found
