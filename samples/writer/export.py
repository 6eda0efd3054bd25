# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The trained weights as an ONNX file: one step of a decoder, with its keys and values as state.

The operators are those that onnxruntime's builder of language models writes: MatMulNBits, whose weights have
four bits, and GroupQueryAttention, which turns queries and keys by their position, and writes keys and values
into the cache.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from language_model import (
    BLOCK,
    COSINES,
    EPSILON,
    GROUPS,
    HEADS,
    LAYERS,
    SINES,
    SIZE,
    WIDTH,
    Array,
    Weights,
    four_bits,
)
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
TEMPERATURE = 0.5  # below 1, likely characters become more likely
ROWS = 96  # of the caches: the longest text


class Graph:
    """Nodes and constants of the file."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: Array) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def add(
        self, op: str, inputs: list[str], name: str, more: tuple[str, ...] = (), **attributes: Any
    ) -> str:
        domain = (
            MICROSOFT if op in ("MatMulNBits", "GroupQueryAttention", "SimplifiedLayerNormalization") else ""
        )
        domain = "" if op == "SimplifiedLayerNormalization" else domain
        self.nodes.append(helper.make_node(op, inputs, [name, *more], name, domain=domain, **attributes))
        return name

    def dense(self, x: str, matrix: Array, name: str) -> str:
        """The product with weights of four bits: two in a byte, the first in its lower half."""
        integers, scales = four_bits(matrix)
        numbers = (integers + 8).astype(np.uint8)
        packed = numbers[:, :, 0::2] | numbers[:, :, 1::2] << 4
        operands = [
            x,
            self.constant(f"{name}.weight", packed),
            self.constant(f"{name}.scale", scales.reshape(-1)),
        ]
        sizes = {"K": matrix.shape[1], "N": matrix.shape[0], "bits": 4, "block_size": BLOCK}
        return self.add("MatMulNBits", operands, name, **sizes)

    def normal(self, x: str, factors: Array, name: str) -> str:
        operands = [x, self.constant(f"{name}.factors", factors)]
        return self.add("SimplifiedLayerNormalization", operands, name, axis=-1, epsilon=EPSILON)


def embedded(graph: Graph, matrix: Array) -> str:
    """The row of a character: bytes times the scale of their block, as in the last layer."""
    integers, scales = four_bits(matrix)
    rows = graph.add("Gather", [graph.constant("embedding", integers), "character"], "row", axis=0)
    factors = graph.add(
        "Gather", [graph.constant("embedding.scale", scales[:, :, None]), "character"], "scale"
    )
    numbers = graph.add("Cast", [rows], "numbers", to=TensorProto.FLOAT)
    x = graph.add("Mul", [numbers, factors], "blocks")
    return graph.add("Reshape", [x, graph.constant("one_row", np.array([1, 1, WIDTH]))], "embedded")


def attention(graph: Graph, x: str, weights: Weights, layer: int, total: str) -> str:
    q, k, v = (
        graph.dense(x, weights[f"{layer}.{name}"], f"{name}{layer}") for name in ("query", "key", "value")
    )
    caches = [f"past_key{layer}", f"past_value{layer}"]
    present = (f"present_key{layer}", f"present_value{layer}")
    y = graph.add(
        "GroupQueryAttention",
        [q, k, v, *caches, "position", total, "cosines", "sines"],
        f"attention{layer}",
        present,
        num_heads=HEADS,
        kv_num_heads=GROUPS,
        do_rotary=1,
    )
    return graph.dense(y, weights[f"{layer}.out"], f"out{layer}")


def write(weights: Weights, path: Path) -> None:
    graph = Graph()
    graph.constant("cosines", COSINES[:ROWS])
    graph.constant("sines", SINES[:ROWS])
    following = graph.add("Add", ["position", graph.constant("one", np.array([1], np.int32))], "following")
    total = graph.add("Squeeze", [following], "total")
    x = embedded(graph, weights["embedding"])
    for layer in range(LAYERS):
        a = graph.normal(x, weights[f"{layer}.before_attention"], f"before_attention{layer}")
        x = graph.add("Add", [x, attention(graph, a, weights, layer, total)], f"attended{layer}")
        b = graph.normal(x, weights[f"{layer}.before_dense"], f"before_dense{layer}")
        up = graph.dense(b, weights[f"{layer}.up"], f"up{layer}")
        down = graph.dense(graph.add("Relu", [up], f"relu{layer}"), weights[f"{layer}.down"], f"down{layer}")
        x = graph.add("Add", [x, down], f"layer{layer}")
    last = graph.normal(x, weights["last"] / np.float32(TEMPERATURE), "last")
    graph.add("Softmax", [graph.dense(last, weights["embedding"], "logits")], "probabilities", axis=-1)
    onnx.save(finished(graph, len(weights["embedding"])), path)
    print(f"{path.name}: {path.stat().st_size} bytes")


def finished(graph: Graph, characters: int) -> onnx.ModelProto:
    cache = (1, GROUPS, ROWS, SIZE)
    pairs = {f"past_{k}{i}": f"present_{k}{i}" for i in range(LAYERS) for k in ("key", "value")}
    value = helper.make_tensor_value_info
    inputs = [
        value("character", TensorProto.INT32, (1, 1)),
        value("position", TensorProto.INT32, (1,)),
        *(value(name, TensorProto.FLOAT, cache) for name in pairs),
    ]
    outputs = [
        value("probabilities", TensorProto.FLOAT, (1, 1, characters)),
        *(value(name, TensorProto.FLOAT, cache) for name in pairs.values()),
    ]
    made = helper.make_graph(graph.nodes, "writer", inputs, outputs, graph.constants)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(made, opset_imports=imports, ir_version=8, producer_name="samples/writer")
    helper.set_model_props(model, {"tinyml.states": json.dumps(pairs)})
    return model
