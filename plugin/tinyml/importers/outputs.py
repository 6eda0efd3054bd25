# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model's outputs: those that the user chooses, with the file's names, each a tensor of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinyml.base.errors import ConfigError
from tinyml.ir import Graph, Node, Tensor
from tinyml.ops.reshape import Reshape


def finish_outputs(graph: Graph, names: Sequence[str]) -> Graph:
    """Rename output tensors to ``names``; an output that is also an input, a state, a constant or
    another output becomes a copy, so that the caller always finds it in a place of its own."""
    taken = {*graph.inputs, *(state.tensor for state in graph.states)}
    used = {*graph.tensors, *names}
    rename: dict[str, str] = {}
    copies: list[tuple[str, str]] = []
    for current, wanted in zip(graph.outputs, names, strict=True):
        if current in taken or current in rename or graph.tensors[current].is_constant:
            copies.append((current, wanted))
        else:
            rename[current] = _unused(f"{wanted}/out", used) if wanted in taken else wanted
    reserved = {*names}
    # a tensor inside the graph must not keep a name that an output claims
    for name in graph.tensors:
        if name in reserved and name not in rename and name not in graph.inputs:
            rename[name] = _unused(f"{name}/inner", used)

    def new(name: str) -> str:
        return rename.get(name, name)

    tensors = {new(name): replace(tensor, name=new(name)) for name, tensor in graph.tensors.items()}
    nodes = [
        Node(n.name, n.op, tuple(new(i) for i in n.inputs), tuple(new(o) for o in n.outputs))
        for n in graph.nodes
    ]
    final = dict(zip(names, (new(current) for current in graph.outputs), strict=True))
    for current, wanted in copies:
        source = tensors[new(current)]
        name = wanted if wanted not in tensors else _unused(f"{wanted}/out", used)
        tensors[name] = Tensor.of(name, source.type)
        nodes.append(Node(name, Reshape(source.shape), (source.name,), (name,)))
        final[wanted] = name
    return replace(
        graph,
        tensors=tensors,
        nodes=tuple(nodes),
        outputs=tuple(final[name] for name in names),
        states=tuple(replace(s, tensor=new(s.tensor), update=new(s.update)) for s in graph.states),
    )


def _unused(hint: str, used: set[str]) -> str:
    """A name that no tensor has, which is then in use."""
    name, count = hint, 0
    while name in used:
        count += 1
        name = f"{hint}.{count}"
    used.add(name)
    return name


def unique(names: Sequence[str]) -> list[str]:
    """Names of outputs; a tensor may be an output twice."""
    found: list[str] = []
    for name in names:
        candidate, count = name or "output", 0
        while candidate in found:
            count += 1
            candidate = f"{name or 'output'}.{count}"
        found.append(candidate)
    return found


def check_chosen(chosen: Sequence[str], offered: Sequence[str]) -> None:
    unknown = [name for name in chosen if name not in offered]
    if unknown:
        raise ConfigError(
            f"the model has no output called {', '.join(unknown)}", f"its outputs are {', '.join(offered)}"
        )
    if len(set(chosen)) != len(chosen):
        raise ConfigError("an output is chosen twice", f"the outputs are {', '.join(offered)}")
