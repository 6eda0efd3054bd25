# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts of kernels that run a limited number of times in one call: runtime/boxes/totals.h.

The kernel calls ``calls_of_NAME(most)`` for the function NAME, or ``turns_of_NAME(most)`` for the turns of
its loops. Here these functions and the parts are found by their symbols; c/parts.c counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinyml.bounds.elf import Symbol
from tinyml.bounds.loops import Loop, innermost
from tinyml.bounds.operations import Operation, Role

CALLS, TURNS = "calls_of_", "turns_of_"
MOST_PARTS = 15  # MAX_PARTS of c/machine.h, without the number 0


def set_parts(
    operations: Sequence[Operation], followers: Sequence[Sequence[int]], symbols: Iterable[Symbol]
) -> dict[int, str]:
    """Fill in ``part`` and ``role``; the names of the functions that are parts or whose turns are."""
    functions = [symbol for symbol in symbols if not symbol.is_object and symbol.bytes]
    stating = {symbol.name for symbol in functions if symbol.name.startswith((CALLS, TURNS))}
    found: dict[int, str] = {}
    if not stating:
        return found
    place = {operation.address: number for number, operation in enumerate(operations)}
    loops = innermost(followers)
    names = sorted(name for name in stating if not _other(name) & stating)
    for part, name in enumerate(names[:MOST_PARTS], 1):
        found[part] = name.removeprefix(CALLS).removeprefix(TURNS)
        for symbol in functions:
            first = place.get(symbol.address & ~1)
            if first is None:
                continue
            if symbol.name == name:
                operations[first].part, operations[first].role = part, Role.STATES
            elif symbol.name.partition(".")[0] == found[part]:  # the compiler names copies NAME.isra.0
                begin = symbol.address & ~1
                inside = [number for at, number in place.items() if begin <= at < begin + symbol.bytes]
                if name.startswith(CALLS):
                    if not any(first in followers[number] for number in inside):
                        _is_part(operations, inside, first, part, Role.CALL)
                else:
                    for loop in _single_entries(inside, loops, followers):
                        _is_part(operations, loop.body, loop.start, part, Role.TURN)
    return found


def _other(name: str) -> set[str]:
    """The statement of the other kind about the same function: with both, neither counts."""
    calls = name.startswith(CALLS)
    return {TURNS + name.removeprefix(CALLS) if calls else CALLS + name.removeprefix(TURNS)}


def _is_part(
    operations: Sequence[Operation], inside: Iterable[int], first: int, part: int, role: Role
) -> None:
    for number in inside:
        operations[number].part = part
    operations[first].role = role


def _single_entries(
    inside: Sequence[int], loops: Sequence[Loop | None], followers: Sequence[Sequence[int]]
) -> list[Loop]:
    """The loops of a function whose turns begin at their start, if none is inside another one."""
    function = set(inside)
    own = {loop.start: loop for number in inside if (loop := loops[number]) is not None}
    entered = {
        (follower, number) for number in inside for follower in followers[number] if follower in function
    }
    nested = any(one.start in other.body for one in own.values() for other in own.values() if one != other)
    if nested:
        return []
    return [
        loop
        for loop in own.values()
        if loop.body <= function
        and not any(to in loop.body and at not in loop.body and to != loop.start for to, at in entered)
    ]
