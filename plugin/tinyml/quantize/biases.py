# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights and biases in the form that onnxruntime's quantiser expects: one number per channel."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from tinyml.base.errors import ModelError
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize.subgraphs import drop_unread

BIAS = 2
"""The place of the bias among the inputs of a layer with weights."""


def plain_biases(model: onnx.ModelProto) -> None:
    """Spread biases of one number, or with axes of extent 1, over the channels; Gemm allows them."""
    _apply_factors(model)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        channels = _channels(node, constants)
        if channels is None or len(node.input) <= BIAS or node.input[BIAS] not in constants:
            continue
        bias = numpy_helper.to_array(constants[node.input[BIAS]])
        if bias.shape == (channels,) or node.op_type != "Gemm":
            continue
        if bias.size == 1 or (bias.size == channels and bias.shape[-1] == channels):
            name = f"{node.name}/bias"
            row = np.broadcast_to(bias.reshape(-1), (channels,)).copy()
            model.graph.initializer.append(numpy_helper.from_array(row, name))
            node.input[BIAS] = name
    drop_unread(model.graph)


def _apply_factors(model: onnx.ModelProto) -> None:
    """Multiply the biases of Gemm by its beta: the quantiser makes it part of their scale, even 0."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        factor = next((one for one in node.attribute if one.name == "beta"), None)
        if node.op_type != "Gemm" or factor is None or len(node.input) <= BIAS:
            continue
        if factor.f == 0:
            del node.input[BIAS:]
        elif node.input[BIAS] in constants:
            bias = numpy_helper.to_array(constants[node.input[BIAS]])
            name = f"{node.name}/bias_of_beta"
            model.graph.initializer.append(numpy_helper.from_array(bias * np.float32(factor.f), name))
            node.input[BIAS] = name
        else:
            continue
        node.attribute.remove(factor)


def own_biases(model: onnx.ModelProto) -> None:
    """Give every layer a bias of its own: each is quantised with the scale of its layer."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    seen: set[str] = set()
    for node in model.graph.node:
        channels = _channels(node, constants)
        if channels is None or len(node.input) <= BIAS or node.input[BIAS] not in constants:
            continue
        name = node.input[BIAS]
        if name in seen:
            copy = onnx.TensorProto()
            copy.CopyFrom(constants[name])
            copy.name = node.input[BIAS] = f"{node.name}/bias"
            model.graph.initializer.append(copy)
        seen.add(node.input[BIAS])


def other_biases(model: onnx.ModelProto) -> frozenset[str]:
    """Gemm nodes whose bias differs from row to row, which no integer form has."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    found = set()
    for node in model.graph.node:
        channels = _channels(node, constants)
        if node.op_type != "Gemm" or channels is None or len(node.input) <= BIAS:
            continue
        bias = constants.get(node.input[BIAS])
        if bias is not None and tuple(bias.dims) != (channels,):
            found.add(node.name)
    return frozenset(found)


def without_channels(model: onnx.ModelProto) -> set[str]:
    """Weights that get one scale: those of groups share an axis that is shorter than the bias."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    found = set()
    for node in model.graph.node:
        channels = _channels(node, constants)
        bias = constants.get(node.input[BIAS]) if channels is not None and len(node.input) > BIAS else None
        if bias is not None and len(bias.dims) == 1 and bias.dims[0] != channels:
            found.add(node.input[1])
    return found


def refuse_infinite_weights(model: onnx.ModelProto) -> None:
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        declared = quantizing(node.op_type)
        places = (1, BIAS) if declared.channel_axis is not None else declared.matrices
        for name in (node.input[place] for place in places if place < len(node.input)):
            if name in constants and not np.isfinite(numpy_helper.to_array(constants[name])).all():
                raise ModelError(
                    f"{node.op_type} {node.name!r}: its constant {name!r} has values that are not finite",
                    "train or export the model again",
                )


def _channels(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> int | None:
    """How many channels the constant weights of a node have."""
    declared = quantizing(node.op_type)
    if declared.channel_axis is None or len(node.input) < BIAS or node.input[1] not in constants:
        return None
    dims = constants[node.input[1]].dims
    return dims[declared.channel_axis(node, len(dims))] if dims else None
