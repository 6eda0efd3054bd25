# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The planning problem, independent of models: find offsets for blocks with lifetimes.

A block is rigid, but its parts have different lifetimes: a concatenation fills up part by part, and of a
tensor that was sliced only the slice stays. So a block is a set of pieces, each with its own lifetime.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

from tinyml.base.lazy_dataclass import dataclass


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

    @cached_property
    def live_spans(self) -> Sequence[tuple[int, int, int]]:
        """Steps, from the first to before the last, during which the same number of its bytes is needed."""
        return list(self._live_spans())

    def _live_spans(self) -> Iterator[tuple[int, int, int]]:
        arrivals = sorted(self.pieces, key=lambda piece: piece.first)
        moments = sorted({m for piece in self.pieces for m in (piece.first, piece.last + 1)})
        present: list[Piece] = []
        arrived = 0
        for start, end in pairwise(moments):
            present = [piece for piece in present if piece.last >= start]
            while arrived < len(arrivals) and arrivals[arrived].first <= start:
                present.append(arrivals[arrived])
                arrived += 1
            yield start, end, covered((p.offset, p.offset + p.bytes) for p in present)


def covered(ranges: Iterable[tuple[int, int]]) -> int:
    """The number of bytes in at least one of the ranges."""
    total = reached = 0
    for start, end in sorted(ranges):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total


def uncovered(pieces: set[Piece]) -> list[Piece]:
    """The pieces without those that another piece covers."""
    needed: list[Piece] = []
    present: list[Piece] = []
    # In this order, a piece comes after every other that could cover it.
    for piece in sorted(pieces, key=lambda p: (p.first, -p.last, p.offset, -p.bytes)):
        present = [other for other in present if other.last >= piece.first]
        if not any(_inside(piece, other) for other in present):
            needed.append(piece)
            present.append(piece)
    return needed


def _inside(p: Piece, q: Piece) -> bool:
    """Whether piece q covers piece p."""
    return (
        q.offset <= p.offset
        and p.offset + p.bytes <= q.offset + q.bytes
        and q.first <= p.first
        and p.last <= q.last
    )


@dataclass(frozen=True)
class Problem:
    blocks: tuple[Block, ...]

    @cached_property
    def live_bytes_by_step(self) -> list[int]:
        """How many bytes are needed at each step."""
        change = [0] * (2 + max((block.last for block in self.blocks), default=-1))
        for block in self.blocks:
            for start, end, size in block.live_spans:
                change[start] += size
                change[end] -= size
        return list(accumulate(change))

    def live_bytes(self, step: int) -> int:
        return self.live_bytes_by_step[step] if step < len(self.live_bytes_by_step) else 0

    @cached_property
    def lower_bound_bytes(self) -> int:
        """The largest sum of live bytes over the steps: no plan can do better."""
        return max(self.live_bytes_by_step, default=0)


@dataclass(frozen=True)
class Solution:
    offsets: tuple[int, ...]  # one per block, in the order of the problem
    arena_bytes: int
