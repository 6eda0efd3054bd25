# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoders whose pasts grow by Concat, with the nodes that Hugging Face's exporters write.

``gpt2``: learnt positions, a causal mask cut out of a constant, the mask of tokens added. ``llama``: rotary
embeddings computed from the positions, heads of keys repeated, a mask made of ranges. ``sdpa``: PyTorch's
function, whose factor is split between queries and keys, with its guard, and no mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.ir import Array
from tinyml.reference.session import Session

STYLES = ("gpt2", "llama", "sdpa")
LOWEST = float(np.finfo(np.float32).min)
TOKENS = 11


@dataclass(frozen=True)
class Growing:
    """What a decoder looks like."""

    style: str
    layers: int
    groups: int  # heads of keys and values
    many: int  # heads of queries for each of them
    size: int  # elements of a head
    longest: int
    steps: int = 1
    positions: bool = True  # else they follow from the length of the past
    mask: bool = True

    @property
    def heads(self) -> int:
        return self.groups * self.many

    @property
    def width(self) -> int:
        return self.heads * self.size

    @property
    def pasts(self) -> list[str]:
        return [f"past_key_values.{i}.{what}" for i in range(self.layers) for what in ("key", "value")]


class _Nodes:
    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(seed)

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(self.random.normal(size=shape) / np.sqrt(shape[0]), np.float32)

    def __call__(self, op: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"/{op}_{name}", **attributes))
        return name

    def extent(self, x: str, axis: int) -> str:
        """A number without axes, as PyTorch's x.shape[axis]."""
        return self("Gather", self("Shape", x), self.constant(axis), axis=0)

    def row(self, *numbers: str) -> str:
        """Numbers without axes, side by side."""
        return self("Concat", *(self("Unsqueeze", n, self.constant([0])) for n in numbers), axis=0)

    def expand(self, x: str, wide: str) -> str:
        """PyTorch's x.expand, where -1 keeps an extent."""
        ones = self("ConstantOfShape", self("Shape", wide), value=helper.make_tensor("o", 7, [1], [1]))
        unset = self("Equal", wide, self("Mul", ones, self.constant(-1)))
        return self("Expand", x, self("Where", unset, ones, wide))


def model(shape: Growing, seed: int) -> onnx.ModelProto:
    """Input: input_ids, (batch, length); output: logits, (batch, length, tokens)."""
    of = _Nodes(seed)
    x = of("Gather", of.weights(TOKENS, shape.width), "input_ids", axis=0)
    past = of.extent("past_key_values.0.key", 2)
    length = of.extent("input_ids", 1)
    total = of("Add", past, length)
    places = "position_ids"
    if not shape.positions:
        places = of("Unsqueeze", of("Range", past, total, of.constant(1)), of.constant([0]))
    if shape.style == "gpt2":
        x = of("Add", x, of("Gather", of.weights(64, shape.width), places, axis=0))
    turns = _rotary(of, places, shape) if shape.style != "gpt2" else None
    mask = _mask(of, past, length, total, shape)
    for layer in range(shape.layers):
        x = of("Add", x, _layer(of, x, layer, turns, mask, shape))
        x = of("Tanh", x)
    of("MatMul", x, of.weights(shape.width, TOKENS), output="logits")
    return _finished(of, shape)


def _finished(of: _Nodes, shape: Growing) -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    cache = ("batch_size", shape.groups, "past_sequence_length", shape.size)
    longer = (*cache[:2], "past_sequence_length + sequence_length", cache[3])
    tokens = ("batch_size", "sequence_length")
    inputs = [value("input_ids", TensorProto.INT64, tokens)]
    if shape.mask:
        row = ("batch_size", "past_sequence_length + sequence_length")
        inputs.append(value("attention_mask", TensorProto.INT64, row))
    if shape.positions:
        inputs.append(value("position_ids", TensorProto.INT64, tokens))
    inputs += [value(name, TensorProto.FLOAT, cache) for name in shape.pasts]
    presents = [name.replace("past_key_values", "present") for name in shape.pasts]
    outputs = [value("logits", TensorProto.FLOAT, (*tokens, TOKENS))]
    outputs += [value(name, TensorProto.FLOAT, longer) for name in presents]
    graph = helper.make_graph(of.nodes, "main_graph", inputs, outputs, of.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _rotary(of: _Nodes, places: str, shape: Growing) -> tuple[str, str]:
    """Cosines and sines, (batch, 1, length, size)."""
    speeds = of.constant(100.0 ** (-np.arange(0, shape.size, 2) / shape.size)[None, :, None], np.float32)
    wide = of.row(of.extent(places, 0), of.constant(-1), of.constant(1))
    places = of("Cast", of("Unsqueeze", places, of.constant([1])), to=1)
    turns = of("MatMul", of.expand(speeds, wide), places)
    turns = of("Transpose", turns, perm=[0, 2, 1])
    both = of("Concat", turns, turns, axis=-1)
    cosines, sines = (of("Unsqueeze", of(f, both), of.constant([1])) for f in ("Cos", "Sin"))
    return cosines, sines


def _turned(of: _Nodes, x: str, turns: tuple[str, str] | None) -> str:
    if turns is None:
        return x
    half = of("Div", of.extent(x, 3), of.constant(2))
    half = of("Unsqueeze", half, of.constant([0]))
    first = of("Slice", x, of.constant([0]), half, of.constant([3]), of.constant([1]))
    second = of("Slice", x, half, of.constant([2**62]), of.constant([3]), of.constant([1]))
    other = of("Concat", of("Neg", second), first, axis=-1)
    return of("Add", of("Mul", x, turns[0]), of("Mul", other, turns[1]))


def _mask(of: _Nodes, past: str, length: str, total: str, shape: Growing) -> str:
    """What is added to the scores; empty if there is nothing."""
    if shape.style == "sdpa":
        return ""
    tokens = ""
    if shape.mask:
        tokens = of("Unsqueeze", "attention_mask", of.constant([1, 2]))
        tokens = of("Cast", tokens, to=1)
    if shape.style == "gpt2":
        if not tokens:
            return ""
        hidden = of("Sub", of.constant(1.0, np.float32), tokens)
        return of("Mul", hidden, of.constant(LOWEST, np.float32))
    # llama: ones above the diagonal, of as many columns as there are keys
    low = of("ConstantOfShape", of.row(length, total), value=helper.make_tensor("v", 1, [1], [LOWEST]))
    columns = of("Range", of.constant(0), total, of.constant(1))
    rows = of("Unsqueeze", of("Range", past, total, of.constant(1)), of.constant([1]))
    later = of("Cast", of("Greater", columns, rows), to=1)
    causal = of("Unsqueeze", of("Mul", low, later), of.constant([0, 1]))
    wide = of.row(of.extent("input_ids", 0), of.constant(1), of.constant(-1), of.constant(-1))
    causal = of.expand(causal, wide)
    if not tokens:
        return causal
    padding = of("Equal", of("Add", causal, tokens), of.constant(0.0, np.float32))
    return of("Where", padding, of.constant(LOWEST, np.float32), causal)


def _layer(of: _Nodes, x: str, layer: int, turns: tuple[str, str] | None, mask: str, shape: Growing) -> str:
    q, k, v = (
        _apart(of, of("MatMul", x, of.weights(shape.width, heads * shape.size)), heads, shape)
        for heads in (shape.heads, shape.groups, shape.groups)
    )
    q, k = _turned(of, q, turns), _turned(of, k, turns)
    k, v = (
        of("Concat", f"past_key_values.{layer}.{w}", new, output=f"present.{layer}.{w}", axis=-2)
        for w, new in (("key", k), ("value", v))
    )
    keys = k
    k, v = _repeated(of, k, shape), _repeated(of, v, shape)
    turned = of("Transpose", k, perm=[0, 1, 3, 2])
    if shape.style == "sdpa":
        root = of.constant(shape.size**-0.25, np.float32)
        scores = of("MatMul", of("Mul", q, root), of("Mul", turned, root))
    else:
        scores = of("MatMul", q, turned)
        scores = of("Div", scores, of.constant(shape.size**0.5, np.float32))
    if shape.style == "gpt2":
        scores = of("Where", _cut_out(of, q, keys), scores, of.constant(LOWEST, np.float32))
    if mask:
        end = of("Unsqueeze", of.extent(keys, 2), of.constant([0]))
        cut = of("Slice", mask, of.constant([0]), end, of.constant([3]), of.constant([1]))
        scores = of("Add", scores, cut)
    weights = of("Softmax", scores, axis=-1)
    if shape.style == "sdpa":
        weights = of("Where", of("IsNaN", weights), of.constant(0.0, np.float32), weights)
    y = of("Transpose", of("MatMul", weights, v), perm=[0, 2, 1, 3])
    flat = of.row(of.extent(y, 0), of.extent(y, 1), of.constant(shape.width))
    return of("MatMul", of("Reshape", y, flat), of.weights(shape.width, shape.width))


def _cut_out(of: _Nodes, q: str, keys: str) -> str:
    """GPT-2's mask: rows of the queries, columns of the keys."""
    queries, total = of.extent(q, 2), of.extent(keys, 2)
    start = of("Unsqueeze", of("Sub", total, queries), of.constant([0]))
    end = of("Unsqueeze", total, of.constant([0]))
    whole = of.constant(np.tril(np.ones((64, 64)))[None, None], np.bool_)
    rows = of("Slice", whole, start, end, of.constant([2]), of.constant([1]))
    return of("Slice", rows, of.constant([0]), end, of.constant([3]), of.constant([1]))


def _apart(of: _Nodes, x: str, heads: int, shape: Growing) -> str:
    wide = of.row(of.extent(x, 0), of.extent(x, 1), of.constant(heads), of.constant(shape.size))
    return of("Transpose", of("Reshape", x, wide), perm=[0, 2, 1, 3])


def _repeated(of: _Nodes, x: str, shape: Growing) -> str:
    """transformers' repeat_kv."""
    if shape.many == 1:
        return x
    batch, total = of.extent(x, 0), of.extent(x, 2)
    groups, many, size = (of.constant(n) for n in (shape.groups, shape.many, shape.size))
    wide = of("Expand", of("Unsqueeze", x, of.constant([2])), of.row(batch, groups, many, total, size))
    return of("Reshape", wide, of.row(batch, of.constant(shape.heads), total, size))


def draw(random: np.random.Generator) -> Growing:
    """A decoder of any style."""
    style = str(random.choice(STYLES))
    steps = int(random.integers(2, 5)) if style != "sdpa" and random.random() < 0.4 else 1
    return Growing(
        style,
        layers=int(random.integers(1, 4)),
        groups=int(random.integers(1, 4)),
        many=int(random.integers(1, 4)) if style != "gpt2" else 1,
        size=2 * int(random.integers(1, 9)),
        longest=int(random.integers(max(steps, 2), 40)),
        steps=steps,
        positions=bool(random.random() < 0.6),
        mask=bool(random.random() < 0.7),
    )


def by_onnxruntime(made: onnx.ModelProto, shape: Growing, texts: Array) -> list[Array]:
    """The logits of consecutive runs, with caches that really grow."""
    session = Session(made)
    pasts = {name: np.zeros((1, shape.groups, 0, shape.size), np.float32) for name in shape.pasts}
    found = []
    for run, tokens in enumerate(texts):
        first = run * shape.steps
        feed = {"input_ids": tokens, **pasts}
        if shape.mask:
            feed["attention_mask"] = np.ones((1, first + shape.steps), np.int64)
        if shape.positions:
            feed["position_ids"] = np.arange(first, first + shape.steps)[None, :]
        results = session.run(feed)
        pasts = {name: results[name.replace("past_key_values", "present")] for name in shape.pasts}
        found.append(results["logits"])
    return found


def samples(shape: Growing, texts: Array) -> list[dict[str, Array]]:
    """The same runs of the compiled model."""
    found = []
    for run, tokens in enumerate(texts):
        first = run * shape.steps
        sample = {"input_ids": tokens}
        if shape.positions:
            sample["position_ids"] = np.arange(first, first + shape.steps)[None, :]
        found.append(sample)
    return found


def texts(shape: Growing, random: np.random.Generator) -> Array:
    """Tokens of as many runs as the caches hold: (runs, 1, steps)."""
    return random.integers(0, TOKENS, (shape.longest // shape.steps, 1, shape.steps))
