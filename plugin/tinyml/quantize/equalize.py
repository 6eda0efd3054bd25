# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Cross-layer equalisation: channels of one tensor get similar ranges, so that one scale suits them all.

Each channel is divided by a factor in the layer that makes it, and multiplied by it in the layers that read
it. The float model computes the same; in int8, the channel with the largest range no longer takes the steps
away from all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from tinyml.ir import Array
from tinyml.quantize.channels import BIAS, Group, Groups, Place, attributes
from tinyml.reference.session import Session

STRENGTHS = (1.0, 0.5)
"""How much of the inequality is moved from the activations into the weights that read them."""

WEAKEST = 2.0**-10
"""A channel below this share of the largest is treated as if it had it: it may be larger in use."""

WORTHWHILE = 1.5
"""Largest factor over smallest below which there is nothing to equalise."""


def equalized(
    model: onnx.ModelProto, samples: Sequence[Mapping[str, Array]], strength: float
) -> onnx.ModelProto | None:
    """The model with equalised channels; None if there is nothing to equalise."""
    groups = Groups(model).free()
    names = [name for group in groups for name in group.tensors]
    if not names:
        return None
    largest = _largest(model, samples, names)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    editor = _Editor(result)
    changed = False
    for group in groups:
        factors = _factors(group, largest, editor, strength)
        if float(factors.max() / factors.min()) >= WORTHWHILE:
            editor.scale(group, factors)
            changed = True
    return result if changed else None


def _largest(
    model: onnx.ModelProto, samples: Sequence[Mapping[str, Array]], names: Sequence[str]
) -> dict[str, Array]:
    """The largest absolute value of each element of these tensors."""
    session = Session(model, names)
    found: dict[str, Array] = {}
    for sample in samples:
        values = session.run(sample)
        for name in names:
            size = np.abs(values[name])
            found[name] = np.maximum(found[name], size) if name in found else size
    return found


def _factors(group: Group, largest: Mapping[str, Array], editor: _Editor, strength: float) -> Array:
    """What each channel is divided by."""
    ranges = np.zeros(group.count)
    for name, place in group.tensors.items():
        if editor.is_hidden(name):
            continue
        sizes = np.moveaxis(largest[name], place.axis, 0).reshape(len(place.channels), -1).max(axis=1)
        np.maximum.at(ranges, np.array(place.channels), sizes)
    weights = np.zeros(group.count)
    for node, place in group.readers:
        np.maximum.at(weights, np.array(place.channels), editor.shares(node))
    used = (ranges > 0) & (weights > 0) & np.isfinite(ranges)
    if not used.any():
        return np.ones(group.count)
    ranges = np.maximum(ranges, ranges[used].max() * WEAKEST)
    weights = np.maximum(weights, WEAKEST)
    factors = np.where(used, ranges**strength / weights ** (1.0 - strength), 1.0)
    top = float((ranges / factors)[used].max() / ranges[used].max())  # the tensor keeps its largest value
    found: Array = np.where(used, factors * top, 1.0).astype(np.float32)
    return found


class _Editor:
    """Changes the constants of a model."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        self.nodes = {node.name: node for node in model.graph.node}
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def is_hidden(self, name: str) -> bool:
        """Whether a tensor only goes into a Relu, so that it never becomes integers."""
        readers = self.readers.get(name, [])
        return len(readers) == 1 and readers[0].op_type == "Relu"

    def shares(self, node: onnx.NodeProto) -> Array:
        """For each input channel, its largest weight as a share of the largest in the same row."""
        weights = np.abs(self._values(node.input[1]).astype(np.float64))
        more = attributes(node)
        if node.op_type == "Conv":
            groups = int(more.get("group", 1))
            rows = weights.reshape(groups, weights.shape[0] // groups, weights.shape[1], -1).max(axis=3)
            tops = rows.max(axis=2, keepdims=True)
            found: Array = (rows / np.where(tops > 0, tops, 1)).max(axis=1).reshape(-1)
            return found
        if node.op_type == "ConvTranspose":
            weights = weights.reshape(*weights.shape[:2], -1).max(axis=2)
        columns = weights.T if node.op_type == "Gemm" and more.get("transB") else weights
        tops = columns.max(axis=0, keepdims=True)
        each: Array = (columns / np.where(tops > 0, tops, 1)).max(axis=1)
        return each

    def scale(self, group: Group, factors: Array) -> None:
        for node in group.makers:
            self._divide(self.nodes[node.name], factors)
        for name, place in group.offsets:
            self._store(name, self._values(name) / self._along(factors, place, self._values(name).ndim))
        for node, place in group.readers:
            self._multiply(self.nodes[node.name], factors[np.array(place.channels)])

    def _divide(self, node: onnx.NodeProto, factors: Array) -> None:
        values = self._values(node.input[1])
        rows = node.op_type == "Conv" or (node.op_type == "Gemm" and attributes(node).get("transB"))
        shape = [-1, *[1] * (values.ndim - 1)] if rows else [1, -1, *[1] * (values.ndim - 2)]
        self._store(node.input[1], values / factors.reshape(shape))
        if len(node.input) > BIAS and node.input[BIAS]:
            name = node.input[BIAS]
            self._store(name, self._values(name) / factors)

    def _multiply(self, node: onnx.NodeProto, factors: Array) -> None:
        values, more = self._values(node.input[1]), attributes(node)
        if node.op_type == "Conv":
            groups = int(more.get("group", 1))
            by_group = values.reshape(groups, values.shape[0] // groups, *values.shape[1:])
            shape = (groups, 1, values.shape[1], *[1] * (values.ndim - 2))
            self._store(node.input[1], (by_group * factors.reshape(shape)).reshape(values.shape))
            return
        rows = not (node.op_type == "Gemm" and more.get("transB"))
        shape = (-1, *[1] * (values.ndim - 1)) if rows else (1, -1)
        self._store(node.input[1], values * factors.reshape(shape))

    def _along(self, factors: Array, place: Place, rank: int) -> Array:
        return factors[np.array(place.channels)].reshape([-1 if a == place.axis else 1 for a in range(rank)])

    def _values(self, name: str) -> Array:
        found: Array = numpy_helper.to_array(self.constants[name])
        return found

    def _store(self, name: str, values: Array) -> None:
        self.constants[name].CopyFrom(numpy_helper.from_array(values.astype(np.float32), name))
