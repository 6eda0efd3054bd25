# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The layers of a float model, as people think of them: an operator with the activation after it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence

import onnx

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ops.framework.quantization_facts import quantizing


@dataclass(frozen=True)
class FloatLayer:
    """Nodes that are quantised together, or not at all."""

    name: str
    op_type: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    output: str


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
        declared = quantizing(node.op_type)
        if declared.matrices:
            output = next(name for name in node.output if name)
            if constants >= {node.input[index] for index in declared.matrices}:
                inputs = tuple(node.input[:1])
                layers.append(FloatLayer(node.name, node.op_type, (node.name,), inputs, output))
            continue
        if declared.trees:
            layers.append(
                FloatLayer(node.name, node.op_type, (node.name,), tuple(node.input), node.output[-1])
            )
        if node.domain not in ("", "ai.onnx", "com.microsoft") or not declared.activations:
            continue
        if node.name in inside or declared.stays_float(node):
            continue
        nodes, last = [node.name], node.output[0]
        after = readers.get(last, [])
        if len(after) == 1 and quantizing(after[0].op_type).limits and last not in kept:
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
    nodes = [node for node in model.graph.node if node.name not in excluded]
    int8 = {node.name for node in nodes if quantizing(node.op_type).activations}
    found = {node.name for node in nodes if quantizing(node.op_type).moves}
    while touched := {name for name in found if near[name] & (int8 - found)}:
        found -= touched
    return found


def chosen(
    layers: Sequence[FloatLayer], names: Iterable[str], others: Sequence[str] = ()
) -> list[FloatLayer]:
    """The layers a user named, by any of their nodes or by their output; ``others`` could be named too."""
    known = {name: layer for layer in layers for name in (layer.output, *layer.nodes)}
    found = []
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, [*known, *others], 3)
            possible = [*(one.name for one in layers), *others]
            hint = f"did you mean {' or '.join(close)}?" if close else _listed(possible)
            raise ConfigError(f"there is no layer called {name!r} that could be quantised", hint)
        found.append(known[name])
    return found


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12])
    return f"one of: {shown}" + (f" ... ({len(names)} in all)" if len(names) > 12 else "")
