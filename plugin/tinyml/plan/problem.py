"""The planning problem without anything about models: blocks with lifetimes, offsets wanted."""

from __future__ import annotations

from dataclasses import dataclass

ALIGNMENT_BYTES = 16


@dataclass(frozen=True)
class Block:
    """A piece of memory that is needed from step ``first`` to step ``last``, both included."""

    name: str
    bytes: int
    first: int
    last: int

    @property
    def padded_bytes(self) -> int:
        return -(-self.bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES

    def overlaps(self, other: Block) -> bool:
        """Whether both are needed at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Problem:
    blocks: tuple[Block, ...]

    def lower_bound_bytes(self) -> int:
        """The largest sum of live bytes over the steps: no plan can do better."""
        steps = {block.first for block in self.blocks}
        return max(
            (sum(b.padded_bytes for b in self.blocks if b.first <= step <= b.last) for step in steps),
            default=0,
        )


@dataclass(frozen=True)
class Solution:
    offsets: tuple[int, ...]  # one per block, in the order of the problem
    arena_bytes: int
