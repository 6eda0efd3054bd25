# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The layers of a float model, as people think of them: an operator with the activation behind it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import onnx

from tinyml.errors import ConfigError

CANDIDATES = frozenset(
    """Conv ConvTranspose Gemm MatMul
    Relu Clip LeakyRelu PRelu Elu Selu Celu HardSigmoid HardSwish Sigmoid Tanh Softplus Softsign Mish Gelu
    Exp Log Sqrt Reciprocal Abs Neg Erf Softmax
    Add Sub Mul Div Max Min
    MaxPool AveragePool ReduceMean ReduceMax ReduceMin GlobalMaxPool
    Reshape Flatten Squeeze Unsqueeze Transpose Slice Split Concat Pad Gather Resize Expand Tile Identity
    DepthToSpace SpaceToDepth Where""".split()  # noqa: SIM905 (one name per line would fill a page)
)
"""Operators worth trying. Those that the compiler would compute in float all the same are left out again."""

ACTIVATIONS = ("Relu", "Clip")
"""Become limits of the layer before them: never quantised, or kept, on their own."""

MOVEMENT = frozenset(
    ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "Concat", "Pad", "Gather",
     "Identity", "Expand", "Tile", "DepthToSpace", "SpaceToDepth")
)  # fmt: skip
"""Operators that only move numbers: they lose nothing and gain nothing."""

RECURRENT = ("LSTM", "GRU", "RNN")
"""Operators whose weights become int8 while their activations stay float."""

WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclass(frozen=True)
class FloatLayer:
    """Nodes that are quantised together, or not at all."""

    name: str
    op_type: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    output: str


def fixed_in_float(node: onnx.NodeProto) -> bool:
    """Padding with a value of its own, which would no longer be a constant if it were quantised."""
    return node.op_type == "Pad" and len(node.input) > 2 and bool(node.input[2])


def find_layers(model: onnx.ModelProto) -> list[FloatLayer]:
    """In the order of the file; only operators that can be quantised."""
    constants = {tensor.name for tensor in model.graph.initializer}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    kept = {value.name for value in model.graph.output}
    inside: set[str] = set()
    layers = []
    for node in model.graph.node:
        if node.op_type in RECURRENT and constants >= {*node.input[1:3]}:
            output = next(name for name in node.output if name)
            layers.append(FloatLayer(node.name, node.op_type, (node.name,), tuple(node.input[:1]), output))
        if node.domain not in ("", "ai.onnx", "com.microsoft") or node.op_type not in CANDIDATES:
            continue
        if node.name in inside or fixed_in_float(node):
            continue
        nodes, last = [node.name], node.output[0]
        after = readers.get(last, [])
        if len(after) == 1 and after[0].op_type in ACTIVATIONS and last not in kept:
            nodes.append(after[0].name)
            inside.add(after[0].name)
            last = after[0].output[0]
        layers.append(FloatLayer(node.name, node.op_type, tuple(nodes), tuple(node.input), last))
    return layers


def in_float_surroundings(model: onnx.ModelProto, excluded: Collection[str]) -> set[str]:
    """Nodes that only move numbers between float layers: int8 on the way would cost precision."""
    near: dict[str, set[str]] = {node.name: set() for node in model.graph.node}
    producers = {name: node.name for node in model.graph.node for name in node.output if name}
    for node in model.graph.node:
        for source in (producers[name] for name in node.input if name in producers):
            near[node.name].add(source)
            near[source].add(node.name)
    int8 = {n.name for n in model.graph.node if n.op_type in CANDIDATES and n.name not in excluded}
    found = {node.name for node in model.graph.node if node.op_type in MOVEMENT and node.name in int8}
    while touched := {name for name in found if near[name] & (int8 - found)}:
        found -= touched
    return found


def chosen(layers: Sequence[FloatLayer], names: Iterable[str]) -> list[FloatLayer]:
    """The layers a user named, by any of their nodes or by their output."""
    known = {name: layer for layer in layers for name in (layer.output, *layer.nodes)}
    found = []
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 3)
            hint = f"did you mean {' or '.join(close)}?" if close else _listed([one.name for one in layers])
            raise ConfigError(f"there is no layer called {name!r} that could be quantised", hint)
        found.append(known[name])
    return found


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12])
    return f"one of: {shown}" + (f" ... ({len(names)} in all)" if len(names) > 12 else "")
