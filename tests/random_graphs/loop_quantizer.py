# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Pairs of Quantize and Dequantize in the body of a loop, for most of what it gets and most of what it gives.

A state mostly leaves a turn in the integers in which the next one reads it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Params = tuple[float, int, str]
"""Scale, zero point, type. No two scales make ties that onnxruntime's float32 rounds otherwise."""
PARAMS: tuple[Params, ...] = (
    *((1 / 64, 0, "int8"), (1 / 32, 3, "int8"), (0.01137, -20, "int8")),
    *((1 / 64, 128, "uint8"), (0.01311, 100, "uint8")),
)


def quantized(model: onnx.ModelProto, rng: np.random.Generator) -> onnx.ModelProto:
    loop = next(node for node in model.graph.node if node.op_type in ("Loop", "Scan"))
    body = next(attribute.g for attribute in loop.attribute if attribute.name == "body")
    given = [x.name for x in body.input if x.type.tensor_type.elem_type == TensorProto.FLOAT]
    states = [name for name in given if name.startswith("s")]
    read = {name for node in _nodes(body) for name in node.input}
    captured = [x.name for x in model.graph.input if x.name in read and x.name.startswith("x")]
    chosen = {name: _pick(rng) for name in (*given, *captured) if rng.random() < 0.75}
    for node in _nodes(body):
        for place, name in enumerate(node.input):
            if name in chosen and rng.random() < 0.92:  # seldom the floats themselves are read, too
                node.input[place] = f"{name}_dq"
    before = [part for name, params in chosen.items() for part in _pair(model, name, f"{name}_dq", params)]
    behind = []
    ends = [x.name for x in body.output if x.type.tensor_type.elem_type == TensorProto.FLOAT]
    for place, name in enumerate(ends):
        if rng.random() < 0.75:
            as_read = chosen.get(states[place]) if place < len(states) and rng.random() < 0.8 else None
            _rename(body, name, f"{name}_real")
            behind += _pair(model, f"{name}_real", name, as_read or _pick(rng))
    nodes = [*before, *body.node, *behind]
    del body.node[:]
    body.node.extend(nodes)
    return model


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Those in branches, too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _nodes(attribute.g)


def _pick(rng: np.random.Generator) -> Params:
    return PARAMS[int(rng.integers(len(PARAMS)))]


def _pair(model: onnx.ModelProto, x: str, y: str, params: Params) -> list[onnx.NodeProto]:
    scale, zero, dtype = params
    names = [f"scale_{scale:.6f}", f"zero_{zero}_{dtype}"]
    arrays = [np.asarray(scale, np.float32), np.asarray(zero, dtype)]
    stored = {tensor.name for tensor in model.graph.initializer}
    for name, array in zip(names, arrays, strict=True):
        if name not in stored:
            model.graph.initializer.append(numpy_helper.from_array(array, name))
    return [
        helper.make_node("QuantizeLinear", [x, *names], [f"{y}_q"]),
        helper.make_node("DequantizeLinear", [f"{y}_q", *names], [y]),
    ]


def _rename(body: onnx.GraphProto, old: str, new: str) -> None:
    for node in body.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                if name == old:
                    names[place] = new
