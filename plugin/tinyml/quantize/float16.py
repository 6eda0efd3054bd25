# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights stored as float16 in a model that stays float: half the bytes, the same arithmetic.

The file has float16 initialisers, each with a Cast to float, so every runtime computes with the same numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.ir import Array
from tinyml.quantize.channels import attributes
from tinyml.quantize.subgraphs import drop_unread

LARGEST = float(np.finfo(np.float16).max)

MOST_LOST = 0.01
"""A usual share is 0.0002, from rounding to 11 bits."""

WITH_WEIGHTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")

RECURRENT = ("LSTM", "GRU", "RNN")


def float16_layers(model: onnx.ModelProto, kept: Collection[str]) -> tuple[frozenset[str], Mapping[str, str]]:
    """The layers whose weights become float16; and why others with weights keep theirs. By node."""
    constants = _float_constants(model)
    reasons: dict[str, str] = {}
    names = []
    for node in model.graph.node:
        if node.op_type not in (*WITH_WEIGHTS, *RECURRENT):
            continue
        reason = "--keep-float names it" if node.name in kept else _refusal(node, constants)
        if reason:
            reasons[node.name] = reason
        else:
            names.append(node.name)
    return frozenset(names), reasons


def with_float16(model: onnx.ModelProto, names: Collection[str]) -> onnx.ModelProto:
    """A copy in which the weights of these nodes are float16."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph, constants = result.graph, _float_constants(result)
    taken = {name for node in graph.node for name in (*node.input, *node.output)} | {
        tensor.name for tensor in graph.initializer
    }
    casts: dict[str, onnx.NodeProto] = {}
    for node in graph.node:
        if node.name not in names:
            continue
        weights = node.input[1]
        if weights not in casts:
            half = numpy_helper.from_array(
                constants[weights].astype(np.float16), _fresh(f"{weights}/float16", taken)
            )
            graph.initializer.append(half)
            whole = _fresh(f"{weights}/float", taken)
            casts[weights] = helper.make_node("Cast", [half.name], [whole], whole, to=TensorProto.FLOAT)
        node.input[1] = casts[weights].output[0]
    nodes = [*casts.values(), *(onnx.NodeProto.FromString(n.SerializeToString()) for n in graph.node)]
    del graph.node[:]
    graph.node.extend(nodes)
    drop_unread(graph)
    return result


def _float_constants(model: onnx.ModelProto) -> dict[str, Array]:
    return {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if tensor.data_type == TensorProto.FLOAT
    }


def _refusal(node: onnx.NodeProto, constants: Mapping[str, Array]) -> str:
    """Why its weights cannot be float16; empty if they can."""
    if node.op_type in RECURRENT:
        return "recurrent layers have no float16 weights"
    weights = constants.get(node.input[1])
    if weights is None:
        return "its weights are not constants"
    if node.op_type == "MatMul" and weights.ndim != 2:
        return "it multiplies by several matrices"
    if attributes(node).get("alpha", 1.0) != 1.0:
        return "a factor changes its weights"
    if np.abs(weights).max(initial=0) > LARGEST:
        return f"it has a weight of {np.abs(weights).max():.4g}, and float16 ends at {LARGEST:.0f}"
    if (lost := _lost(weights)) > MOST_LOST:
        return f"its weights are so small that float16 rounds them by {100 * lost:.0f} %"
    return ""


def _lost(weights: Array) -> float:
    """What float16 takes away, as a share of the weights; numbers below its smallest ones become 0."""
    whole = weights.astype(np.float64)
    largest = np.abs(whole).max(initial=0.0)
    if not largest:
        return 0.0
    apart = whole - weights.astype(np.float16)
    return float(np.linalg.norm(apart / largest) / np.linalg.norm(whole / largest))


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
