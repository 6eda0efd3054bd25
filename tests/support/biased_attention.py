# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Attention whose scores have a bias, as T5 (relative positions) and Swin (windows) are exported."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.support.transformers import Writer
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array

HIDDEN = -100.0
"""What Swin adds to scores between parts of a shifted window."""


@dataclass(frozen=True)
class Shape:
    """``windows`` groups of ``tokens`` that see each other only; T5 has one."""

    tokens: int
    heads: int
    depth: int
    windows: int = 1
    shifted: bool = False  # the last window has parts that do not see each other
    given: bool = False  # the bias is an input
    padded: bool = False  # an input says which tokens count; what hides the others is added to the bias first
    scaled: bool = True  # scores are multiplied by a number, which T5 leaves out
    spread: float = 2.0  # of the bias

    @property
    def width(self) -> int:
        return self.heads * self.depth


class _File(Writer):
    def of(self, op: str, *inputs: Any, **attributes: Any) -> str:
        names = [x if isinstance(x, str) else self.fixed(x) for x in inputs]
        return self.add(op, names, f"{op}{len(self.nodes)}", **attributes)

    def fixed(self, value: Any) -> str:
        return self.constant(f"c{len(self.constants)}", np.asarray(value))


def relative(shape: Shape) -> Array:
    """A number for each head and distance: (1, heads, tokens, tokens)."""
    tokens = np.arange(shape.tokens)
    numbers = np.random.default_rng(3).normal(0, shape.spread, (shape.heads, 2 * shape.tokens))
    return numbers[:, tokens[:, None] - tokens + shape.tokens][None]


def parts(shape: Shape) -> Array:
    """(windows, 1, tokens, tokens): the last window has two halves that do not see each other."""
    found = np.zeros((shape.windows, 1, shape.tokens, shape.tokens))
    half = np.arange(shape.tokens) < shape.tokens // 2
    found[-1, 0] = np.where(half[:, None] == half, 0.0, HIDDEN)
    return found


def attention(shape: Shape) -> onnx.ModelProto:
    """With the projections before and after it."""
    file, lead = _File(0), (shape.windows, shape.tokens)
    found = {}
    for word, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        dense = file.dense("x", shape.width, shape.width, word)
        apart = file.of("Reshape", dense, np.array([*lead, shape.heads, shape.depth]))
        found[word] = file.of("Transpose", apart, perm=perm)
    scores = file.of("MatMul", found["q"], found["k"])
    if shape.scaled:
        scores = file.of("Mul", scores, shape.depth**-0.5)
    bias = "bias" if shape.given else file.fixed(relative(shape))
    if shape.padded:
        hidden = file.of("Sub", np.float32(1), file.of("Cast", "kept", to=TensorProto.FLOAT))
        hidden = file.of("Mul", hidden, np.finfo(np.float32).min)
        bias = file.of("Add", bias, file.of("Unsqueeze", hidden, np.array([1, 2])))
    scores = file.of("Add", scores, bias)
    if shape.shifted:
        scores = file.of("Add", scores, parts(shape))
    rows = file.of("MatMul", file.of("Softmax", scores, axis=-1), found["v"])
    together = file.of(
        "Reshape", file.of("Transpose", rows, perm=[0, 2, 1, 3]), np.array([*lead, shape.width])
    )
    y = file.dense(together, shape.width, shape.width, "out")
    value, size = helper.make_tensor_value_info, [*lead, shape.width]
    inputs = [value("x", TensorProto.FLOAT, size)]
    if shape.given:
        inputs.append(value("bias", TensorProto.FLOAT, [1, shape.heads, shape.tokens, shape.tokens]))
    if shape.padded:
        inputs.append(value("kept", TensorProto.INT64, [1, shape.tokens]))
    outputs = [value(y, TensorProto.FLOAT, size)]
    graph = helper.make_graph(file.nodes, "attention", inputs, outputs, file.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def samples(shape: Shape, count: int, seed: int = 1) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    size = (count, shape.windows, shape.tokens, shape.width)
    found = {"x": random.normal(0, 1, size).astype(np.float32)}
    if shape.given:
        bias = relative(shape)[None] * random.uniform(0.5, 1, (count, 1, 1, 1, 1))
        found["bias"] = bias.astype(np.float32)
    if shape.padded:
        counts = random.integers(shape.tokens // 2, shape.tokens + 1, (count, 1, 1))
        found["kept"] = (np.arange(shape.tokens) < counts).astype(np.int64)
    return found
