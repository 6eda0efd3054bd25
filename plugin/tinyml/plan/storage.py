"""Which tensors share a piece of memory: views of one another, and outputs written over an input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tinyml.ir import Graph, Layer


@dataclass
class Group:
    """Tensors that lie in the same memory, all at its start."""

    members: list[str]
    bytes: int
    first: int
    last: int


@dataclass
class Storage:
    """All groups, and for each tensor its group. Constants and states are not in it."""

    groups: list[Group] = field(default_factory=list)
    of: dict[str, Group] = field(default_factory=dict)


def share(graph: Graph, layers: Sequence[Layer]) -> Storage:
    """Decide sharing in order of execution. Step 0 is the first layer; inputs are there before it."""
    end = len(layers)
    last_use = _last_uses(graph, layers, end)
    outside = {state.tensor for state in graph.states}
    storage = Storage()

    def new_group(name: str, step: int) -> None:
        tensor = graph.tensors[name]
        group = Group([name], tensor.bytes, step, max(step, last_use.get(name, step)))
        storage.groups.append(group)
        storage.of[name] = group

    for name in graph.inputs:
        new_group(name, 0)
    for step, layer in enumerate(layers):
        for position, output in enumerate(layer.outputs):
            host = _host(layer, position, step, storage, last_use, outside) if position == 0 else None
            if host is None:
                new_group(output.name, step)
            else:
                host.members.append(output.name)
                host.last = max(host.last, last_use.get(output.name, step))
                storage.of[output.name] = host
    return storage


def _host(
    layer: Layer, position: int, step: int, storage: Storage, last_use: dict[str, int], outside: set[str]
) -> Group | None:
    """A group that can hold output 0 as well, or None."""
    y = layer.outputs[position]
    for view in layer.op.views(layer):
        group = storage.of.get(view.outer)
        if view.inner == y.name and view.offset_bytes == 0 and group is not None:
            return group
    for index in layer.op.overwrites(layer):
        x = layer.inputs[index]
        if x is None or x.name in outside or x.is_constant or x.bytes < y.bytes:
            continue
        group = storage.of[x.name]
        readers = [i for i, t in enumerate(layer.inputs) if t is not None and t.name in group.members]
        if group.last <= step and readers == [index]:
            return group
    return None


def _last_uses(graph: Graph, layers: Sequence[Layer], end: int) -> dict[str, int]:
    last: dict[str, int] = {}
    for step, layer in enumerate(layers):
        for tensor in layer.inputs:
            if tensor is not None:
                last[tensor.name] = step
    last.update(dict.fromkeys(graph.kept(), end))
    return last
