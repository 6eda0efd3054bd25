# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random decoders of one layer, with a cache of keys and values as state, in the forms that exporters write.

Each step has the vectors of one token or of several, which are projected to queries, keys and values, and
the position of the first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.ir import Array

MICROSOFT = "com.microsoft"
STATES = {"past_key": "present_key", "past_value": "present_value"}


@dataclass(frozen=True)
class Shape:
    """What a decoder looks like."""

    form: str  # of FORMS
    groups: int  # heads of keys and values
    many: int  # heads of queries for each of them
    size: int  # elements of a head
    longest: int
    steps: int = 1  # tokens of a run
    rotary: bool = False
    interleaved: bool = False
    softcap: float = 0.0

    @property
    def heads(self) -> int:
        return self.groups * self.many

    @property
    def width(self) -> int:
        return 12

    @property
    def name(self) -> str:
        turned = "_interleaved" if self.interleaved else "_rotary" if self.rotary else ""
        sizes = f"{self.groups}x{self.many}x{self.size}_{self.longest}_{self.steps}"
        return f"{self.form}_{sizes}{turned}{'_capped' if self.softcap else ''}"


class _Nodes:
    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(seed)

    def constant(self, value: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def weights(self, *shape: int) -> str:
        return self.constant((self.random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32))

    def __call__(self, op: str, *inputs: str, outputs: tuple[str, ...] = (), **attributes: Any) -> str:
        domain = MICROSOFT if op in ("GroupQueryAttention", "MultiHeadAttention") else ""
        names = outputs or (f"t{len(self.nodes)}",)
        self.nodes.append(helper.make_node(op, list(inputs), list(names), domain=domain, **attributes))
        return names[0]

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))


def _angles(shape: Shape) -> tuple[Array, Array]:
    turns = np.arange(shape.longest)[:, None] * 100.0 ** (-np.arange(shape.size // 2) * 2 / shape.size)
    return np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)


def _apart(of: _Nodes, x: str, heads: int, shape: Shape) -> str:
    wide = of("Reshape", x, of.ints(1, shape.steps, heads, shape.size))
    return of("Transpose", wide, perm=[0, 2, 1, 3])


def _grouped(of: _Nodes, q: str, k: str, v: str, shape: Shape) -> str:
    """As onnxruntime's builder of language models writes it."""
    last = of("Add", "position", of.ints(shape.steps - 1))
    lengths = of("Cast", last, to=TensorProto.INT32)
    total = of("Squeeze", of("Add", lengths, of.constant(np.array([1], np.int32))))
    tables = [of.constant(table) for table in _angles(shape)] if shape.rotary else []
    return of(
        "GroupQueryAttention",
        *(q, k, v, "past_key", "past_value", lengths, total, *tables),
        outputs=("attended", "present_key", "present_value"),
        num_heads=shape.heads,
        kv_num_heads=shape.groups,
        do_rotary=int(shape.rotary),
        rotary_interleaved=int(shape.interleaved),
        softcap=shape.softcap,
    )


def _turned(of: _Nodes, x: str, shape: Shape) -> str:
    """Rotary embeddings as PyTorch's exporter writes them."""
    cosines, sines = (
        of("Unsqueeze", of("Gather", of.constant(np.tile(t, (1, 2))), _places(of, shape)), of.ints(0, 1))
        for t in _angles(shape)
    )
    half = shape.size // 2
    first = of("Slice", x, of.ints(0), of.ints(half), of.ints(3))
    second = of("Slice", x, of.ints(half), of.ints(2**62), of.ints(3))
    other = of("Concat", of("Neg", second), first, axis=-1)
    return of("Add", of("Mul", x, cosines), of("Mul", other, sines))


def _places(of: _Nodes, shape: Shape) -> str:
    """(steps,)"""
    return of("Add", "position", of.constant(np.arange(shape.steps, dtype=np.int64)))


def _standard(of: _Nodes, q: str, k: str, v: str, shape: Shape) -> str:
    """ONNX's own operators of version 24."""
    q, k, v = (
        _apart(of, q, shape.heads, shape),
        _apart(of, k, shape.groups, shape),
        _apart(of, v, shape.groups, shape),
    )
    if shape.rotary:
        places = of("Unsqueeze", _places(of, shape), of.ints(0))
        tables = [of.constant(table) for table in _angles(shape)]
        turn = int(shape.interleaved)
        q, k = (of("RotaryEmbedding", x, *tables, places, interleaved=turn) for x in (q, k))
    k = of("TensorScatter", "past_key", k, "position", outputs=("present_key",), axis=2)
    v = of("TensorScatter", "past_value", v, "position", outputs=("present_value",), axis=2)
    length = of("Add", "position", of.ints(shape.steps))
    y = of("Attention", q, k, v, "", "", "", length, is_causal=1, softcap=shape.softcap)
    return of(
        "Reshape", of("Transpose", y, perm=[0, 2, 1, 3]), of.ints(1, shape.steps, shape.heads * shape.size)
    )


def _parts(of: _Nodes, q: str, k: str, v: str, shape: Shape) -> str:
    """The operators of a traced PyTorch model with a static cache; the form says how it is updated."""
    q, k, v = (
        _apart(of, q, shape.heads, shape),
        _apart(of, k, shape.groups, shape),
        _apart(of, v, shape.groups, shape),
    )
    if shape.rotary:
        q, k = _turned(of, q, shape), _turned(of, k, shape)
    k, v = (_written(of, name, new, shape) for name, new in (("key", k), ("value", v)))
    if shape.many > 1:
        wide = of.ints(1, shape.groups, shape.many, shape.longest, shape.size)
        k, v = (
            of(
                "Reshape",
                of("Expand", of("Unsqueeze", x, of.ints(2)), wide),
                of.ints(1, shape.heads, shape.longest, shape.size),
            )
            for x in (k, v)
        )
    scores = of("MatMul", q, of("Transpose", k, perm=[0, 1, 3, 2]))
    scores = of("Mul", scores, of.constant(np.array(shape.size**-0.5, np.float32)))
    keys = of.constant(np.arange(shape.longest, dtype=np.int64)[None, :])
    rows = of("Unsqueeze", _places(of, shape), of.ints(1))
    if shape.form == "where":
        hidden = of("Greater", keys, rows)
        low = of.constant(np.array(np.finfo(np.float32).min, np.float32))
        mask = of("Where", hidden, low, of.constant(np.array(0, np.float32)))
        scores = of("Add", scores, of("Unsqueeze", mask, of.ints(0, 1)))
    else:
        seen = of("Not", of("Greater", keys, rows))
        low = of.constant(np.array(-np.inf, np.float32))
        scores = of("Where", of("Unsqueeze", seen, of.ints(0, 1)), scores, low)
    y = of("MatMul", of("Softmax", scores, axis=-1), v)
    return of(
        "Reshape", of("Transpose", y, perm=[0, 2, 1, 3]), of.ints(1, shape.steps, shape.heads * shape.size)
    )


def _written(of: _Nodes, name: str, new: str, shape: Shape) -> str:
    past, present = f"past_{name}", (f"present_{name}",)
    places = _places(of, shape)
    if shape.form == "where":
        here = of("Equal", of.constant(np.arange(shape.longest, dtype=np.int64)), places)
        return of("Where", of("Unsqueeze", here, of.ints(0, 1, 3)), new, past, outputs=present)
    if shape.form == "elements":
        wide = of("Reshape", places, of.ints(1, 1, shape.steps, 1))
        wide = of("Expand", wide, of.ints(1, shape.groups, shape.steps, shape.size))
        return of("ScatterElements", past, wide, new, outputs=present, axis=2)
    if shape.form == "places":  # as PyTorch exports cache[:, :, position] = new
        heads = np.arange(shape.groups, dtype=np.int64)[None, :, None, None]
        known = np.broadcast_to(np.concatenate([0 * heads, heads], axis=3), (1, shape.groups, shape.steps, 2))
        wide = of("Reshape", places, of.ints(1, 1, shape.steps, 1))
        wide = of("Expand", wide, of.ints(1, shape.groups, shape.steps, 1))
        indices = of("Concat", of.constant(known.copy()), wide, axis=-1)
        return of("ScatterND", past, indices, new, outputs=present)
    rows = of("Transpose", past, perm=[2, 0, 1, 3])
    indices = of("Unsqueeze", places, of.ints(1))
    rows = of("ScatterND", rows, indices, of("Transpose", new, perm=[2, 0, 1, 3]))
    return of("Transpose", rows, outputs=present, perm=[1, 2, 0, 3])


def _growing(of: _Nodes, q: str, k: str, v: str, shape: Shape) -> str:
    """ONNX's Attention, whose present is its past and the new rows."""
    return of(
        "Attention",
        *(q, k, v, "", "past_key", "past_value"),
        outputs=("attended", "present_key", "present_value"),
        is_causal=1,
        q_num_heads=shape.heads,
        kv_num_heads=shape.groups,
        softcap=shape.softcap,
    )


def _heads(of: _Nodes, q: str, k: str, v: str, shape: Shape) -> str:
    """The same by onnxruntime's operator, which has as many heads of keys as of queries."""
    return of(
        "MultiHeadAttention",
        *(q, k, v, "", "", "", "past_key", "past_value"),
        outputs=("attended", "present_key", "present_value"),
        num_heads=shape.heads,
        unidirectional=1,
    )


GROWING = {"growing": _growing, "heads": _heads}
"""The runs count the rows; there is no position."""
FORMS = {
    "grouped": _grouped,
    "standard": _standard,
    "elements": _parts,
    "places": _parts,
    "rows": _parts,
    "where": _parts,
}


def model(shape: Shape, seed: int) -> onnx.ModelProto:
    """Inputs: x, (1, steps, width), and position, (1,); output: y, (1, steps, width)."""
    of = _Nodes(seed)
    sizes = [shape.heads * shape.size, *(shape.groups * shape.size for _ in range(2))]
    q, k, v = (of("MatMul", "x", of.weights(shape.width, size)) for size in sizes)
    y = (FORMS | GROWING)[shape.form](of, q, k, v, shape)
    of("MatMul", y, of.weights(sizes[0], shape.width), outputs=("y",))
    value = helper.make_tensor_value_info
    grows = shape.form in GROWING
    rows, cache = (
        (1, shape.steps, shape.width),
        (1, shape.groups, "past" if grows else shape.longest, shape.size),
    )
    present = (*cache[:2], "total", cache[3]) if grows else cache
    graph = helper.make_graph(
        of.nodes,
        "decoder",
        [
            value("x", TensorProto.FLOAT, rows),
            *([] if grows else [value("position", TensorProto.INT64, (1,))]),
            *(value(name, TensorProto.FLOAT, cache) for name in STATES),
        ],
        [
            value("y", TensorProto.FLOAT, rows),
            *(value(n, TensorProto.FLOAT, present) for n in STATES.values()),
        ],
        of.constants,
    )
    imports = [
        helper.make_opsetid("", 24 if shape.form in ("standard", "growing") else 18),
        helper.make_opsetid(MICROSOFT, 1),
    ]
    made = helper.make_model(graph, opset_imports=imports, ir_version=10)
    helper.set_model_props(made, {"tinyml.states": json.dumps(STATES)})
    return made


def draw(random: np.random.Generator) -> Shape:
    """A decoder of any form."""
    form = str(random.choice(list(FORMS)))
    size = 16 * int(random.integers(1, 3)) if form == "grouped" else 2 * int(random.integers(1, 12))
    rotary = bool(random.random() < 0.6)
    several = form != "where" and random.random() < 0.3
    steps = int(random.integers(2, 5)) if several else 1
    return Shape(
        form,
        groups=int(random.integers(1, 4)),
        many=int(random.integers(1, 4)),
        size=size,
        longest=int(random.integers(max(steps, 2), 40)),
        steps=steps,
        rotary=rotary,
        interleaved=rotary and form in ("grouped", "standard") and bool(random.random() < 0.5),
        softcap=2.5 if form in ("grouped", "standard") and random.random() < 0.2 else 0.0,
    )


def tokens(shape: Shape, random: np.random.Generator, runs: int) -> list[dict[str, Array]]:
    """Inputs of consecutive runs: positions go on, start again, or go back to an earlier one.

    They never skip rows, since GroupQueryAttention of onnxruntime forgets those after a position.
    """
    samples = []
    position = 0
    for _ in range(runs):
        last = shape.longest - shape.steps
        if position > last or random.random() < 0.1:
            position = int(random.integers(0, min(position, last) + 1)) if random.random() < 0.5 else 0
        x = random.normal(size=(1, shape.steps, shape.width)).astype(np.float32)
        samples.append({"x": x, "position": np.array([position])})
        position += shape.steps
    return samples
