"""Where memory is shortest, layers that follow one another are computed in bands of rows.

That costs a few instructions and a few hundred bytes of flash, so it is done only for the layers that the
size of the arena depends on, and only where it makes the arena clearly smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from tinyml.ir import Graph, Node
from tinyml.kernel import kernels_of
from tinyml.ops.banded import Banded, Link, row_window
from tinyml.plan import lower_bound_bytes, peak_steps
from tinyml.select import Selected
from tinyml.targets import Target

LONGEST = 5  # layers in a chain
ROWS = (8, 4, 2, 1)  # of a band: the more, the fewer rows are moved and the more memory they take
WORTHWHILE = 1 / 16  # of the arena
WORTHWHILE_BYTES = 1024  # less than that is soon lost again in flash
MANY = float("inf")

Choice: TypeAlias = tuple[Graph, tuple[Selected, ...]]


def in_bands(graph: Graph, selected: tuple[Selected, ...], target: Target, io_outside: bool) -> Choice:
    """The graph with chains of layers made one, as long as that lowers the peak."""
    best: Choice = (graph, selected)
    while True:
        better = _one_more(best, target, io_outside)
        if better is None:
            return best
        best = better


def _one_more(current: Choice, target: Target, io_outside: bool) -> Choice | None:
    """With one more chain joined: of those that help about as much, the shortest, in the widest bands."""
    steps = peak_steps(*current, io_outside)
    chains = sorted((chain for step in steps for chain in _chains(*current, step)), key=len)
    narrow = [_sized(_joined(*current, chain, ROWS[-1], target), io_outside) for chain in chains]
    least = min(narrow, default=MANY)
    before = lower_bound_bytes(*current, io_outside)
    if before - least < max(before * WORTHWHILE, WORTHWHILE_BYTES):
        return None
    enough = least * (1 + WORTHWHILE)
    chain = next(chain for chain, size in zip(chains, narrow, strict=True) if size <= enough)
    wide = [_joined(*current, chain, rows, target) for rows in ROWS]
    return next(choice for choice in wide if _sized(choice, io_outside) <= enough)


def _sized(choice: Choice | None, io_outside: bool) -> float:
    return MANY if choice is None else lower_bound_bytes(*choice, io_outside)


def _chains(graph: Graph, selected: Sequence[Selected], step: int) -> Iterator[list[int]]:
    """Runs of two or more layers with that of ``step`` among them."""
    if not _can_be_linked(selected[step]):
        return
    whole = [step]
    while (before := _producer(graph, whole[0])) is not None and _linked(graph, selected, before, whole[0]):
        whole.insert(0, before)
    while (behind := _consumer(graph, whole[-1])) is not None and _linked(graph, selected, whole[-1], behind):
        whole.append(behind)
    at = whole.index(step)
    for first in range(at + 1):
        for end in range(max(at, first + 1) + 1, min(len(whole), first + LONGEST) + 1):
            yield whole[first:end]


def _can_be_linked(chosen: Selected) -> bool:
    return chosen.kernel.in_bands and row_window(chosen.layer) is not None


def _linked(graph: Graph, selected: Sequence[Selected], a: int, b: int) -> bool:
    """Whether nothing but ``b`` needs what ``a`` computes."""
    inner = graph.nodes[a].outputs[0]
    uses = sum(node.inputs.count(inner) for node in graph.nodes)
    return (
        _can_be_linked(selected[a])
        and _can_be_linked(selected[b])
        and graph.nodes[b].inputs[0] == inner
        and uses == 1
        and inner not in graph.kept()
    )


def _producer(graph: Graph, step: int) -> int | None:
    x = graph.nodes[step].inputs[0]
    return next((i for i, node in enumerate(graph.nodes) if x in node.outputs), None)


def _consumer(graph: Graph, step: int) -> int | None:
    y = graph.nodes[step].outputs[0]
    return next((i for i, node in enumerate(graph.nodes) if y in node.inputs), None)


def _joined(
    graph: Graph, selected: Sequence[Selected], chain: Sequence[int], rows: int, target: Target
) -> Choice | None:
    """The chain as one layer in the place of its last; None if it cannot be cut into such bands."""
    parts = [selected[step] for step in chain]
    nodes = [graph.nodes[step] for step in chain]
    if rows >= parts[-1].layer.output.shape[1]:
        return None
    links = tuple(
        Link(part.layer.op, part.kernel, len(node.inputs) - 1, part.layer.output.type)
        for part, node in zip(parts, nodes, strict=True)
    )
    operands = [name for node in nodes for name in node.inputs[1:]]
    node = Node(nodes[-1].name, Banded(links, rows), (nodes[0].inputs[0], *operands), nodes[-1].outputs)
    kept = [i for i in range(len(graph.nodes)) if i not in chain[:-1]]
    inner = {n.outputs[0] for n in nodes[:-1]}
    joined = replace(
        graph,
        nodes=tuple(node if i == chain[-1] else graph.nodes[i] for i in kept),
        tensors={name: tensor for name, tensor in graph.tensors.items() if name not in inner},
    )
    (kernel,) = kernels_of(Banded)
    layer = next(layer for layer in joined.layers() if isinstance(layer.op, Banded) and layer.op is node.op)
    if kernel.refusal(layer) is not None:
        return None
    one = Selected(layer, kernel, kernel.scratch_bytes(layer, target))
    return joined, tuple(one if i == chain[-1] else selected[i] for i in kept)
