# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops of generated C that end by data, and of which the compiler says how often they can turn.

A comment on the line before such a loop says it: a walk from a root to a leaf takes no more turns than its
tree has levels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tinyml.bounds.loops import Loop, innermost
from tinyml.bounds.operations import ALWAYS, Kind, Operation

_STATED = re.compile(r"/\* at most (\d+) turns? \*/$")


def turns_by_line(source: str) -> dict[int, int]:
    """The most turns of the loops of a source, by the line that they begin on."""
    found = {}
    for number, line in enumerate(source.splitlines(), 1):
        if stated := _STATED.search(line):
            found[number + 1] = int(stated[1])
    return found


def limit_stated(
    operations: Sequence[Operation], followers: Sequence[Sequence[int]], lines: Sequence[int], source: str
) -> bool:
    """Give the branches that end such loops their limit; whether there are some."""
    stated = turns_by_line(source)
    if not stated:
        return False
    loops = innermost(followers)
    turns: dict[int, int] = {}
    for loop, line in zip(loops, lines, strict=True):
        if loop is not None and line in stated:
            turns[loop.start] = max(turns.get(loop.start, 0), stated[line])
    some = False
    for number, operation in enumerate(operations):
        inside = loops[number]
        if inside is None or inside.start not in turns:
            continue
        way_out = _way_out(number, operation, followers, inside)
        if way_out is not None:
            # A branch back to the start is behind the first turn.
            behind = int(inside.start in followers[number])
            operation.limit = max(1, turns[inside.start] - behind)
            operation.extra = way_out
            some = True
        elif operation.again and operation.kind is not Kind.BRANCH:
            operation.again, operation.merge = 0, number + 1  # turns are counted at branches
    return some


def _way_out(number: int, operation: Operation, followers: Sequence[Sequence[int]], loop: Loop) -> int | None:
    """Whether the branch is taken when it leaves its loop; None if it does not.

    All branches out of the loop must lead to one place, where their ways meet: then none is still open when
    the loop is entered again.
    """
    if operation.kind is not Kind.BRANCH or operation.cond == ALWAYS or len(followers[number]) != 2:
        return None
    leaves = [follower not in loop.body for follower in followers[number]]
    exits = {follower for node in loop.body for follower in followers[node] if follower not in loop.body}
    if leaves.count(True) != 1 or exits != {operation.merge}:
        return None
    return int(leaves[1])
