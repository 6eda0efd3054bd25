# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A small transformer in numpy: forward, backward, and as an ONNX file.

Rows of a window become tokens; each layer looks from every token at all others (attention), then computes
each by itself (two dense layers with a relu between them); the mean of all tokens decides.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))

from network import Array, Layer, finished

TOKENS, FEATURES = 16, 12  # four samples of three axes are a token
WIDTH, HEADS, HIDDEN, LAYERS = 32, 2, 64, 2
SIZE = WIDTH // HEADS
EPSILON = 1e-5
MATRICES = {"query": WIDTH, "key": WIDTH, "value": WIDTH, "out": WIDTH, "up": HIDDEN, "down": WIDTH}
NORMS = ("before_attention", "before_dense")


class Transformer(Layer):
    """(samples, 1, rows, axes) to logits; matrices are (inputs, outputs)."""

    def __init__(self, classes: int, random: np.random.Generator) -> None:
        super().__init__()
        w = self.weights
        self._add_dense("embedding", FEATURES, WIDTH, random)
        w["places"] = random.normal(0.0, 0.1, (TOKENS, WIDTH))
        for at in range(LAYERS):
            before = dict.fromkeys(MATRICES, WIDTH) | {"down": HIDDEN}
            for name, after in MATRICES.items():
                self._add_dense(f"{name}{at}", before[name], after, random)
            for name in NORMS:
                w[f"{name}{at}.weight"], w[f"{name}{at}.bias"] = np.ones(WIDTH), np.zeros(WIDTH)
        self._add_dense("classes", WIDTH, classes, random)

    def _add_dense(self, name: str, before: int, after: int, random: np.random.Generator) -> None:
        self.weights[f"{name}.weight"] = random.normal(0.0, before**-0.5, (before, after))
        self.weights[f"{name}.bias"] = np.zeros(after)

    # --- layers: what a name has seen on the way forward is kept for the way back ---------------------

    def _dense(self, name: str, x: Array) -> Array:
        self.kept[name] = x
        return x @ self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _dense_back(self, name: str, grad: Array) -> Array:
        x, flat = self.kept[name], grad.reshape(-1, grad.shape[-1])
        self.gradients[f"{name}.weight"] = x.reshape(-1, x.shape[-1]).T @ flat
        self.gradients[f"{name}.bias"] = flat.sum(axis=0)
        return grad @ self.weights[f"{name}.weight"].T

    def _norm(self, name: str, x: Array) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        inverse = 1.0 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
        self.kept[name] = (centred * inverse, inverse)
        return centred * inverse * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _norm_back(self, name: str, grad: Array) -> Array:
        unit, inverse = self.kept[name]
        self.gradients[f"{name}.weight"] = (grad * unit).sum(axis=(0, 1))
        self.gradients[f"{name}.bias"] = grad.sum(axis=(0, 1))
        inner = grad * self.weights[f"{name}.weight"]
        along = (inner * unit).mean(axis=-1, keepdims=True)
        return inverse * (inner - inner.mean(axis=-1, keepdims=True) - unit * along)

    def _attention(self, at: int, x: Array) -> Array:
        q, k, v = (_heads(self._dense(f"{name}{at}", x)) for name in ("query", "key", "value"))
        scores = q @ k.swapaxes(2, 3) * SIZE**-0.5
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        self.kept[f"attention{at}"] = (q, k, v, p)
        return self._dense(f"out{at}", _joined(p @ v))

    def _attention_back(self, at: int, grad: Array) -> Array:
        q, k, v, p = self.kept[f"attention{at}"]
        inner = _heads(self._dense_back(f"out{at}", grad))
        to_p = inner @ v.swapaxes(2, 3)
        to_scores = p * (to_p - (to_p * p).sum(axis=-1, keepdims=True)) * SIZE**-0.5
        parts = {
            "query": to_scores @ k,
            "key": to_scores.swapaxes(2, 3) @ q,
            "value": p.swapaxes(2, 3) @ inner,
        }
        return sum(self._dense_back(f"{name}{at}", _joined(part)) for name, part in parts.items())

    # --- the whole --------------------------------------------------------------------------------------

    def forward(self, x: Array) -> Array:
        self.kept: dict[str, Any] = {}
        x = self._dense("embedding", x.reshape(len(x), TOKENS, FEATURES)) + self.weights["places"]
        for at in range(LAYERS):
            x = x + self._attention(at, self._norm(f"before_attention{at}", x))
            up = np.maximum(self._dense(f"up{at}", self._norm(f"before_dense{at}", x)), 0)
            x = x + self._dense(f"down{at}", up)
        return self._dense("classes", x.mean(axis=1))

    def backward(self, grad: Array) -> Array:
        grad = np.repeat(self._dense_back("classes", grad)[:, None] / TOKENS, TOKENS, axis=1)
        for at in reversed(range(LAYERS)):
            inner = self._dense_back(f"down{at}", grad) * (self.kept[f"down{at}"] > 0)
            grad = grad + self._norm_back(f"before_dense{at}", self._dense_back(f"up{at}", inner))
            grad = grad + self._norm_back(f"before_attention{at}", self._attention_back(at, grad))
        self.gradients["places"] = grad.sum(axis=0)
        return self._dense_back("embedding", grad)


def _heads(x: Array) -> Array:
    return x.reshape(*x.shape[:2], HEADS, SIZE).transpose(0, 2, 1, 3)


def _joined(x: Array) -> Array:
    return x.transpose(0, 2, 1, 3).reshape(len(x), TOKENS, WIDTH)


class _File:
    """Nodes and constants of the ONNX file."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants = [
            numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()
        ]

    def shape(self, name: str, *sizes: int) -> str:
        self.constants.append(numpy_helper.from_array(np.array(sizes), name))
        return name

    def add(self, op: str, inputs: list[str], name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def dense(self, x: str, name: str) -> str:
        product = self.add("MatMul", [x, f"{name}.weight"], f"{name}.product")
        return self.add("Add", [product, f"{name}.bias"], name)

    def norm(self, x: str, name: str) -> str:
        operands = [x, f"{name}.weight", f"{name}.bias"]
        return self.add("LayerNormalization", operands, name, axis=-1, epsilon=EPSILON)

    def attention(self, x: str, at: int) -> str:
        heads = []
        for name, perm in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
            apart = self.add("Reshape", [self.dense(x, f"{name}{at}"), "apart"], f"{name}{at}.apart")
            heads.append(self.add("Transpose", [apart], f"{name}{at}.heads", perm=perm))
        scores = self.add("MatMul", heads[:2], f"scores{at}")
        scaled = self.add("Mul", [scores, "scale"], f"scaled{at}")
        weights = self.add("Softmax", [scaled], f"attention{at}", axis=-1)
        values = self.add("MatMul", [weights, heads[2]], f"values{at}")
        turned = self.add("Transpose", [values], f"turned{at}", perm=[0, 2, 1, 3])
        return self.dense(self.add("Reshape", [turned, "joined"], f"joined{at}"), f"out{at}")


def to_onnx(network: Transformer, rows: int, axes: int, metadata: Mapping[str, str]) -> onnx.ModelProto:
    """The trained network as a float model."""
    file = _File(network.weights | {"scale": np.array(SIZE**-0.5)})
    file.shape("apart", 1, TOKENS, HEADS, SIZE)
    file.shape("joined", 1, TOKENS, WIDTH)
    x = file.add("Reshape", ["input", file.shape("tokens_shape", 1, TOKENS, FEATURES)], "tokens")
    x = file.add("Add", [file.dense(x, "embedding"), "places"], "placed")
    for at in range(LAYERS):
        x = file.add("Add", [x, file.attention(file.norm(x, f"before_attention{at}"), at)], f"attended{at}")
        up = file.add("Relu", [file.dense(file.norm(x, f"before_dense{at}"), f"up{at}")], f"relu{at}")
        x = file.add("Add", [x, file.dense(up, f"down{at}")], f"layer{at}")
    mean = file.add("ReduceMean", [x], "mean", axes=[1], keepdims=0)
    file.add("Softmax", [file.dense(mean, "classes")], "scores", axis=-1)
    classes = network.weights["classes.bias"].size
    graph = helper.make_graph(
        file.nodes,
        "gesture",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 1, rows, axes])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, classes])],
        file.constants,
    )
    return finished(graph, metadata)
