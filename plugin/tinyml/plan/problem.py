# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The planning problem, independent of models: find offsets for blocks with lifetimes.

A block is rigid, but its parts have different lifetimes: a concatenation fills up part by part, and of a
tensor that was sliced only the slice stays. So a block is a set of pieces, each with its own lifetime.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, order=True)
class Piece:
    """Bytes of a block that are needed from step ``first`` to step ``last``, both included."""

    offset: int
    bytes: int
    first: int
    last: int

    def same_time(self, other: Piece) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Block:
    """Pieces at fixed distances; ``alignment`` is that of the first byte."""

    name: str
    pieces: tuple[Piece, ...]
    alignment: int = 1

    @cached_property
    def bytes(self) -> int:
        return max((piece.offset + piece.bytes for piece in self.pieces), default=0)

    @cached_property
    def first(self) -> int:
        return min(piece.first for piece in self.pieces)

    @cached_property
    def last(self) -> int:
        return max(piece.last for piece in self.pieces)

    def live_bytes(self, step: int) -> int:
        """How many of its bytes are needed at a step."""
        return covered((p.offset, p.offset + p.bytes) for p in self.pieces if p.first <= step <= p.last)


def covered(ranges: Iterable[tuple[int, int]]) -> int:
    """How many bytes lie in at least one of the ranges."""
    total = reached = 0
    for start, end in sorted(ranges):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total


@dataclass(frozen=True)
class Problem:
    blocks: tuple[Block, ...]

    def live_bytes(self, step: int) -> int:
        return sum(block.live_bytes(step) for block in self.blocks if block.first <= step <= block.last)

    @cached_property
    def lower_bound_bytes(self) -> int:
        """The largest sum of live bytes over the steps: no plan can do better."""
        steps = {piece.first for block in self.blocks for piece in block.pieces}
        return max((self.live_bytes(step) for step in steps), default=0)


@dataclass(frozen=True)
class Solution:
    offsets: tuple[int, ...]  # one per block, in the order of the problem
    arena_bytes: int
