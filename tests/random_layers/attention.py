# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Attention of random sizes on bytes and floats: masks that are constants or arrive at run time, for each key
or each query and key, besides later keys that are hidden; positions; biases. Some queries see no key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.random_layers.plain import Sampler
from tinyml.ir import Array, DType, Graph, Layer, Node, Quant, Tensor
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.attention_int8 import ALL, EARLIER, EVERY, MEAN, ONCE, UNIT, ZEROS, AttentionInt8
from tinyml.ops.attention.heads import BIAS, MASK, Rows
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.binary_int8 import linear_sum
from tinyml.ops.shared.quant import NO_CLAMP

LOWEST = float(np.finfo(np.float32).min)
SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 20, 32, 33)
LENGTHS = (1, 2, 3, 4, 5, 9, 15, 16, 17, 31, 32, 40, 65)
VISIBLE, POSITION = "_visible", "_position"
"""The ends of the names of inputs that are not drawn like others."""


def attention_layer(rng: np.random.Generator, name: str) -> Graph:
    """A graph with one layer."""
    draw = Sampler(rng, name)
    return _bytes(draw) if draw.pick(0, 0, 1) == 0 else _floats(draw)


def attention_input(rng: np.random.Generator, tensor: Tensor) -> Array | None:
    """Of a mask or of a position; None of other tensors."""
    if tensor.name.endswith(VISIBLE):
        density = float(rng.choice([0.0, 0.1, 0.5, 0.5, 0.9, 1.0]))
        found = rng.random(tensor.shape) < density
        if tensor.shape[-1] > 1 and rng.random() < 0.4:  # padding, at either end
            limit = int(rng.integers(0, tensor.shape[-1] + 1))
            found[...] = (np.arange(tensor.shape[-1]) < limit) != (rng.random() < 0.3)
        return np.asarray(found)
    if tensor.name.endswith(POSITION):
        return rng.integers(-3, 70, tensor.shape).astype(tensor.dtype.numpy)
    return None


def _sizes(draw: Sampler) -> dict[str, Any]:
    """Where rows are; heads may share keys and values, and be side by side."""
    heads, keys = draw.pick(1, 1, 2, 3, 4), draw.pick(*LENGTHS[1:])
    queries = draw.pick(1, keys, *LENGTHS)
    depth, values = draw.pick(4, 8, 16, *SIZES), draw.pick(4, 8, 16, *SIZES)
    shared = heads if draw.pick(0, 0, 1) else 1  # heads of queries for each one of keys
    beside = bool(draw.pick(0, 1))
    named: dict[str, Any] = {"queries": queries, "keys": keys, "depth": depth, "values": values}
    sizes = {"q": (queries, depth, 1), "k": (keys, depth, shared), "v": (keys, values, shared)}
    for word, (rows, elements, each) in (sizes | {"y": (queries, values, 1)}).items():
        places = [head // each for head in range(heads)]
        first = elements if beside else rows * elements
        named[f"{word}_starts"] = tuple(place * first for place in places)
        named[f"{word}_step"] = elements * heads // each if beside else elements
    named["shape"] = (queries, heads * values) if beside else (heads, queries, values)
    if draw.pick(0, 0, 1):
        named |= {"causal": True, "past": draw.pick(0, 0, 1, max(keys - queries, 0), keys)}
    return named


def _read(op: AttentionInt8 | Attention, draw: Sampler, quants: Sequence[Quant | None]) -> list[Tensor]:
    """Queries, keys and values."""
    sizes = ((op.queries, op.depth), (op.keys, op.depth), (op.keys, op.values))
    found = []
    for word, rows, (count, elements), quant in zip("qkv", op.read, sizes, quants, strict=True):
        size = max(rows.starts) + (count - 1) * rows.step + elements + draw.pick(0, 0, 3)
        found.append(Tensor(f"{draw.name}_{word}", (size,), DType.INT8 if quant else DType.FLOAT32, quant))
    return found


def _rows(draw: Sampler, op: dict[str, Any]) -> Rows:
    """Of a mask: for each key, or for each query and key, the same for all heads or not."""
    heads, queries, keys = len(op["y_starts"]), op["queries"], op["keys"]
    step = keys if draw.pick(0, 1) else 0
    size = queries * keys if step else keys
    each = bool(draw.pick(0, 0, 1))
    return Rows(tuple(head * size if each else 0 for head in range(heads)), step)


def _elements(rows: Rows, op: dict[str, Any]) -> int:
    return int(max(rows.starts) + (op["queries"] - 1) * rows.step + op["keys"])


def _bytes(draw: Sampler) -> Graph:
    rng, sizes = draw.rng, _sizes(draw)
    form = ("", "given", "given", "given", "constant", "position")[draw.pick(*range(6))]
    zeros = [draw.pick(-128, -1, 0, 3, 127) for _ in range(5)]
    scores = Quant.per_tensor(float(rng.choice([0.02, 0.1, 0.4, 1.0])), zeros[0])
    named: dict[str, Any] = {"scores": scores, "scaled": scores, "round_once": bool(draw.pick(0, 1, 1))}
    named["weights"] = Quant.per_tensor(1 / 256, -128)
    if draw.pick(0, 0, 0, 1):
        steps = np.rint(np.arange(-128, 128) * rng.uniform(0.2, 1.2) + draw.pick(-9, 0, 3))
        table = tuple(int(v) for v in np.clip(steps, -128, 127))
        named |= {"table": table, "scaled": Quant.per_tensor(0.1, 3)}
    if form in ("", "position") and draw.pick(0, 0, 1):
        named |= {"by_table": False, "round_once": False}
    more: list[Tensor | None] = []
    if form == "given":
        rows = _rows(draw, sizes)
        named |= {"mask_starts": rows.starts, "mask_step": rows.step, "inverted": bool(draw.pick(0, 1))}
        named["blind"] = (ZEROS, MEAN, ALL)[draw.pick(0, 1, 2)]
        named["blind_keys"] = (EVERY, EARLIER, ONCE)[draw.pick(0, 1, 2)]
        more = [Tensor(f"{draw.name}{VISIBLE}", (_elements(rows, sizes),), DType.BOOL)]
    elif form == "constant":
        mask = rng.random((sizes["queries"], sizes["keys"])) < float(rng.choice([0.1, 0.6, 0.95]))
        mask[:, 0] = True  # each query sees a key
        named["mask_step"] = sizes["keys"]
        more = [Tensor.constant(f"{draw.name}_seen", mask)]
    elif form == "position":
        sizes |= {"causal": True, "past": draw.pick(0, 0, -2, 1)}
        more = [None, Tensor(f"{draw.name}{POSITION}", (1,), (DType.INT32, DType.INT64)[draw.pick(0, 1)])]
    bias = _bias(draw, sizes, named) if draw.pick(0, 0, 1) else None
    more += [None] * (BIAS - MASK - len(more)) + [bias]
    op = AttentionInt8(**sizes, **{"scores": UNIT, **named})
    scales = (0.02, 0.03, float(rng.choice([0.01, 0.05])))
    quants = [Quant.per_tensor(scale, zero) for scale, zero in zip(scales, zeros[1:4], strict=True)]
    result = Quant.per_tensor(float(rng.choice([0.006, 0.02])), zeros[4])
    y = Tensor(f"{draw.name}_y", op.shape, DType.INT8, result)
    return _graph(draw, op, [*_read(op, draw, quants), *more], y)


def _bias(draw: Sampler, sizes: dict[str, Any], named: dict[str, Any]) -> Tensor | None:
    """Bytes that are added to scores, with the layer's attributes; None if one step does not add them."""
    rows, summed = _rows(draw, sizes), named["scaled"]
    quants = [
        Quant.per_tensor(summed.scale * float(draw.rng.uniform(0.2, 1.1)), draw.pick(-128, -7, 0, 127))
        for _ in range(2)
    ]
    once = bool(draw.pick(0, 1))
    line = [Tensor("", (1,), DType.INT8, quant) for quant in (*quants, summed)]
    if linear_sum("add", NO_CLAMP, Layer("", Binary("add"), tuple(line[:2]), (line[2],)), once) is None:
        return None
    named |= {"bias_starts": rows.starts, "bias_step": rows.step, "unbiased": quants[0], "add_once": once}
    if not named.get("table"):
        named["scores"] = quants[0]
    shape = (_elements(rows, sizes),)
    if draw.pick(0, 1):
        return Tensor(f"{draw.name}_bias", shape, DType.INT8, quants[1])
    drawn = draw.rng.integers(-128, 128, shape).astype(np.int8)
    return Tensor.constant(f"{draw.name}_bias", drawn, quants[1])


def _floats(draw: Sampler) -> Graph:
    rng, sizes = draw.rng, _sizes(draw)
    named: dict[str, Any] = {"scale": sizes["depth"] ** -0.5, "softcap": (0.0, 0.0, 1.5)[draw.pick(0, 1, 2)]}
    mask = bias = place = None
    if draw.pick(0, 1, 1):
        rows = _rows(draw, sizes)
        named |= {"mask_starts": rows.starts, "mask_step": rows.step}
        size = (_elements(rows, sizes),)
        if draw.pick(0, 1, 1):
            mask = Tensor(f"{draw.name}{VISIBLE}", size, DType.BOOL)
            low = float(rng.choice([-np.inf, -3.0, LOWEST]))
            named |= {"low": low, "inverted": bool(draw.pick(0, 1)), "empty": low == -np.inf}
        else:
            mask = Tensor(f"{draw.name}_mask", size, DType.FLOAT32)
    if draw.pick(0, 1):
        rows = _rows(draw, sizes)
        named |= {"bias_starts": rows.starts, "bias_step": rows.step}
        bias = Tensor(f"{draw.name}_bias", (_elements(rows, sizes),), DType.FLOAT32)
        if draw.pick(0, 1):
            bias = Tensor.constant(bias.name, rng.normal(0, 2, bias.shape).astype(np.float32))
    if draw.pick(0, 0, 0, 1):
        sizes |= {"causal": True, "past": draw.pick(0, -2, 1)}
        place = Tensor(f"{draw.name}{POSITION}", (1,), (DType.INT32, DType.INT64)[draw.pick(0, 1)])
        if mask is not None and mask.dtype is DType.BOOL:
            named["empty"] = False
            named["low"] = -3.0
    op = Attention(**sizes, **named)
    y = Tensor(f"{draw.name}_y", op.shape, DType.FLOAT32)
    return _graph(draw, op, [*_read(op, draw, (None,) * 3), mask, place, bias], y)


def _graph(draw: Sampler, op: AttentionInt8 | Attention, inputs: Sequence[Tensor | None], y: Tensor) -> Graph:
    while inputs[-1] is None:
        inputs = inputs[:-1]
    node = Node(draw.name, op, tuple("" if t is None else t.name for t in inputs), (y.name,))
    there = [tensor for tensor in inputs if tensor is not None]
    given = tuple(tensor.name for tensor in there if not tensor.is_constant)
    return Graph("layers", {t.name: t for t in (*there, y)}, (node,), given, (y.name,))
