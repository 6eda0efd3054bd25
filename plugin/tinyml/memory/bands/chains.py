# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Chains of layers that can be computed in bands of rows, and a graph with one of them as a single layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from tinyml.cores.targets import Target
from tinyml.ir import Graph, Layer, Node
from tinyml.memory.bands.band_kernel import BANDS_OF_ROWS
from tinyml.memory.bands.banded import Banded, Link, divided_axis, joins_two, row_window
from tinyml.memory.select import Selected
from tinyml.settings.optimize import BALANCED_CHAINING

LONGEST_SIDE = 3  # layers between the input of a chain and the sum at its end

Choice: TypeAlias = tuple[Graph, tuple[Selected, ...]]


class Neighbours:
    """Who makes and who reads each tensor, by step."""

    def __init__(self, graph: Graph, arrives: bool = False) -> None:
        self.arrives = arrives  # whether chains start with rows as they arrive
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


def chains_around(
    graph: Graph,
    selected: Sequence[Selected],
    step: int,
    longest: int = BALANCED_CHAINING.longest,
    neighbours: Neighbours | None = None,
) -> Iterator[list[int]]:
    """Runs of two or more layers with that of ``step`` among them."""
    near = neighbours or Neighbours(graph, graph.nodes[step].op.by_rows)
    if not _can_be_linked(selected[step], near.arrives):
        return
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
            if side_of(graph, selected, chain := whole[first:end], near) is not None:
                yield chain


def chains_from(graph: Graph, selected: Sequence[Selected], step: int, longest: int) -> Iterator[list[int]]:
    """Runs of two or more layers that start with that of ``step``, the shortest first."""
    return (chain for chain in chains_around(graph, selected, step, longest) if chain[0] == step)


def _can_be_linked(chosen: Selected, arrives: bool = False) -> bool:
    return chosen.kernel.in_bands and row_window(chosen.layer, arrives=arrives) is not None


def _linked(
    graph: Graph, selected: Sequence[Selected], step: int, near: Neighbours, backwards: bool
) -> int | None:
    """The layer before (or after) that of ``step`` in a chain, if the tensor between has no other reader."""
    names = graph.nodes[step].inputs if backwards else graph.nodes[step].outputs
    if backwards and joins_two(selected[step].layer):  # the way that may overlap is the main one
        names = tuple(sorted(names, key=lambda name: _is_side(selected, near, name)))
    for name in names:
        if (pair := near.pair(name)) is None:
            continue
        maker, user = pair
        other = maker if backwards else user
        through = graph.nodes[user].inputs[0] == name or joins_two(selected[user].layer)
        if through and _can_be_linked(selected[other], near.arrives):
            return other
    return None


def side_of(
    graph: Graph, selected: Sequence[Selected], chain: Sequence[int], near: Neighbours
) -> list[int] | None:
    """The layers from the chain's input to the second operand of its last layer, which may be none.

    None if a layer with two operands is not the last, or if its other operand comes from elsewhere.
    """
    *inner, last = chain
    if any(joins_two(selected[step].layer) for step in inner):
        return None
    x, operands = graph.nodes[chain[0]].inputs[0], graph.nodes[last].inputs
    if not joins_two(selected[last].layer) or x in operands:
        return []
    (name,) = [name for name in operands if name != graph.nodes[chain[-2]].outputs[0]]
    side: list[int] = []
    while name != x:
        if len(side) == LONGEST_SIDE or not _is_side(selected, near, name):
            return None
        side.insert(0, near.maker[name])
        name = graph.nodes[side[0]].inputs[0]
    return side


def _is_side(selected: Sequence[Selected], near: Neighbours, name: str) -> bool:
    """Whether a tensor has one reader, and its producer can be part of a side: its windows do not overlap."""
    pair = near.pair(name)
    if pair is None or not _can_be_linked(chosen := selected[pair[0]]) or joins_two(chosen.layer):
        return False
    window = row_window(chosen.layer)
    return window is not None and (window.kernel - 1) * window.dilation < window.stride


def rows_to_divide(last: Selected, axis: int) -> int:
    """Rows that bands divide: those of the output, or of the input where a kernel sums them up."""
    return (last.layer.input(0) if last.kernel.sums_rows(last.layer) else last.layer.output).shape[axis]


def axis_of(selected: Sequence[Selected], chain: Sequence[int]) -> int:
    """The axis that bands of a chain divide."""
    layers = [selected[step].layer for step in chain]
    return divided_axis([layers[0].input(0).shape, *(layer.output.shape for layer in layers)])


def _link(chosen: Selected, node: Node, other: str) -> Link:
    """``other``: what a layer with two operands has besides the chain."""
    if joins_two(chosen.layer):
        return Link(node.op, chosen.kernel, 0, chosen.layer.output.type, node.inputs.index(other))
    return Link(node.op, chosen.kernel, len(node.inputs) - 1, chosen.layer.output.type)


def joined(
    graph: Graph, selected: Sequence[Selected], chain: Sequence[int], rows: int, target: Target
) -> Choice | None:
    """The chain as one layer in place of its last; None if it cannot be divided into such bands."""
    found = _joined(graph, selected, chain, rows, target)
    if found is None and any(selected[step].kernel.for_few for step in chain):
        others = list(selected)
        for step in chain:
            layer, kernel = selected[step].layer, selected[step].kernel.for_few
            if kernel is not None:
                others[step] = Selected(layer, kernel, kernel.scratch_bytes(layer, target))
        found = _joined(graph, others, chain, rows, target)
    return found


def _joined(
    graph: Graph, selected: Sequence[Selected], chain: Sequence[int], rows: int, target: Target
) -> Choice | None:
    side = side_of(graph, selected, chain, Neighbours(graph))
    if side is None:
        return None
    steps = [*chain[:-1], *side, chain[-1]]
    axis = axis_of(selected, steps)
    if rows >= rows_to_divide(selected[chain[-1]], axis):
        return None
    parts = [selected[step] for step in steps]
    nodes = [graph.nodes[step] for step in steps]
    x = nodes[0].inputs[0]
    other = nodes[-2].outputs[0] if side else x
    links = tuple(_link(part, node, other) for part, node in zip(parts, nodes, strict=True))
    operands = [
        name for node, link in zip(nodes, links, strict=True) for name in node.inputs[1 : 1 + link.operands]
    ]
    node = Node(nodes[-1].name, Banded(links, rows, len(side), axis), (x, *operands), nodes[-1].outputs)
    kept = [i for i in range(len(graph.nodes)) if i not in steps[:-1]]
    inner = {n.outputs[0] for n in nodes[:-1]}
    result = replace(
        graph,
        nodes=tuple(node if i == chain[-1] else graph.nodes[i] for i in kept),
        tensors={name: tensor for name, tensor in graph.tensors.items() if name not in inner},
    )
    layer: Layer[Any] = result.layer(node)
    if BANDS_OF_ROWS.refusal(layer) is not None:
        return None
    one = Selected(layer, BANDS_OF_ROWS, BANDS_OF_ROWS.scratch_bytes(layer, target))
    return result, tuple(one if i == chain[-1] else selected[i] for i in kept)
