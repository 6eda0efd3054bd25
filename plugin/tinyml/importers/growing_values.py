# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a growing decoder computes from the length of its past alone: masks, positions, rotary embeddings.

Exporters write it in many ways. So nothing is recognised: the file is imported with two lengths, which shows
what is known and which shapes grow, and what is known is computed for each length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
import onnx
from onnx import helper

from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers.growing_states import GrowingModel
from tinyml.importers.onnx_graph import known_values
from tinyml.importers.onnx_outputs import free_names
from tinyml.ir import Array, Shape, Tensor

PROBES = (2, 3)
"""Lengths of the past. 1 would hide which axis it is, and 0 rows mean nothing to most operators."""


@dataclass
class Values:
    """The values of a model for any number of rows before this run."""

    model: onnx.ModelProto
    growing: GrowingModel
    shapes: Mapping[str, Shape]  # of inputs, those of pasts with any length
    steps: int  # rows of a run
    short: Mapping[str, Tensor] = field(init=False)
    long: Mapping[str, Tensor] = field(init=False)
    varying: set[str] = field(init=False)  # known if the length is

    def __post_init__(self) -> None:
        self.short, self.long = (self._read(rows) for rows in PROBES)
        self.varying = self._varying()

    def shape(self, name: str, rows: int) -> Shape:
        """The shape of a value with this many rows before."""
        first, second = self.short[name].shape, self.long[name].shape
        return tuple(a + (b - a) * (rows - PROBES[0]) for a, b in zip(first, second, strict=True))

    def growing_axes(self, name: str) -> list[int]:
        first, second = self.short[name].shape, self.long[name].shape
        return [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]

    def inputs(self, rows: int) -> dict[str, Array]:
        """The mask of tokens without padding, and their positions."""
        found = {}
        kinds = {value.name: value.type.tensor_type.elem_type for value in self.model.graph.input}
        if name := self.growing.mask:
            found[name] = np.ones((1, rows + self.steps), helper.tensor_dtype_to_np_dtype(kinds[name]))
        if name := self.growing.position:
            places = np.arange(rows, rows + self.steps, dtype=helper.tensor_dtype_to_np_dtype(kinds[name]))
            found[name] = places.reshape(self.shapes[name])
        return found

    def _read(self, rows: int) -> dict[str, Tensor]:
        shapes = dict(self.shapes)
        for cache in self.growing.caches:
            past = list(shapes[cache.state.input])
            past[cache.axis] = rows
            shapes[cache.state.input] = tuple(past)
        return known_values(self.model, self.model.graph.node, self.inputs(rows), shapes)

    def _varying(self) -> set[str]:
        found = {name for name in (self.growing.mask, self.growing.position) if name}
        for node in self.model.graph.node:
            names = [name for name in node.output if name]
            if not names or not all(self.short[n].is_constant and self.long[n].is_constant for n in names):
                continue
            if node.op_type in ("Shape", "Size"):
                depends = node.input[0] in found or bool(self.growing_axes(node.input[0]))
            else:
                depends = bool(free_names(node) & found)
            if depends:
                found.update(names)
        return found

    def tabulated(self, wanted: Sequence[str], lengths: Sequence[int]) -> dict[str, list[Array]]:
        """The values of some varying names, for each length."""
        nodes = self._nodes(wanted)
        read = {name for node in nodes for name in free_names(node)}
        constants = {
            name: tensor.value
            for name in read - self.varying
            if (tensor := self.short.get(name)) is not None and tensor.is_constant
        }
        found: dict[str, list[Array]] = {name: [] for name in wanted}
        for rows in lengths:
            given = constants | self.inputs(rows)
            inner = [node for node in nodes if not self._measures(node)]
            given |= {n.output[0]: self._measured(n, rows) for n in nodes if self._measures(n)}
            values = known_values(self.model, inner, given)
            for name in wanted:
                found[name].append(values[name].value)
        return found

    def _nodes(self, wanted: Sequence[str]) -> list[onnx.NodeProto]:
        """Those that compute varying names, in the order of the file."""
        needed = set(wanted)
        found: list[onnx.NodeProto] = []
        for node in reversed(self.model.graph.node):
            if needed.intersection(node.output):
                found.insert(0, node)
                if not self._measures(node):
                    needed |= free_names(node) & self.varying
        return found

    def _measures(self, node: onnx.NodeProto) -> bool:
        """Whether a node asks for the shape of something that only a run computes."""
        return node.op_type in ("Shape", "Size") and node.input[0] not in self.varying

    def _measured(self, node: onnx.NodeProto, rows: int) -> Array:
        shape = np.array(self.shape(node.input[0], rows), np.int64)
        if node.op_type == "Size":
            return np.array(shape.prod(), np.int64)
        ends = {a.name: a.i for a in node.attribute}
        return shape[slice(ends.get("start", 0), ends.get("end"))]
