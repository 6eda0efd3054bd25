# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers between Dequantize and Quantize, added up in integers and scaled once, in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array
from tinyml.reference.rewriting import OFFSET, Rewriting, attributes

BYTES = {TensorProto.INT8, TensorProto.UINT8}
EXACT_IN_FLOAT = 2**24
"""Whole numbers up to here are exact in float32, and so are their sums, in any order."""
SAME_SCALE = 1e-5
"""How far the scale of a bias may be from that of the sum it is added to: float32 rounds the product."""


@dataclass(frozen=True)
class Stored:
    """What a DequantizeLinear reads."""

    name: str
    kind: int
    scale: Array  # float64: one, or one for each place along the axis
    zero: int
    axis: int


def rewrite(node: onnx.NodeProto, graph: Rewriting) -> bool:
    if node.op_type not in ("Conv", "ConvTranspose", "MatMul", "Gemm"):
        return False
    x, w = (_stored(name, graph) for name in node.input[:2])
    if x is None or w is None or not {x.kind, w.kind} <= BYTES or x.scale.size > 1:
        return False
    weights, more = graph.value(w.name), attributes(node)
    if weights is None:
        if "Conv" in node.op_type or w.scale.size > 1:
            return False
    elif w.scale.size > 1 and w.axis % weights.ndim != _channel_axis(node.op_type, weights.ndim, more):
        return False
    if node.op_type == "Gemm" and not _plain_gemm(more):
        return False
    if node.op_type == "ConvTranspose":
        if weights is None or not _small_sums(x, w, weights):
            return False
        total = graph.add("ConvTranspose", [_whole(x, graph), _whole(w, graph)], **more)
    else:
        total = _sum(node.op_type, x, w, more, graph)
    # Channels are the last axis of a matrix product, and the second one of a convolution.
    behind = (1,) * (weights.ndim - 2) if weights is not None and "Conv" in node.op_type else ()
    scale = x.scale.reshape(()) * w.scale
    real = _scaled(graph.cast(total, TensorProto.DOUBLE), node, scale, behind, graph)
    graph.cast(real, TensorProto.FLOAT, node.output[0])
    return True


def _plain_gemm(more: Mapping[str, Any]) -> bool:
    return not more.get("transA") and more.get("alpha", 1.0) == more.get("beta", 1.0) == 1.0


def _channel_axis(op_type: str, rank: int, more: Mapping[str, Any]) -> int:
    """The axis of the weights that output channels lie along."""
    if op_type == "ConvTranspose":
        return 1 if more.get("group", 1) == 1 else -1
    return 0 if op_type == "Conv" or more.get("transB") else rank - 1


def _sum(op_type: str, x: Stored, w: Stored, more: Mapping[str, Any], graph: Rewriting) -> str:
    """The sum of products of uint8, zero points taken away, in int32."""
    names, zeros = [], []
    for operand in (x, w):
        is_signed = operand.kind == TensorProto.INT8
        names.append(graph.unsigned(operand.name) if is_signed else operand.name)
        zeros.append(graph.constant(np.array(operand.zero + OFFSET * is_signed, np.uint8)))
    if op_type == "Conv":
        return graph.add("ConvInteger", names + zeros, **more)
    if more.get("transB"):
        names[1] = graph.add("Transpose", [names[1]])
    return graph.add("MatMulInteger", names + zeros)


def _scaled(total: str, node: onnx.NodeProto, scale: Array, behind: tuple[int, ...], graph: Rewriting) -> str:
    """The sum, with the bias, in real numbers; ``behind``: axes after the channels."""

    def along_channels(values: Array) -> str:
        return graph.constant(values.reshape(-1, *behind) if behind else values)

    name = node.input[2] if len(node.input) > 2 else ""
    bias = _stored(name, graph) if name else None
    data = None if bias is None else graph.value(bias.name)
    if bias is not None and data is not None and np.allclose(bias.scale, scale, rtol=SAME_SCALE, atol=0):
        whole = data.astype(np.float64) - bias.zero
        total, name = graph.add("Add", [total, along_channels(whole)]), ""
    real = graph.add("Mul", [total, along_channels(scale)])
    if not name:
        return real
    added = graph.cast(name, TensorProto.DOUBLE)
    if behind:
        added = graph.add("Reshape", [added, graph.constant(np.array([-1, *behind]))])
    return graph.add("Add", [real, added])


def _small_sums(x: Stored, w: Stored, weights: Array) -> bool:
    """Whether float32 adds up every output of a transposed convolution exactly."""
    low, high = (-128, 127) if x.kind == TensorProto.INT8 else (0, 255)
    largest = max(high - x.zero, x.zero - low)
    sizes = np.abs(weights.astype(np.int64) - w.zero)
    return largest * int(sizes.sum(axis=(0, *range(2, sizes.ndim))).max()) < EXACT_IN_FLOAT


def _whole(stored: Stored, graph: Rewriting) -> str:
    """Value - zero point, in float32."""
    zero = graph.constant(np.array(stored.zero, np.float32))
    return graph.add("Sub", [graph.cast(stored.name, TensorProto.FLOAT), zero])


def _stored(name: str, graph: Rewriting) -> Stored | None:
    """The integers of a dequantised tensor, if its scale is known and it has one zero point."""
    node = graph.producers.get(name)
    if node is None or node.op_type != "DequantizeLinear" or attributes(node).get("block_size"):
        return None
    scale = graph.value(node.input[1])
    has_zero = len(node.input) > 2 and bool(node.input[2])
    zeros = graph.value(node.input[2]) if has_zero else np.zeros(1, np.uint8)
    if scale is None or scale.dtype != np.float32 or zeros is None or np.unique(zeros).size != 1:
        return None
    kind = graph.type_of(node.input[2] if has_zero else node.input[0])
    axis = int(attributes(node).get("axis", 1))
    return Stored(node.input[0], kind, scale.astype(np.float64), int(zeros.reshape(-1)[0]), axis)
