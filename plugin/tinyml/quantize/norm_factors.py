# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Factors and offsets of normalisations move into the dense layers that read them.

A normalisation computes in float. (n · factors + offsets) · W + b is n · W' + b', so two layers less. Factors
that a file multiplies by in a layer of their own go the same way.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from tinyml.ir import Array
from tinyml.quantize.subgraphs import drop_unread

NORMALS = ("LayerNormalization", "RMSNormalization")

FACTORS, OFFSETS = 1, 2
"""Inputs of LayerNormalization; RMSNormalization has no offsets."""

WEIGHTS, BIAS = 1, 2
"""Inputs of Gemm; MatMul has no bias."""


def fold_norm_factors(model: onnx.ModelProto) -> None:
    """Only where dense layers with constant weights are all that reads a normalisation."""
    if any(attribute.HasField("g") for node in model.graph.node for attribute in node.attribute):
        return  # branches read tensors from outside, too
    file = _File(onnx.shape_inference.infer_shapes(model))
    for node in list(file.model.graph.node):
        if node.op_type in NORMALS and len([name for name in node.output if name]) == 1:
            _take_factors(file, node)
            _fold(file, node)
    drop_unread(file.model.graph)
    model.CopyFrom(file.model)


class _File:
    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        graph = model.graph
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.kept = {value.name for value in graph.output}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.taken = {*self.constants, *self.readers, *(name for node in graph.node for name in node.output)}
        values = (*graph.value_info, *graph.input, *graph.output)
        self.last = {v.name: d[-1].dim_value for v in values if (d := v.type.tensor_type.shape.dim)}

    def constant(self, node: onnx.NodeProto, place: int) -> Array | None:
        if len(node.input) <= place or node.input[place] not in self.constants:
            return None
        return numpy_helper.to_array(self.constants[node.input[place]])

    def replace(self, node: onnx.NodeProto, place: int, value: Array, name: str) -> None:
        """A constant of this node's own: others may read the old one."""
        fresh = f"{node.output[0]}/{name}"  # a node may have no name
        while fresh in self.taken:
            fresh += "_"
        self.taken.add(fresh)
        self.constants[fresh] = numpy_helper.from_array(value.astype(np.float32), fresh)
        self.model.graph.initializer.append(self.constants[fresh])
        while len(node.input) <= place:
            node.input.append("")
        node.input[place] = fresh


def _take_factors(file: _File, node: onnx.NodeProto) -> None:
    """n · factors · more is n · (factors · more), if nothing else reads the first product."""
    name = node.output[0]
    readers = file.readers.get(name, [])
    factors = file.constant(node, FACTORS)
    if len(readers) != 1 or readers[0].op_type != "Mul" or name in file.kept or factors is None:
        return
    if len(node.input) > OFFSETS and node.input[OFFSETS]:
        return
    (product,) = readers
    more = file.constant(product, 1 - list(product.input).index(name))
    if more is None or factors.ndim != 1 or more.shape not in ((1,), factors.shape):
        return
    file.replace(node, FACTORS, factors * more, "factors")
    node.output[0] = product.output[0]
    file.model.graph.node.remove(product)


def _fold(file: _File, node: onnx.NodeProto) -> None:
    factors = file.constant(node, FACTORS)
    has_offsets = len(node.input) > OFFSETS and bool(node.input[OFFSETS])
    offsets = file.constant(node, OFFSETS) if has_offsets else np.zeros(1, np.float32)
    if factors is None or offsets is None or factors.ndim != 1 or factors.dtype != np.float32:
        return
    if offsets.shape not in ((1,), factors.shape):
        return
    layers = _dense_readers(file, node.output[0], factors.size, bool(offsets.any()))
    if not layers or (np.all(factors == 1) and not offsets.any()):
        return
    for layer in layers:
        by_rows = _attribute(layer, "transB", 0) == 1
        weights = file.constant(layer, WEIGHTS)
        bias = file.constant(layer, BIAS)
        assert weights is not None
        matrix = (weights.T if by_rows else weights).astype(np.float64)
        moved = np.broadcast_to(offsets, factors.shape).astype(np.float64) @ matrix
        matrix = matrix * factors[:, None]
        file.replace(layer, WEIGHTS, matrix.T if by_rows else matrix, "normalised_weights")
        if moved.any():
            file.replace(layer, BIAS, moved if bias is None else bias + moved, "normalised_bias")
    file.replace(node, FACTORS, np.ones_like(factors), "ones")
    del node.input[OFFSETS:]


def _dense_readers(file: _File, name: str, width: int, offsets: bool) -> list[onnx.NodeProto] | None:
    """The layers that read a tensor, perhaps in another shape; None if anything else does."""
    if name in file.kept:
        return None
    found: list[onnx.NodeProto] = []
    for node in file.readers.get(name, []):
        if node.op_type == "Reshape" and node.input[0] == name and file.last.get(node.output[0]) == width:
            more = _dense_readers(file, node.output[0], width, offsets)
            if more is None:
                return None
            found += more
        elif _takes(file, node, name, width) and not (offsets and node.op_type == "MatMul"):
            found.append(node)
        else:
            return None
    return found


def _takes(file: _File, node: onnx.NodeProto, name: str, width: int) -> bool:
    weights, bias = file.constant(node, WEIGHTS), file.constant(node, BIAS)
    plain = all(_attribute(node, word, 1.0) == 1.0 for word in ("alpha", "beta"))
    if node.op_type not in ("Gemm", "MatMul") or weights is None or weights.ndim != 2 or not plain:
        return False
    if _attribute(node, "transA", 0):
        return False
    inputs, outputs = weights.shape[:: -1 if _attribute(node, "transB", 0) else 1]
    if inputs != width:
        return False  # one factor for all elements
    without = len(node.input) <= BIAS or not node.input[BIAS]
    return list(node.input).count(name) == 1 and (without or (bias is not None and bias.shape == (outputs,)))


def _attribute(node: onnx.NodeProto, name: str, default: float) -> float:
    found = [onnx.helper.get_attribute_value(one) for one in node.attribute if one.name == name]
    return found[0] if found else default
