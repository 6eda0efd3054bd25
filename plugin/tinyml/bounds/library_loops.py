# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops of the compiler's library that end by data, and how often they can turn.

These functions work on words of 32 or 64 bits, and their loops move them by at least one bit in each turn:
they normalise a number that is close to zero, or compute a quotient bit by bit. A loop that ends when one bit
is set moves a number that is not zero up to there: it turns no more often than there are bits below.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tinyml.bounds.loops import Loop, innermost
from tinyml.bounds.operations import ALWAYS, Flag, Kind, Operation

_WORD, _TWO_WORDS = 32, 64
_TURNS = (
    (re.compile(r"__aeabi_(f\w+|i2f|ui2f|u?idiv(mod)?)$|__(div|mul|add|sub)sf3$|__u?divsi3$"), _WORD),
    (
        re.compile(r"__aeabi_(d\w+|l2d|ul2d|u?ldivmod|l2f|ul2f)$|__(div|mul|add|sub)df3$|__udivmoddi4$"),
        _TWO_WORDS,
    ),
)


def turns(function: str) -> int:
    """The most turns of a loop in a function of the library; 0 if none are known."""
    return next((most for pattern, most in _TURNS if pattern.match(function)), 0)


def limit_loops(
    operations: Sequence[Operation], followers: Sequence[Sequence[int]], functions: Sequence[str]
) -> set[str]:
    """Give the branches that end such loops their limit; returns the functions that have some."""
    found = set()
    loops = innermost(followers)
    for number, operation in enumerate(operations):
        waits = operation.again and not _is_branch(operation) and not operation.flags & Flag.SETS
        if turns(functions[number]) and waits:
            operation.again, operation.merge = 0, number + 1  # turns are counted at branches
        by_data = operation.kind in (Kind.BRANCH, Kind.BRANCH_ZERO) and len(followers[number]) == 2
        most = turns(functions[number]) if by_data else 0
        if not most or (operation.cond == ALWAYS and operation.kind is Kind.BRANCH):
            continue
        passes, takes = (_reaches(followers, start, number) for start in followers[number])
        if passes != takes:
            fewer = _until_a_bit(operations, loops[number], followers[number], most)
            operation.limit, operation.extra = fewer or most, int(not takes)
            found.add(functions[number])
    return found


def _until_a_bit(
    operations: Sequence[Operation], loop: Loop | None, after: Sequence[int], word: int
) -> int | None:
    """How often the branch at the end of a loop goes back at most, if the loop tests one bit."""
    if loop is None or loop.start not in after:
        return None
    tested = [operations[node].imm for node in loop.body if operations[node].kind is Kind.TST]
    if len(tested) != 1 or tested[0] <= 0 or tested[0] & (tested[0] - 1):
        return None
    below = tested[0].bit_length() - 1 + word - _WORD
    return max(1, below - 1)


def _is_branch(operation: Operation) -> bool:
    return operation.kind in (Kind.BRANCH, Kind.BRANCH_ZERO, Kind.TABLE, Kind.BRANCH_TO) or operation.loads_pc


def _reaches(followers: Sequence[Sequence[int]], start: int, goal: int) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        if node == goal:
            return True
        for follower in followers[node] if node < len(followers) else ():
            if follower not in seen:
                seen.add(follower)
                waiting.append(follower)
    return False
