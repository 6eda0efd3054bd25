# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Join consecutive layers at the peak of memory, to compute them in bands of rows.

That costs a few instructions and a few hundred bytes of flash, so it is done only for layers that determine
the size of the arena, and only if the arena becomes clearly smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from tinyml import limits
from tinyml.bands.banded import Banded, Link, joins_two, row_window
from tinyml.goals import BALANCED_CHAINING, Chaining
from tinyml.ir import Graph, Node
from tinyml.kernel import kernels_of
from tinyml.plan import lower_bound_bytes, memory_peaks
from tinyml.select import Selected
from tinyml.targets import Target

ROWS = (8, 4, 2, 1)  # of a band: the more, the fewer rows are moved and the more memory they take
MANY = float("inf")

Choice: TypeAlias = tuple[Graph, tuple[Selected, ...]]


def in_bands(
    graph: Graph,
    selected: tuple[Selected, ...],
    target: Target,
    io_outside: bool,
    chaining: Chaining = BALANCED_CHAINING,
) -> Choice:
    """The graph with chains of layers joined, as long as that lowers the peak."""
    best: Choice = (graph, selected)
    while True:
        limits.check_time()
        better = _one_more(best, target, io_outside, chaining)
        if better is None:
            return best
        best = better


def _one_more(current: Choice, target: Target, io_outside: bool, chaining: Chaining) -> Choice | None:
    """Join one more chain: of those that save about as much, the shortest, in the widest bands."""
    peaks = memory_peaks(*current, io_outside)
    clearly = peaks.bytes - max(peaks.bytes * chaining.worthwhile, chaining.worthwhile_bytes)
    # Steps that stay above the limit however much their tensors share: a chain has to contain them all.
    stubborn = [step for step, size in enumerate(peaks.least_bytes) if size > clearly]
    chains = sorted(_covering(*current, peaks.steps, stubborn, chaining.longest), key=len)
    narrow = [_sized(_joined(*current, chain, ROWS[-1], target), io_outside) for chain in chains]
    least = min(narrow, default=MANY)
    if least > clearly:
        return None
    enough = min(least * (1 + chaining.slack), clearly)
    chain = next(chain for chain, size in zip(chains, narrow, strict=True) if size <= enough)
    wide = [_joined(*current, chain, rows, target) for rows in ROWS]
    return next(choice for choice in wide if _sized(choice, io_outside) <= enough)


def _sized(choice: Choice | None, io_outside: bool) -> float:
    return MANY if choice is None else lower_bound_bytes(*choice, io_outside)


def _covering(
    graph: Graph, selected: Sequence[Selected], peaks: Sequence[int], stubborn: Sequence[int], longest: int
) -> list[list[int]]:
    """Chains with one of the peaks among them that begin before and end after all stubborn steps."""
    reached = (min(stubborn), max(stubborn)) if stubborn else (len(selected), -1)
    neighbours = _Neighbours(graph)
    found: dict[tuple[int, ...], None] = {}
    for step in peaks:
        for chain in _chains(graph, selected, step, longest, neighbours):
            if chain[0] <= reached[0] and reached[1] <= chain[-1]:
                found.setdefault(tuple(chain))
    return [list(chain) for chain in found]


class _Neighbours:
    """Who makes and who reads each tensor, by step."""

    def __init__(self, graph: Graph) -> None:
        self.kept = graph.kept()
        self.maker = {name: step for step, node in enumerate(graph.nodes) for name in node.outputs}
        self.users: dict[str, list[int]] = {}
        for step, node in enumerate(graph.nodes):
            for name in node.inputs:
                self.users.setdefault(name, []).append(step)

    def pair(self, name: str) -> tuple[int, int] | None:
        """The producer of a tensor and its only reader, if there is only one."""
        users = self.users.get(name, ())
        if len(users) != 1 or name not in self.maker or name in self.kept:
            return None
        return self.maker[name], users[0]


def _chains(
    graph: Graph,
    selected: Sequence[Selected],
    step: int,
    longest: int = BALANCED_CHAINING.longest,
    neighbours: _Neighbours | None = None,
) -> Iterator[list[int]]:
    """Runs of two or more layers with that of ``step`` among them."""
    if not _can_be_linked(selected[step]):
        return
    near = neighbours or _Neighbours(graph)
    whole = [step]
    while (
        len(whole) < longest
        and (before := _linked(graph, selected, whole[0], near, backwards=True)) is not None
    ):
        whole.insert(0, before)
    at = len(whole) - 1
    while (
        len(whole) - at < longest
        and (after := _linked(graph, selected, whole[-1], near, backwards=False)) is not None
    ):
        whole.append(after)
    for first in range(at + 1):
        for end in range(max(at, first + 1) + 1, min(len(whole), first + longest) + 1):
            if _well_ended(graph, selected, chain := whole[first:end]):
                yield chain


def _can_be_linked(chosen: Selected) -> bool:
    return chosen.kernel.in_bands and row_window(chosen.layer) is not None


def _linked(
    graph: Graph, selected: Sequence[Selected], step: int, near: _Neighbours, backwards: bool
) -> int | None:
    """The layer before (or after) that of ``step`` in a chain, if the tensor between has no other reader."""
    names = graph.nodes[step].inputs if backwards else graph.nodes[step].outputs
    for name in names:
        if (pair := near.pair(name)) is None:
            continue
        maker, user = pair
        other = maker if backwards else user
        through = graph.nodes[user].inputs[0] == name or joins_two(selected[user].layer)
        if through and _can_be_linked(selected[other]):
            return other
    return None


def _well_ended(graph: Graph, selected: Sequence[Selected], chain: Sequence[int]) -> bool:
    """Whether an operator with two operands comes last, if at all, and the other one is the chain's input."""
    *inner, last = chain
    if any(joins_two(selected[step].layer) for step in inner):
        return False
    return not joins_two(selected[last].layer) or graph.nodes[chain[0]].inputs[0] in graph.nodes[last].inputs


def _link(chosen: Selected, node: Node, x: str) -> Link:
    """``x`` is the input of the chain."""
    if joins_two(chosen.layer):
        return Link(node.op, chosen.kernel, 0, chosen.layer.output.type, node.inputs.index(x))
    return Link(node.op, chosen.kernel, len(node.inputs) - 1, chosen.layer.output.type)


def _joined(
    graph: Graph, selected: Sequence[Selected], chain: Sequence[int], rows: int, target: Target
) -> Choice | None:
    """The chain as one layer in place of its last; None if it cannot be divided into such bands."""
    parts = [selected[step] for step in chain]
    nodes = [graph.nodes[step] for step in chain]
    if rows >= parts[-1].layer.output.shape[1]:
        return None
    x = nodes[0].inputs[0]
    links = tuple(_link(part, node, x) for part, node in zip(parts, nodes, strict=True))
    operands = [
        name for node, link in zip(nodes, links, strict=True) for name in node.inputs[1 : 1 + link.operands]
    ]
    node = Node(nodes[-1].name, Banded(links, rows), (x, *operands), nodes[-1].outputs)
    kept = [i for i in range(len(graph.nodes)) if i not in chain[:-1]]
    inner = {n.outputs[0] for n in nodes[:-1]}
    joined = replace(
        graph,
        nodes=tuple(node if i == chain[-1] else graph.nodes[i] for i in kept),
        tensors={name: tensor for name, tensor in graph.tensors.items() if name not in inner},
    )
    (kernel,) = kernels_of(Banded)
    layer = joined.layer(node)
    if kernel.refusal(layer) is not None:
        return None
    one = Selected(layer, kernel, kernel.scratch_bytes(layer, target))
    return joined, tuple(one if i == chain[-1] else selected[i] for i in kept)
