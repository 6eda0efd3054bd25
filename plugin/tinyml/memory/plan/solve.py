# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Offsets for blocks: quick placement orders first, then repair, then an exhaustive search with a limit.

Everything is deterministic: ties are broken by the position of a block in the problem.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from tinyml.base import limits
from tinyml.memory.plan.problem import Block, Problem, Solution
from tinyml.memory.plan.search import Packing, search

PREFERRED_ALIGNMENTS = (16, 8, 4, 1)
"""Kernels load aligned tensors faster, so an alignment that costs no memory is used."""

REPAIRED_BLOCKS = 1_000
"""Total number of blocks that repairs may place: the more blocks, the fewer repairs."""
SEARCH_NODES = 1_500
SEARCH_WORK = 600_000
"""How many blocks the search may look at in all. It places one block per node, so that a problem of many
hundred blocks gets fewer nodes, and none if they would not suffice to place each block once."""

ORDERS: tuple[Callable[[Block], tuple[int, ...]], ...] = (
    lambda b: (-b.bytes, b.first),
    lambda b: (-(b.last - b.first + 1) * b.bytes, b.first),
    lambda b: (b.first, -b.bytes),
    lambda b: (-(b.last - b.first), -b.bytes),
    lambda b: (-b.alignment, -b.bytes, b.first),
    lambda b: (-b.last, -b.bytes),
)


def solve(problem: Problem, search_nodes: int = SEARCH_NODES) -> Solution:
    """The smallest arena found; at the best alignment among equals. Ends early at the lower bound."""
    bound = problem.lower_bound_bytes
    best = Solution((), sys.maxsize)
    packing = Packing(problem.blocks)
    for alignment in PREFERRED_ALIGNMENTS:
        best = _better(best, _quick(packing.aligned(alignment), bound))
        if best.arena_bytes <= bound:
            return best
    search_nodes = min(search_nodes, SEARCH_WORK // max(len(problem.blocks), 1))
    target = bound
    while best.arena_bytes > bound and search_nodes > len(problem.blocks):
        found = search(packing, target, search_nodes)
        if found is not None:
            best = _better(best, found)
        elif target == best.arena_bytes - 1:
            break
        target = best.arena_bytes - 1  # the bound is out of reach: accept any improvement
    return best


def quick(problem: Problem) -> Solution:
    """The best of the placement orders, for problems of few blocks that are solved many times."""
    packing, bound, best = Packing(problem.blocks), problem.lower_bound_bytes, Solution((), sys.maxsize)
    for order in _orders(packing.blocks):
        best = _better(best, packing.place_all(order))
        if best.arena_bytes <= bound:
            break
    return best


def _orders(blocks: Sequence[Block]) -> Iterator[list[int]]:
    for key in ORDERS:
        limits.check_time()
        yield sorted(range(len(blocks)), key=lambda i: (*key(blocks[i]), i))


def _better(best: Solution, found: Solution) -> Solution:
    return found if found.arena_bytes < best.arena_bytes else best


def _quick(packing: Packing, bound: int) -> Solution:
    """Each order, then repairs of the best: blocks that exceed the bound are placed first."""
    best, best_order = Solution((), sys.maxsize), list[int]()
    for order in _orders(packing.blocks):
        found = packing.place_all(order)
        if found.arena_bytes < best.arena_bytes:
            best, best_order = found, order
        if best.arena_bytes <= bound:
            return best
    return _repair(packing, bound, best, best_order)


def _repair(packing: Packing, bound: int, best: Solution, order: Sequence[int]) -> Solution:
    seen = set()
    current, offsets = list(order), best.offsets
    for _ in range(REPAIRED_BLOCKS // max(len(order), 1)):
        outside = [i for i in current if offsets[i] + packing.blocks[i].bytes > bound]
        current = outside + [i for i in current if i not in outside]
        if tuple(current) in seen:
            break
        seen.add(tuple(current))
        found = packing.place_all(current)
        offsets = found.offsets
        best = _better(best, found)
        if best.arena_bytes <= bound:
            break
    return best
