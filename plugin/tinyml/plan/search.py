# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Places blocks at the lowest free offset, and searches the orders of doing so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tinyml.plan.problem import Block, Solution


class Packing:
    """Blocks with, for each pair, the pieces that must not overlap because they are needed together."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = tuple(blocks)
        count = len(self.blocks)
        self._rivals: list[dict[int, list[tuple[int, int]]]] = [{} for _ in range(count)]
        for i in range(count):
            for j in range(i):
                self._pair(i, j)

    def _pair(self, i: int, j: int) -> None:
        a, b = self.blocks[i], self.blocks[j]
        if a.first > b.last or b.first > a.last:
            return
        pairs = [(p, q) for p in a.pieces for q in b.pieces if p.bytes and q.bytes and p.same_time(q)]
        if pairs:
            # offset(i) - offset(j) must not lie strictly between low and high, for any of the pairs
            between = [(q.offset - p.offset - p.bytes, q.offset + q.bytes - p.offset) for p, q in pairs]
            self._rivals[i][j] = between
            self._rivals[j][i] = [(-high, -low) for low, high in between]

    def lowest(self, index: int, placed: dict[int, int], start: int = 0) -> int:
        """The lowest free offset for a block among the placed ones, not below ``start``."""
        forbidden = sorted(
            (placed[other] + low, placed[other] + high)
            for other, between in self._rivals[index].items()
            if other in placed
            for low, high in between
        )
        alignment = self.blocks[index].alignment
        offset = -(-start // alignment) * alignment
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


def search(packing: Packing, target: int, nodes: int) -> Solution | None:
    """A placement within ``target`` bytes, visiting at most ``nodes`` partial placements."""
    found = _Search(packing, target, nodes).descend({}, 0)
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
        live = [sum(block.live_bytes(step) for block in blocks) for step in range(count)]
        self.spare = target - np.array(live, np.int64)
        steps = np.arange(count)
        pieces = [(i, piece) for i, block in enumerate(blocks) for piece in block.pieces]
        self.block = np.array([i for i, _ in pieces], np.int64)
        self.offset = np.array([piece.offset for _, piece in pieces], np.int64)
        self.size = np.array([piece.bytes for _, piece in pieces], np.int64)
        first, last = (np.array([[getattr(p, end)] for _, p in pieces]) for end in ("first", "last"))
        self.needed = ((first <= steps) & (steps <= last)).astype(np.int64)  # by piece and step

    def descend(self, placed: dict[int, int], floor: int) -> dict[int, int] | None:
        blocks = self.packing.blocks
        if len(placed) == len(blocks):
            return placed
        self.left -= 1
        if self.left < 0 or np.any(self._wasted(placed, floor) > self.spare):
            return None
        choices = []
        for index in range(len(blocks)):
            if index not in placed:
                offset = self.packing.lowest(index, placed, floor)
                if offset + blocks[index].bytes > self.target:
                    return None
                choices.append((offset, -blocks[index].bytes, index))
        choices.sort()
        # beyond the end of a block that could be placed now, this block would have come first
        limit = min(offset - minus_bytes for offset, minus_bytes, _ in choices)
        for offset, _, index in choices:
            if offset >= limit and offset > choices[0][0]:
                break
            found = self.descend({**placed, index: offset}, offset)
            if found is not None or self.left < 0:
                return found
        return None

    def _wasted(self, placed: dict[int, int], floor: int) -> npt.NDArray[np.int64]:
        """Bytes below ``floor`` that are unused, by step."""
        starts = np.full(len(self.packing.blocks), floor)
        starts[list(placed.keys())] = list(placed.values())
        bottom = starts[self.block] + self.offset
        below = np.clip(np.minimum(bottom + self.size, floor) - bottom, 0, None)
        return floor - np.asarray(below @ self.needed)
