# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The order of execution, chosen for peak memory.

What is live after a set of nodes has run does not depend on their order, so the search visits sets
of finished nodes and always continues from the one with the lowest peak so far: the first complete set is
optimal. Graphs too wide for this search keep the order of the file. The cost counts tensors that can share
memory (see ``Op.views`` and ``Kernel.overlays``) once; the planner knows more, so the pipeline compares its
results for both orders.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from tinyml.base import limits
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Graph, Node
from tinyml.ir.branches import guards
from tinyml.memory.select import Selected

MAX_SETS = 20_000  # sets of finished nodes to visit


@dataclass(frozen=True)
class _Step:
    """A node in terms of bit sets: bit i stands for node i."""

    needs: int  # nodes that must have run before
    reads: tuple[int, ...]  # memory classes that it reads
    writes: tuple[int, ...]  # memory classes that it makes


@dataclass(frozen=True)
class _Memory:
    """Tensors that share memory: how many bytes, and the nodes that write and read them."""

    bytes: int
    makers: int
    users: int
    kept: bool


def schedule(graph: Graph, selected: Sequence[Selected]) -> Graph:
    """The graph with its nodes in the order in which they will run."""
    if len(graph.nodes) < 3:
        return graph
    order = _search(*_model(graph, selected))
    return graph if order is None else graph.with_nodes([graph.nodes[i] for i in order])


def _model(graph: Graph, selected: Sequence[Selected]) -> tuple[list[_Step], list[_Memory]]:
    classes = _memory_classes(graph, selected)
    producer = {name: i for i, node in enumerate(graph.nodes) for name in node.outputs}
    count = max(classes.values(), default=-1) + 1
    size, makers, users, kept = [0] * count, [0] * count, [0] * count, [False] * count
    for name, k in classes.items():
        size[k] = max(size[k], graph.tensors[name].bytes)
        kept[k] |= name in graph.kept()
        if name in producer:
            makers[k] |= 1 << producer[name]
    steps = []
    for i, node in enumerate(graph.nodes):
        reads = tuple(dict.fromkeys(classes[name] for name in node.inputs if name in classes))
        for k in reads:
            users[k] |= 1 << i
        needs = 0
        for name in node.inputs:
            if name in producer:
                needs |= 1 << producer[name]
        steps.append(_Step(needs, reads, tuple(dict.fromkeys(classes[name] for name in node.outputs))))
    for i, guard in enumerate(guards(graph)):  # whether a layer runs is known before it would
        for condition in [producer[name] for name, _ in guard if name in producer]:
            steps[i] = _Step(steps[i].needs | 1 << condition, steps[i].reads, steps[i].writes)
    for reader, writer in _state_order(graph, steps):
        steps[writer] = _Step(steps[writer].needs | 1 << reader, steps[writer].reads, steps[writer].writes)
    memories = [_Memory(*facts) for facts in zip(size, makers, users, kept, strict=True)]
    return steps, memories


def _memory_classes(graph: Graph, selected: Sequence[Selected]) -> dict[str, int]:
    """A number for each tensor in RAM; tensors that can be views of one another get the same."""
    states = {state.tensor for state in graph.states}
    parent = {name: name for name, t in graph.tensors.items() if not t.is_constant and name not in states}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    readers = graph.consumers()
    for chosen in selected:
        layer = chosen.layer
        for view in layer.op.views(layer):
            if view.inner in parent and view.outer in parent:
                parent[root(view.inner)] = root(view.outer)
        for overlay in [way for way in chosen.overlays if way.distance == 0][:1]:
            x = layer.input(overlay.input)
            last = all(node.outputs[0] == layer.output.name for node in readers[x.name])
            if x.name in parent and last and x.name not in graph.kept() and x.bytes >= layer.output.bytes:
                parent[root(layer.output.name)] = root(x.name)
    numbers: dict[str, int] = {}
    return {name: numbers.setdefault(root(name), len(numbers)) for name in parent}


def _state_order(graph: Graph, steps: Sequence[_Step]) -> list[tuple[int, int]]:
    """Readers of a state before the node that computes its next value, which can then overwrite the state."""
    producer = {name: i for i, node in enumerate(graph.nodes) for name in node.outputs}
    pairs = []
    for state in graph.states:
        writer = producer.get(state.update)
        if writer is None:
            continue
        later = _descendants(steps, writer)
        pairs += [
            (i, writer)
            for i, node in enumerate(graph.nodes)
            if state.tensor in node.inputs and i != writer and not later >> i & 1
        ]
    return pairs if pairs and _acyclic(steps, pairs) else []


def _descendants(steps: Sequence[_Step], start: int) -> int:
    found = 1 << start
    for i in range(start + 1, len(steps)):
        if steps[i].needs & found:
            found |= 1 << i
    return found


def _acyclic(steps: Sequence[_Step], pairs: Sequence[tuple[int, int]]) -> bool:
    needs = [step.needs for step in steps]
    for reader, writer in pairs:
        needs[writer] |= 1 << reader
    done, everything = 0, (1 << len(needs)) - 1
    while done != everything:
        ready = [i for i, need in enumerate(needs) if not done >> i & 1 and need & ~done == 0]
        if not ready:
            return False
        for i in ready:
            done |= 1 << i
    return True


def _search(steps: Sequence[_Step], memories: Sequence[_Memory]) -> list[int] | None:
    """Nodes in the order with the lowest peak, or None if that takes too long to find."""
    everything = (1 << len(steps)) - 1
    start = sum(m.bytes for m in memories if not m.makers)  # inputs
    came_from: dict[int, tuple[int, int]] = {}
    followers = _followers(steps)
    ready_after = {0: [i for i, step in enumerate(steps) if not step.needs]}  # what can run next, by set
    queue = [(start, 0, 0, start)]  # peak, minus the number of finished nodes, the set, bytes live
    best = {0: start}
    while queue:
        limits.check_time()
        peak, _, done, live = heapq.heappop(queue)
        if done == everything:
            return _path(came_from, done)
        if best[done] < peak:
            continue
        if len(best) > MAX_SETS:
            return None
        moves = []
        ready = ready_after[done]
        for i in ready:
            step, after = steps[i], done | 1 << i
            during = live + sum(memories[k].bytes for k in step.writes if not memories[k].makers & done)
            remaining = during - _freed(step, memories, done, after)
            moves.append((max(peak, during), remaining, i, after))
        free = [m for m in moves if m[0] == peak and m[1] <= live]  # costs nothing: run it immediately
        for new_peak, remaining, i, after in free[:1] or moves:
            if after not in best or new_peak < best[after]:
                best[after] = new_peak
                came_from[after] = (done, i)
                new = (j for j in followers[i] if not steps[j].needs & ~after)
                ready_after[after] = sorted({*ready, *new} - {i})
                heapq.heappush(queue, (new_peak, -after.bit_count(), after, remaining))
    return None


def _followers(steps: Sequence[_Step]) -> list[list[int]]:
    """For each node, those that need it."""
    found: list[list[int]] = [[] for _ in steps]
    for j, step in enumerate(steps):
        needs = step.needs
        while needs:
            lowest = needs & -needs
            found[lowest.bit_length() - 1].append(j)
            needs ^= lowest
    return found


def _freed(step: _Step, memories: Sequence[_Memory], done: int, after: int) -> int:
    """Bytes that are no longer needed once the step has run."""
    total = 0
    for k in dict.fromkeys((*step.reads, *step.writes)):
        memory = memories[k]
        if not memory.kept and not (memory.users | memory.makers) & ~after:
            total += memory.bytes
    return total


def _path(came_from: dict[int, tuple[int, int]], done: int) -> list[int]:
    order = []
    while done:
        done, i = came_from[done]
        order.append(i)
    return order[::-1]


def same_order(a: Sequence[Node], b: Sequence[Node]) -> bool:
    """Whether two schedules of one graph are the same."""
    return all(x.outputs == y.outputs for x, y in zip(a, b, strict=True))
