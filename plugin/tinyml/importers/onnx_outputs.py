# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""An ONNX model with some of its outputs, and only what they need: nodes, constants and inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx

from tinyml.importers.outputs import check_chosen
from tinyml.importers.states import states_of, with_states, without_states


def keep_outputs(model: onnx.ModelProto, chosen: Sequence[str]) -> None:
    """Remove all other outputs; states that the chosen ones need stay, with their updates."""
    outputs = {value.name: value for value in model.graph.output}
    states = states_of(model)
    updates = {state.output for state in states}
    check_chosen(chosen, [name for name in outputs if name not in updates])
    needed = needed_names(model.graph, chosen)
    while True:
        more = [s.output for s in states if s.input in needed and s.output not in needed]
        if not more:
            break
        needed |= needed_names(model.graph, more)
    kept = [state for state in states if state.input in needed]
    graph = model.graph
    without_states(model)
    _keep(graph.node, [node for node in graph.node if needed.intersection(node.output)])
    _keep(graph.initializer, [tensor for tensor in graph.initializer if tensor.name in needed])
    _keep(graph.input, [value for value in graph.input if value.name in needed])
    _keep(graph.output, [outputs[name] for name in dict.fromkeys((*chosen, *(s.output for s in kept)))])
    with_states(model, kept)


def needed_names(graph: onnx.GraphProto, outputs: Iterable[str]) -> set[str]:
    """All values that the given ones depend on, and these."""
    makers = {name: node for node in graph.node for name in node.output if name}
    needed: set[str] = set()
    waiting = list(outputs)
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        if name in makers:
            waiting += free_names(makers[name])
    return needed


def free_names(node: onnx.NodeProto) -> set[str]:
    """Names that a node reads, including those that its subgraphs read from outside."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs] if attribute.type in (5, 10) else []:
            read = {value.name for value in graph.output}  # one may be a value from outside
            for inner in graph.node:
                read |= free_names(inner)
            own = {name for inner in graph.node for name in inner.output}
            names |= read - own - {value.name for value in (*graph.input, *graph.initializer)}
    return names


def _keep(field: object, wanted: Sequence[object]) -> None:
    """Replace the items of a repeated field."""
    copies = list(wanted)
    del field[:]  # type: ignore[attr-defined]
    field.extend(copies)  # type: ignore[attr-defined]
