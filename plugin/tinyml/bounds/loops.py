# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The loops of the control flow: where the ways of a branch inside meet again before the next turn.

Compilers end a loop in several places, with jumps back or by running into its start from above. The ways of a
branch that lead to them meet at the start. This is a guess: the walk notices if they do not, and takes the
post-dominator instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Loop:
    """Where a loop starts, and its nodes."""

    start: int
    body: frozenset[int]


def loop_starts(followers: Sequence[Sequence[int]]) -> list[int | None]:
    """The start of the innermost loop around each node; None without one."""
    return [None if loop is None else loop.start for loop in innermost(followers)]


def innermost(followers: Sequence[Sequence[int]]) -> list[Loop | None]:
    """The innermost loop around each node; None without one."""
    size = len(followers)
    callers: list[list[int]] = [[] for _ in range(size)]
    for number, targets in enumerate(followers):
        for target in targets:
            if target < size:
                callers[target].append(number)
    found: list[Loop | None] = [None] * size
    loops = [
        Loop(start, _body(start, ends, callers)) for start, ends in _back_edges(followers, callers).items()
    ]
    for loop in sorted(loops, key=lambda loop: -len(loop.body)):
        for node in loop.body:
            found[node] = loop
    return found


def _back_edges(followers: Sequence[Sequence[int]], callers: Sequence[Sequence[int]]) -> dict[int, list[int]]:
    """Edges to a node that the search is still below: the nodes they lead to, each with where they begin."""
    size = len(followers)
    new, open_, done = range(3)
    states = [new] * size
    found: dict[int, list[int]] = {}
    entries = [node for node in range(size) if not callers[node]]
    for entry in (*entries, *range(size)):
        if states[entry] != new:
            continue
        states[entry] = open_
        stack = [(entry, 0)]
        while stack:
            node, place = stack.pop()
            if place == len(followers[node]):
                states[node] = done
                continue
            stack.append((node, place + 1))
            target = followers[node][place]
            if target >= size:
                continue
            if states[target] == open_:
                found.setdefault(target, []).append(node)
            elif states[target] == new:
                states[target] = open_
                stack.append((target, 0))
    return found


def _body(start: int, ends: Sequence[int], callers: Sequence[Sequence[int]]) -> frozenset[int]:
    """The nodes from which the ends are reached without passing the start."""
    body = {start, *ends}
    waiting = [end for end in ends if end != start]
    while waiting:
        for caller in callers[waiting.pop()]:
            if caller not in body:
                body.add(caller)
                waiting.append(caller)
    return frozenset(body)
