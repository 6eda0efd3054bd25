# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Places blocks at the lowest free offset, and searches the orders of doing so."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tinyml.base import limits
from tinyml.memory.plan.problem import Block, Problem, Solution


class Packing:
    """Blocks with, for each pair, the pieces that must not overlap because they are needed together."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = tuple(blocks)
        self._rivals: list[dict[int, list[tuple[int, int]]]] = [{} for _ in self.blocks]
        present: list[int] = []
        for i in sorted(range(len(self.blocks)), key=lambda index: self.blocks[index].first):
            present = [j for j in present if self.blocks[j].last >= self.blocks[i].first]
            for j in present:
                self._pair(i, j)
            present.append(i)

    def aligned(self, alignment: int) -> Packing:
        """The same blocks, each aligned to at least ``alignment`` bytes."""
        other = Packing(())
        other.blocks = tuple(replace(b, alignment=max(b.alignment, alignment)) for b in self.blocks)
        other._rivals = self._rivals  # who needs memory at the same time does not depend on alignment
        return other

    def rivals(self, index: int) -> Iterable[int]:
        """The blocks that are needed together with a block."""
        return self._rivals[index]

    def _pair(self, i: int, j: int) -> None:
        a, b = self.blocks[i], self.blocks[j]
        pairs = [(p, q) for p in a.pieces for q in b.pieces if p.bytes and q.bytes and p.same_time(q)]
        if pairs:
            # offset(i) - offset(j) must not lie strictly between low and high, for any of the pairs
            ranges = [(q.offset - p.offset - p.bytes, q.offset + q.bytes - p.offset) for p, q in pairs]
            between = _united(ranges)
            self._rivals[i][j] = between
            self._rivals[j][i] = [(-high, -low) for low, high in between]

    def excludes(self, index: int, offset: int, other: int, at: int) -> bool:
        """Whether a block at ``offset`` leaves no room for its rival ``other`` at ``at``."""
        return any(low < at - offset < high for low, high in self._rivals[other][index])

    def lowest(self, index: int, placed: dict[int, int], start: int = 0) -> int:
        """The lowest free offset for a block among the placed ones, not below ``start``."""
        alignment = self.blocks[index].alignment
        offset = -(-start // alignment) * alignment
        rivals = self._rivals[index]
        forbidden = [
            (placed[other] + low, placed[other] + high)
            for other in rivals.keys() & placed.keys()
            for low, high in rivals[other]
            if placed[other] + high > offset
        ]
        forbidden.sort()
        for low, high in forbidden:
            if low < offset < high:
                offset = -(-high // alignment) * alignment
        return offset

    def place_all(self, order: Sequence[int]) -> Solution:
        placed: dict[int, int] = {}
        for index in order:
            placed[index] = self.lowest(index, placed)
        return self.solution(placed)

    def solution(self, placed: dict[int, int]) -> Solution:
        arena = max((placed[i] + block.bytes for i, block in enumerate(self.blocks)), default=0)
        return Solution(tuple(placed[i] for i in range(len(self.blocks))), arena)


def _united(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Open ranges that exclude the same numbers: a concatenation has many pieces, but few gaps."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def search(packing: Packing, target: int, nodes: int) -> Solution | None:
    """A placement within ``target`` bytes, visiting at most ``nodes`` partial placements."""
    found = _Search(packing, target, nodes).found()
    return packing.solution(found) if found is not None else None


class _Search:
    """Places blocks by rising offset, depth first, the lowest and largest first.

    A branch ends where a block no longer fits below the target, or where some step has more unused bytes
    below the current offset than it can spare: nothing will be placed there any more.
    """

    def __init__(self, packing: Packing, target: int, nodes: int) -> None:
        self.packing, self.target, self.left = packing, target, nodes
        blocks = packing.blocks
        count = 1 + max((block.last for block in blocks), default=0)
        live = Problem(packing.blocks).live_bytes_by_step[:count]
        self.spare = target - np.array(live, np.int64)
        pieces = [(i, piece) for i, block in enumerate(blocks) for piece in block.pieces]
        self.block = np.array([i for i, _ in pieces], np.int64)
        self.offset = np.array([piece.offset for _, piece in pieces], np.int64)
        self.size = np.array([piece.bytes for _, piece in pieces], np.int64)
        self.first = np.array([piece.first for _, piece in pieces], np.int64)
        self.end = np.array([piece.last + 1 for _, piece in pieces], np.int64)
        self.count = count

    def found(self) -> dict[int, int] | None:
        """The offsets of all blocks, or None."""
        # One level of the recursion per block; the interpreter's default limit is for programs, not plans.
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, 2 * len(self.packing.blocks) + 1000))
        try:
            lowest = {index: self.packing.lowest(index, {}) for index in range(len(self.packing.blocks))}
            if any(at + self.packing.blocks[index].bytes > self.target for index, at in lowest.items()):
                return None
            return self._descend({}, 0, lowest)
        finally:
            sys.setrecursionlimit(limit)

    def _descend(
        self, placed: dict[int, int], floor: int, lowest: Mapping[int, int] | None
    ) -> dict[int, int] | None:
        """``lowest``: the lowest free offset of each block not placed yet; None if one has no room."""
        blocks = self.packing.blocks
        if len(placed) == len(blocks):
            return placed
        self.left -= 1
        if lowest is None or self.left < 0:
            return None
        limits.check_time()
        if np.any(self._wasted(placed, floor) > self.spare):
            return None
        choices = sorted((offset, -blocks[index].bytes, index) for index, offset in lowest.items())
        # beyond the end of a block that could be placed now, this block would have come first
        limit = min(offset - minus_bytes for offset, minus_bytes, _ in choices)
        for offset, _, index in choices:
            if offset >= limit and offset > choices[0][0]:
                break
            more = {**placed, index: offset}
            found = self._descend(more, offset, self._after(lowest, index, more))
            if found is not None or self.left < 0:
                return found
        return None

    def _after(
        self, lowest: Mapping[int, int], index: int, placed: dict[int, int]
    ) -> Mapping[int, int] | None:
        """``lowest`` after ``index`` has been placed: blocks that still fit where they did stay there.

        None if a block no longer fits below the target, which most placements reveal at once.
        """
        packing, blocks, floor = self.packing, self.packing.blocks, placed[index]
        rivals = packing.rivals(index)
        near = {i: offset for i, offset in placed.items() if offset + blocks[i].bytes > floor}
        after = {}
        for other, offset in lowest.items():
            if other == index:
                continue
            if offset < floor:
                offset = packing.lowest(other, near, floor)
            elif other in rivals and packing.excludes(index, floor, other, offset):
                offset = packing.lowest(other, near, offset)
            if offset + blocks[other].bytes > self.target:
                return None
            after[other] = offset
        return after

    def _wasted(self, placed: dict[int, int], floor: int) -> npt.NDArray[np.int64]:
        """Bytes below ``floor`` that are unused, by step."""
        starts = np.full(len(self.packing.blocks), floor)
        starts[list(placed.keys())] = list(placed.values())
        bottom = starts[self.block] + self.offset
        below = np.clip(np.minimum(bottom + self.size, floor) - bottom, 0, None)
        change = np.zeros(self.count + 1, np.int64)
        np.add.at(change, self.first, below)
        np.add.at(change, self.end, -below)
        return floor - np.cumsum(change[:-1])
