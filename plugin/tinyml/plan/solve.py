"""Offsets for blocks: greedy placement in several orders, the best one wins."""

from __future__ import annotations

from collections.abc import Callable

from tinyml.plan.problem import Block, Problem, Solution

_ORDERS: tuple[Callable[[Block], tuple[int, ...]], ...] = (
    lambda b: (-b.padded_bytes, b.first),
    lambda b: (-(b.last - b.first + 1) * b.padded_bytes, b.first),
    lambda b: (b.first, -b.padded_bytes),
    lambda b: (-(b.last - b.first), -b.padded_bytes),
)


def solve(problem: Problem) -> Solution:
    """The smallest arena that any of the placement orders finds."""
    bound = problem.lower_bound_bytes()
    best: Solution | None = None
    for order in _ORDERS:
        found = _place(problem, order)
        if best is None or found.arena_bytes < best.arena_bytes:
            best = found
        if best.arena_bytes == bound:
            break
    assert best is not None
    return best


def _place(problem: Problem, order: Callable[[Block], tuple[int, ...]]) -> Solution:
    """Put each block into the lowest gap among the blocks it overlaps in time."""
    offsets: dict[int, int] = {}
    for index in sorted(range(len(problem.blocks)), key=lambda i: order(problem.blocks[i])):
        block = problem.blocks[index]
        taken = sorted(
            (offsets[i], offsets[i] + problem.blocks[i].padded_bytes)
            for i in offsets
            if problem.blocks[i].overlaps(block)
        )
        offset = 0
        for start, end in taken:
            if start - offset >= block.padded_bytes:
                break
            offset = max(offset, end)
        offsets[index] = offset
    arena = max((offsets[i] + b.padded_bytes for i, b in enumerate(problem.blocks)), default=0)
    return Solution(tuple(offsets[i] for i in range(len(problem.blocks))), arena)
