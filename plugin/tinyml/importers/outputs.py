# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model's outputs: those that the user chooses, with the file's names, each a tensor of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tinyml.base.errors import ConfigError
from tinyml.ir import Count, Graph, Node, Tensor
from tinyml.ops.counted.clear_rest import ClearRest
from tinyml.ops.framework.reading import Builder
from tinyml.ops.reshape import Reshape


def clear_rests(build: Builder, outputs: Sequence[Tensor]) -> list[Tensor]:
    """The same outputs; those with fewer results than room have zeros after the last."""
    found = []
    for tensor in outputs:
        known, maker = build.counted.get(tensor.name), build.producer(tensor)
        if known is not None and not (maker is not None and maker.op.clears):
            build.scope = f"{tensor.name}/cleared"
            operands = [tensor, build.tensors[known.count]]
            tensor = build.add(ClearRest(known.axis), operands, counts=True)[0]
            build.counted[tensor.name] = known
        found.append(tensor)
    return found


def with_counts(
    build: Builder, outputs: Sequence[Tensor], names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Tensors and names of all outputs: those of the file, then how many results some of them have."""
    tensors, all_names = [tensor.name for tensor in outputs], [*names]
    for tensor, name in zip(outputs, names, strict=True):
        known = build.counted.get(tensor.name)
        if known is not None and known.count not in tensors:
            tensors.append(known.count)
            all_names.append(_unused(f"{name}_count", set(all_names)))
    return tensors, all_names


def named_counts(build: Builder, tensors: Sequence[str], names: Sequence[str]) -> tuple[Count, ...]:
    """Which of the outputs have how many results."""
    called = dict(zip(reversed(tensors), reversed(names), strict=True))
    pairs = ((name, build.counted.get(tensor)) for tensor, name in zip(tensors, names, strict=True))
    return tuple(Count(name, known.axis, called[known.count]) for name, known in pairs if known is not None)


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
        counts=tuple(Count(final[k.output], k.axis, final[k.count]) for k in graph.counts),
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


def check_bounds(build: Builder, lengths: Mapping[str, str] = {}) -> None:
    """Refuse bounds for nodes that have none; ``lengths``: open lengths, and the inputs that have them."""
    known = {name for scope in build.bounded for name in (scope, *build.aliases.get(scope, ()))}
    unknown = [name for name in build.bounds if name not in known]
    if unknown:
        offered = ", ".join(f"{name} ({most})" for name, most in build.bounded.items())
        if unknown[0] in lengths:
            source = lengths[unknown[0]]
            raise ConfigError(
                f"{unknown[0]!r} is a length of the input {source!r}, which takes a shape and no bound",
                build.open_inputs.get(source, f"--shape {source}=…"),
            )
        raise ConfigError(
            f"no node called {unknown[0]!r} has a bound",
            f"these have one: {offered}" if offered else "the model has none: leave the bound out",
        )


def check_chosen(chosen: Sequence[str], offered: Sequence[str]) -> None:
    unknown = [name for name in chosen if name not in offered]
    if unknown:
        raise ConfigError(
            f"the model has no output called {', '.join(unknown)}", f"its outputs are {', '.join(offered)}"
        )
    if len(set(chosen)) != len(chosen):
        raise ConfigError("an output is chosen twice", f"the outputs are {', '.join(offered)}")
