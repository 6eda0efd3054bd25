# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Join consecutive layers at the peak of memory, to compute them in bands of rows.

That costs a few instructions and a few hundred bytes of flash, so it is done only for layers that determine
the size of the arena, and only if the arena becomes clearly smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from tinyml.base import limits
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Graph, Layer, Node
from tinyml.memory.bands.band_kernel import BANDS_OF_ROWS
from tinyml.memory.bands.banded import HEIGHT, WIDTH, Banded, Link, divided_axis, joins_two, row_window
from tinyml.memory.plan import lower_bound_bytes, memory_peaks
from tinyml.memory.select import Selected
from tinyml.ops.framework.kernel import Kernel, Library
from tinyml.settings.optimize import BALANCED_CHAINING, Chaining

ROWS = (8, 4, 2, 1)  # of a band: the more, the fewer rows are moved and the more memory they take
COLUMNS = (256, 128, 64, 32, 16, *ROWS)  # the same along the width
MANY = float("inf")
FEW_POSITIONS = 8
CHEAP_SLACK = 1 / 64  # of the arena, for wider bands where narrow ones cost little

LONGEST_SIDE = 3  # layers between the input of a chain and the sum at its end

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
    found: Found | None = None
    while (better := one_more(best, target, io_outside, chaining)) is not None:
        limits.check_time()
        best, found = better.choice, better
    return best if found is None else widened(found, target, io_outside, chaining)


@dataclass(frozen=True)
class Found:
    """A choice with one more chain."""

    choice: Choice
    least: float  # bytes that the best of the chains needs
    at_most: float  # bytes with which the chain is worth it


def one_more(current: Choice, target: Target, io_outside: bool, chaining: Chaining) -> Found | None:
    """Join one more chain, in the narrowest bands: of those that save about as much, the shortest."""
    peaks = memory_peaks(*current, io_outside)
    clearly = peaks.bytes - max(peaks.bytes * chaining.worthwhile, chaining.worthwhile_bytes)
    # Steps that stay above the limit however much their tensors share: a chain has to contain them all.
    stubborn = [step for step, size in enumerate(peaks.least_bytes) if size > clearly]
    chains = sorted(_covering(*current, peaks.steps, stubborn, chaining.longest), key=len)
    narrow = [_narrowest(current, chain, chaining, target) for chain in chains]
    before = current[0].nodes
    sizes: list[float] = []
    least = MANY
    for choice, chain in zip(narrow, chains, strict=True):
        limit = min(least * (1 + chaining.slack), clearly)
        if choice is not None and _is_narrow(choice, *before[chain[-1]].outputs):
            limit = min(limit, peaks.bytes * (1 - chaining.if_narrow.worthwhile))
        sizes.append(_sized(choice, io_outside, limit))
        least = min(least, sizes[-1])
    if least > clearly:
        return None
    enough = min(least * (1 + chaining.slack), clearly)
    found = next(choice for choice, size in zip(narrow, sizes, strict=True) if size <= enough)
    assert found is not None
    return Found(found, least, clearly)


def _is_narrow(choice: Choice, output: str) -> bool:
    """Whether the bands of a chain, named by its output, have few positions: then each of them costs more.

    Bands of columns have as many as ``least_columns`` says, which is enough.
    """
    layer = next(one.layer for one in choice[1] if one.layer.output.name == output)
    assert isinstance(layer.op, Banded)
    if layer.op.axis == WIDTH:
        return False
    widths = [part.output.shape[2] for part in layer.op.layers(layer)][:-1]
    return layer.op.rows * min(widths) < FEW_POSITIONS


def _narrowest(current: Choice, chain: Sequence[int], chaining: Chaining, target: Target) -> Choice | None:
    """A chain in the narrowest bands that are worth their instructions: with a side, they cost more."""
    graph, selected = current
    kernels = [selected[step].kernel for step in chain]
    dear = _dear(kernels, target)
    if axis_of(selected, chain) == WIDTH:
        has_loops = any(kernel.library is Library.GENERATED for kernel in kernels)
        if target.mve and has_loops and not chaining.loops_beside_vectors:
            return None
        columns = chaining.dear_columns if dear else chaining.columns
        return joined(graph, selected, chain, least_columns(selected, chain, columns), target)
    has_side = dear and bool(_side(graph, selected, chain, _Neighbours(graph)))
    return joined(graph, selected, chain, chaining.side_rows if has_side else ROWS[-1], target)


def least_columns(selected: Sequence[Selected], chain: Sequence[int], columns: int) -> int:
    """Columns of the output in a band in which the widest tensor of the chain has ``columns`` of them."""
    widest = max(selected[step].layer.output.shape[WIDTH] for step in chain[:-1])
    own = columns * _rows_to_divide(selected[chain[-1]], WIDTH) / widest
    return min(size for size in COLUMNS if size >= min(own, COLUMNS[0]))


def _dear(kernels: Sequence[Kernel[Any]], target: Target) -> bool:
    """Whether narrow bands cost much: what kernels prepare for each channel, windows left after threes."""
    return target.mve or any(kernel.prepares_channels for kernel in kernels)


def widened(found: Found, target: Target, io_outside: bool, chaining: Chaining) -> Choice:
    """Every chain in the widest bands with which the arena is small enough: they move the fewest rows."""
    best = found.choice
    for step, node in enumerate(best[0].nodes):
        if not isinstance(node.op, Banded):
            continue
        slack = CHEAP_SLACK
        if _dear([link.kernel for link in node.op.links], target):
            is_narrow = _is_narrow(found.choice, *node.outputs)
            slack = chaining.if_narrow.slack if is_narrow else chaining.slack
        enough = min(found.least * (1 + slack), found.at_most)
        sizes = ROWS if node.op.axis == HEIGHT else COLUMNS
        wider = (_with_rows(best, step, node.op, rows, target) for rows in sizes if rows > node.op.rows)
        best = next(
            (choice for choice in wider if choice and _sized(choice, io_outside, enough) <= enough), best
        )
    return best


def _with_rows(choice: Choice, step: int, op: Banded, rows: int, target: Target) -> Choice | None:
    """A chain in bands of other rows; None if it cannot be divided into them."""
    graph, selected = choice
    node = replace(graph.nodes[step], op=replace(op, rows=rows))
    layer, kernel = graph.layer(node), selected[step].kernel
    if rows >= op.rows_to_divide(layer) or kernel.refusal(layer) is not None:
        return None
    one = Selected(layer, kernel, kernel.scratch_bytes(layer, target))
    return (
        replace(graph, nodes=(*graph.nodes[:step], node, *graph.nodes[step + 1 :])),
        (*selected[:step], one, *selected[step + 1 :]),
    )


def _sized(choice: Choice | None, io_outside: bool, at_most: float) -> float:
    return MANY if choice is None else lower_bound_bytes(*choice, io_outside, at_most)


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


def _chains(
    graph: Graph,
    selected: Sequence[Selected],
    step: int,
    longest: int = BALANCED_CHAINING.longest,
    neighbours: _Neighbours | None = None,
) -> Iterator[list[int]]:
    """Runs of two or more layers with that of ``step`` among them."""
    near = neighbours or _Neighbours(graph, graph.nodes[step].op.by_rows)
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
            if _side(graph, selected, chain := whole[first:end], near) is not None:
                yield chain


def chains_from(graph: Graph, selected: Sequence[Selected], step: int, longest: int) -> Iterator[list[int]]:
    """Runs of two or more layers that start with that of ``step``, the shortest first."""
    return (chain for chain in _chains(graph, selected, step, longest) if chain[0] == step)


def _can_be_linked(chosen: Selected, arrives: bool = False) -> bool:
    return chosen.kernel.in_bands and row_window(chosen.layer, arrives=arrives) is not None


def _linked(
    graph: Graph, selected: Sequence[Selected], step: int, near: _Neighbours, backwards: bool
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


def _side(
    graph: Graph, selected: Sequence[Selected], chain: Sequence[int], near: _Neighbours
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


def _is_side(selected: Sequence[Selected], near: _Neighbours, name: str) -> bool:
    """Whether a tensor has one reader, and its producer can be part of a side: its windows do not overlap."""
    pair = near.pair(name)
    if pair is None or not _can_be_linked(chosen := selected[pair[0]]) or joins_two(chosen.layer):
        return False
    window = row_window(chosen.layer)
    return window is not None and (window.kernel - 1) * window.dilation < window.stride


def _rows_to_divide(last: Selected, axis: int) -> int:
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
    side = _side(graph, selected, chain, _Neighbours(graph))
    if side is None:
        return None
    steps = [*chain[:-1], *side, chain[-1]]
    axis = axis_of(selected, steps)
    if rows >= _rows_to_divide(selected[chain[-1]], axis):
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
