# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the two ways of a branch meet again: post-dominators of the control flow.

The graph has all instructions of an image. A call is an edge to the instruction after it; a jump into
another function is an edge like any other, because that function returns to the same caller. A way that is
missing here cannot make a bound wrong: the walk stops when two ways do not meet where they should.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from tinyml.bounds.loops import loop_starts
from tinyml.bounds.operations import ALWAYS, AT_RETURN, PC, Flag, Kind, Operation

NO_LOOP = 1
"""Where no loop starts: instructions are at even addresses."""

Read: TypeAlias = Callable[[int, int], "int | None"]
"""Constants of the image: address, bytes."""


def set_merges(
    operations: Sequence[Operation], read: Read, jumps: Mapping[int, Sequence[int]] = MappingProxyType({})
) -> list[list[int]]:
    """Fill in ``merge``, and ``limit`` of branches by tables; returns what can follow each operation.

    ``jumps`` has the possible targets of jumps by address.
    """
    index = {operation.address: number for number, operation in enumerate(operations)}
    leave = len(operations)  # the node behind all returns
    followers: list[list[int]] = []
    for number, operation in enumerate(operations):
        next_ = index.get(operation.address + operation.size, leave)
        found = [next_] if operation.falls_through else []
        if operation.kind in (Kind.BRANCH, Kind.BRANCH_ZERO, Kind.LOOP_END, Kind.LOOP_START):
            if operation.target:
                found.append(index.get(operation.target, leave))
        elif operation.kind is Kind.TABLE:
            targets = _table(operations, number, read)
            operation.limit = len(targets)
            found += [index.get(target, leave) for target in targets] or [leave]
        elif operation.kind is Kind.BRANCH_TO or operation.loads_pc:
            found += [index.get(target, leave) for target in jumps.get(operation.address, ())] or [leave]
        followers.append(found)
    dominators = _post_dominators(followers, leave)
    starts = loop_starts(followers)
    for number, operation in enumerate(operations):
        if (
            operation.kind in (Kind.BRANCH, Kind.BRANCH_ZERO, Kind.TABLE, Kind.BRANCH_TO)
            or operation.loads_pc
        ):
            start = starts[number]
            operation.again = 0 if start is None else operations[start].address
            place = dominators[number]
            operation.merge = AT_RETURN if place in (leave, None) else int(place or 0)
        elif operation.cond != ALWAYS:
            behind = operations[number : number + 8]
            branch = _by_its_flags(behind) if operation.flags & Flag.SETS else _same_condition(behind[:5])
            place = None if branch is None else dominators[number + branch]
            if place is None:
                operation.merge = index.get(operation.address + operation.size, AT_RETURN)
            else:
                start = starts[number]
                operation.merge = AT_RETURN if place == leave else place
                operation.again = NO_LOOP if start is None else operations[start].address
    return followers


def _same_condition(operations: Sequence[Operation]) -> int | None:
    """How far after the first one a branch by the same condition is, with the same flags: `movne`, `bne`."""
    for number, one in enumerate(operations):
        if one.kind is Kind.BRANCH and one.cond >> 1 == operations[0].cond >> 1:
            return number
        if one.flags & Flag.SETS or not Kind.NOP <= one.kind <= Kind.ORN or one.rd == PC:
            return None
    return None


def _by_its_flags(operations: Sequence[Operation]) -> int | None:
    """How far after a conditional operation that sets flags a branch by them is: `cmpne`, `bgt`."""
    for number, one in enumerate(operations):
        if one.kind is Kind.BRANCH and one.cond != ALWAYS:
            return number
        jumps = one.rd == PC and Kind.MOV <= one.kind <= Kind.ORN
        if not Kind.NOP <= one.kind <= Kind.TEQ or (number and one.flags & Flag.SETS) or jumps:
            return None
    return None


def set_jumps(operations: Sequence[Operation], read: Read, base: int) -> dict[int, list[int]]:
    """Targets of `mov pc` by a table of addresses, as cores without tbb jump; by the address of the jump.

    The walk finds them, one list after the other, at ``base``.
    """
    found: dict[int, list[int]] = {}
    count = 0
    for number, jump in enumerate(operations):
        if jump.kind is Kind.BRANCH_TO and jump.flags & Flag.OTHERWISE:
            targets = _address_table(operations[max(0, number - 12) : number], jump.rm, read)
            if targets:
                found[jump.address] = targets
                jump.limit, jump.target = len(targets), base + 4 * count
                count += len(targets)
    return found


def _address_table(before: Sequence[Operation], target: int, read: Read) -> list[int]:
    """`cmp index, #last` ... `ldr base, =table` ... `ldr target, [base, index]`, as compilers write it."""
    back = list(reversed(before))
    fetch = next((one for one in back if one.kind is Kind.LOAD and one.rd == target), None)
    if fetch is None or not fetch.flags & Flag.REGISTER:
        return []
    literals = (one for one in back if one.kind is Kind.LOAD and one.rn == PC and one.rd == fetch.rn)
    literal = next(literals, None)
    last = next((one.imm for one in back if one.kind is Kind.CMP and one.rn == fetch.rm), 0)
    table = read(literal.imm, 4) if literal is not None else None
    if table is None or last <= 0:
        return []
    entries = [read(table + 4 * index, 4) for index in range(last + 1)]
    return [entry & ~1 for entry in entries if entry is not None]


def _table(operations: Sequence[Operation], number: int, read: Read) -> list[int]:
    """The targets of a branch by a table in the code, whose length a comparison just before it tells."""
    branch = operations[number]
    for before in reversed(operations[max(0, number - 4) : number]):
        if before.kind is Kind.CMP and before.rn == branch.rm and before.imm > 0:
            entries = [
                read(branch.address + 4 + i * branch.width, branch.width) for i in range(before.imm + 1)
            ]
            return [branch.address + 4 + 2 * entry for entry in entries if entry is not None]
    return []


def _post_dominators(followers: Sequence[Sequence[int]], leave: int) -> list[int | None]:
    """The nearest node that every way from a node to the end passes; None for a node without such a way."""
    callers: list[list[int]] = [[] for _ in range(leave + 1)]
    for number, targets in enumerate(followers):
        for target in targets:
            callers[target].append(number)
    order = _from_the_end(callers, leave)
    rank = [-1] * (leave + 1)
    for place, node in enumerate(order):
        rank[node] = place
    found: list[int | None] = [None] * (leave + 1)
    found[leave] = leave
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            best: int | None = None
            for target in followers[node]:
                if found[target] is not None:
                    best = target if best is None else _common(found, rank, best, target)
            if found[node] != best:
                found[node], changed = best, True
    return found


def _common(found: Sequence[int | None], rank: Sequence[int], left: int, right: int) -> int:
    while left != right:
        while rank[left] > rank[right]:
            left = found[left] or 0 if found[left] is not None else left
        while rank[right] > rank[left]:
            right = found[right] or 0 if found[right] is not None else right
    return left


def _from_the_end(callers: Sequence[Sequence[int]], leave: int) -> list[int]:
    """Nodes that reach the end, in reverse postorder of the reversed graph."""
    seen = [False] * len(callers)
    seen[leave] = True
    order: list[int] = []
    stack = [(leave, 0)]
    while stack:
        node, place = stack.pop()
        if place < len(callers[node]):
            stack.append((node, place + 1))
            caller = callers[node][place]
            if not seen[caller]:
                seen[caller] = True
                stack.append((caller, 0))
        else:
            order.append(node)
    return order[::-1]
