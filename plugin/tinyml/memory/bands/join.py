# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Join consecutive layers at the peak of memory, to compute them in bands of rows.

That costs a few instructions and a few hundred bytes of flash, so it is done only for layers that determine
the size of the arena, and only if the arena becomes clearly smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tinyml.base import limits
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Graph
from tinyml.memory.bands.banded import HEIGHT, WIDTH, Banded
from tinyml.memory.bands.chains import (
    Choice,
    Neighbours,
    axis_of,
    chains_around,
    joined,
    rows_to_divide,
    side_of,
)
from tinyml.memory.plan import lower_bound_bytes, memory_peaks
from tinyml.memory.select import Selected
from tinyml.ops.framework.kernel import Kernel, Library
from tinyml.settings.optimize import BALANCED_CHAINING, Chaining

ROWS = (8, 4, 2, 1)  # of a band: the more, the fewer rows are moved and the more memory they take
COLUMNS = (256, 128, 64, 32, 16, *ROWS)  # the same along the width
MANY = float("inf")
FEW_POSITIONS = 8
CHEAP_SLACK = 1 / 64  # of the arena, for wider bands where narrow ones cost little


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
    while (
        better := one_more(best, target, io_outside, chaining)
        or one_at_each_peak(best, target, io_outside, chaining)
    ) is not None:
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


def one_at_each_peak(current: Choice, target: Target, io_outside: bool, chaining: Chaining) -> Found | None:
    """Join a chain at every step that needs too much, which no single chain contains.

    A network of equal residual blocks has a peak in each of them: no chain alone makes the arena smaller.
    """
    peaks = memory_peaks(*current, io_outside)
    clearly = peaks.bytes - max(peaks.bytes * chaining.worthwhile, chaining.worthwhile_bytes)
    choice = current
    for _ in current[0].nodes:
        limits.check_time()
        sizes = memory_peaks(*choice, io_outside).least_bytes
        steps = [step for step, size in enumerate(sizes) if size > clearly]
        if not steps:
            break
        options = (_without_peak(choice, step, clearly, target, io_outside, chaining) for step in steps)
        better = next((option for option in options if option is not None), None)
        if better is None:
            return None
        choice = better
    size = _sized(choice, io_outside, clearly)
    return Found(choice, size, clearly) if size <= clearly and choice is not current else None


def _without_peak(
    choice: Choice, peak: int, enough: float, target: Target, io_outside: bool, chaining: Chaining
) -> Choice | None:
    """A chain around a step, with which it needs little enough: the shortest of those that need least."""
    graph, selected = choice
    found: list[tuple[int, Choice]] = []
    for chain in sorted(chains_around(graph, selected, peak, chaining.longest), key=len):
        if target.mve and axis_of(selected, chain) == HEIGHT and not chaining.loops_beside_vectors:
            continue  # several chains with vectors cost more instructions than they are worth
        narrow = _narrowest(choice, chain, chaining, target)
        if narrow is None:
            continue
        name = graph.nodes[chain[-1]].outputs[0]
        if _is_narrow(narrow, name):
            continue
        step = next(i for i, node in enumerate(narrow[0].nodes) if name in node.outputs)
        size = memory_peaks(*narrow, io_outside).least_bytes[step]
        if size <= enough:
            found.append((size, narrow))
    least = min((size for size, _ in found), default=MANY)
    return next((narrow for size, narrow in found if size <= least * (1 + chaining.slack)), None)


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
    has_side = dear and bool(side_of(graph, selected, chain, Neighbours(graph)))
    return joined(graph, selected, chain, chaining.side_rows if has_side else ROWS[-1], target)


def least_columns(selected: Sequence[Selected], chain: Sequence[int], columns: int) -> int:
    """Columns of the output in a band in which the widest tensor of the chain has ``columns`` of them."""
    widest = max(selected[step].layer.output.shape[WIDTH] for step in chain[:-1])
    own = columns * rows_to_divide(selected[chain[-1]], WIDTH) / widest
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
    neighbours = Neighbours(graph)
    found: dict[tuple[int, ...], None] = {}
    for step in peaks:
        for chain in chains_around(graph, selected, step, longest, neighbours):
            if chain[0] <= reached[0] and reached[1] <= chain[-1]:
                found.setdefault(tuple(chain))
    return [list(chain) for chain in found]
