"""Re-checks a solution the slow, obvious way. Shares no code with the solver."""

from __future__ import annotations

from tinyml.plan.problem import ALIGNMENT_BYTES, Problem, Solution


def validate(problem: Problem, solution: Solution) -> None:
    """Every byte of the arena belongs to at most one block at every step."""
    if len(solution.offsets) != len(problem.blocks):
        raise AssertionError("the plan does not place every block")
    placed = list(zip(problem.blocks, solution.offsets, strict=True))
    for block, offset in placed:
        if offset < 0 or offset % ALIGNMENT_BYTES or offset + block.bytes > solution.arena_bytes:
            raise AssertionError(f"block {block.name!r} is outside the arena or not aligned")
    for i, (a, a_offset) in enumerate(placed):
        for b, b_offset in placed[i + 1 :]:
            same_time = not (a.last < b.first or b.last < a.first)
            same_place = not (a_offset + a.bytes <= b_offset or b_offset + b.bytes <= a_offset)
            if same_time and same_place and a.bytes and b.bytes:
                raise AssertionError(f"blocks {a.name!r} and {b.name!r} overlap")
