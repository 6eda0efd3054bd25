# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Transformers of random weights in the size of published ones, written as PyTorch exports them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.ir import Array


@dataclass(frozen=True)
class Size:
    """Rows of features in, a class for each score out."""

    length: int
    features: int
    width: int
    heads: int
    hidden: int
    layers: int
    classes: int


KWT_1 = Size(length=98, features=40, width=64, heads=1, hidden=256, layers=12, classes=35)


class Writer:
    """Nodes and random constants of a file."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: Array) -> str:
        if value.dtype != np.int64:
            value = value.astype(np.float32)
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def add(self, op: str, inputs: list[str], name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def dense(self, x: str, before: int, after: int, name: str) -> str:
        spread = before**-0.5
        matrix = self.constant(f"{name}.weight", self.random.normal(0.0, spread, (before, after)))
        bias = self.constant(f"{name}.bias", self.random.normal(0.0, 0.1, after))
        return self.add("Add", [bias, self.add("MatMul", [x, matrix], f"{name}.product")], name)

    def normal(self, x: str, width: int, name: str) -> str:
        factors = self.constant(f"{name}.weight", self.random.uniform(0.7, 1.3, width))
        bias = self.constant(f"{name}.bias", self.random.normal(0.0, 0.1, width))
        return self.add("LayerNormalization", [x, factors, bias], name, axis=-1, epsilon=1e-5)

    def gelu(self, x: str, name: str) -> str:
        """As PyTorch writes it before opset 20."""
        divided = self.add("Div", [x, self.constant(f"{name}.root", np.array(2.0**0.5))], f"{name}.divided")
        error = self.add("Erf", [divided], f"{name}.erf")
        added = self.add("Add", [error, self.constant(f"{name}.one", np.array(1.0))], f"{name}.added")
        twice = self.add("Mul", [x, added], f"{name}.twice")
        return self.add("Mul", [twice, self.constant(f"{name}.half", np.array(0.5))], name)


def _attention(file: Writer, x: str, size: Size, rows: int, name: str) -> str:
    depth = size.width // size.heads
    split = file.constant(f"{name}.split", np.array([1, rows, size.heads, depth]))
    parts = {}
    for word, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        part = file.dense(x, size.width, size.width, f"{name}.{word}")
        apart = file.add("Reshape", [part, split], f"{name}.{word}.apart")
        parts[word] = file.add("Transpose", [apart], f"{name}.{word}.heads", perm=perm)
    scores = file.add("MatMul", [parts["q"], parts["k"]], f"{name}.scores")
    scale = file.constant(f"{name}.scale", np.array(depth**-0.5))
    scaled = file.add("Mul", [scores, scale], f"{name}.scaled")
    weights = file.add("Softmax", [scaled], f"{name}.weights", axis=-1)
    y = file.add("MatMul", [weights, parts["v"]], f"{name}.values")
    turned = file.add("Transpose", [y], f"{name}.turned", perm=[0, 2, 1, 3])
    joined = file.constant(f"{name}.joined_shape", np.array([1, rows, size.width]))
    return file.dense(
        file.add("Reshape", [turned, joined], f"{name}.joined"), size.width, size.width, f"{name}.out"
    )


def transformer(size: Size, seed: int = 0) -> onnx.ModelProto:
    """Normalisation before both parts of a layer; a row of its own collects what the last layer reads."""
    file = Writer(seed)
    rows = size.length + 1
    x = file.dense("input", size.features, size.width, "embedding")
    first = file.constant("class_row", file.random.normal(0.0, 1.0, (1, 1, size.width)))
    x = file.add("Concat", [first, x], "rows", axis=1)
    places = file.constant("places", file.random.normal(0.0, 0.5, (1, rows, size.width)))
    x = file.add("Add", [x, places], "placed")
    for layer in range(size.layers):
        at = f"layer{layer}"
        a = _attention(file, file.normal(x, size.width, f"{at}.norm1"), size, rows, f"{at}.attention")
        x = file.add("Add", [a, x], f"{at}.attended")
        up = file.dense(file.normal(x, size.width, f"{at}.norm2"), size.width, size.hidden, f"{at}.up")
        down = file.dense(file.gelu(up, f"{at}.gelu"), size.hidden, size.width, f"{at}.down")
        x = file.add("Add", [down, x], f"{at}.out")
    row = file.add("Gather", [x, file.constant("first", np.array(0))], "first_row", axis=1)
    file.dense(file.normal(row, size.width, "last_norm"), size.width, size.classes, "scores")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        file.nodes,
        "transformer",
        [value("input", TensorProto.FLOAT, (1, size.length, size.features))],
        [value("scores", TensorProto.FLOAT, (1, size.classes))],
        file.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def write(size: Size, path: Path, seed: int = 0) -> Path:
    onnx.save(transformer(size, seed), path)
    return path
