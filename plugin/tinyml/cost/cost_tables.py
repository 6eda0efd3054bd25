# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How many cycles a block takes on cores whose timing Arm documents, at zero wait states.

The Cortex-M3 and Cortex-M4 are described instruction by instruction in their technical reference manuals,
with rules for what overlaps; the Cortex-M0+ takes a fixed number for each instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cost.instructions import Instruction, Kind


@dataclass(frozen=True)
class Weight:
    """Cycles of a block that runs through, and how many more there are when it ends with a jump."""

    cycles: float
    taken: float = 0


def m0plus(block: Sequence[Instruction]) -> Weight:
    """Two stages: memory takes two cycles, a taken branch two, a call three."""
    cycles = 0
    for instruction in block:
        kind = instruction.kind
        if kind in (Kind.LOAD, Kind.STORE):
            cycles += 2
        elif kind is Kind.LIST:
            cycles += 1 + instruction.listed + (2 if "pc" in instruction.registers else 0)
        else:
            cycles += 1
    calls = block[-1].name in ("bl", "blx")
    return Weight(cycles, (2 if calls else 1) if block[-1].kind is Kind.BRANCH else 0)


def m3(block: Sequence[Instruction]) -> Weight:
    return _pipelined(block, _M3)


def m4(block: Sequence[Instruction]) -> Weight:
    return _pipelined(block, _M4)


_M4 = {Kind.DIVIDE: 7, Kind.TABLE_BRANCH: 2, Kind.FLOAT_ACCUMULATE: 3, Kind.FLOAT_DIVIDE: 14}
_M3 = {**_M4, Kind.ACCUMULATE: 2, Kind.LONG_MULTIPLY: 4, Kind.LONG_ACCUMULATE: 5}
_REFILL, _SLOW_REFILL = 2, 3
"""Cycles until the pipeline of three stages is full again after a jump: usually, and at most."""

_SLOW_M4 = {**_M4, Kind.DIVIDE: 12}
_SLOW_M3 = {**_M3, Kind.DIVIDE: 12, Kind.LONG_MULTIPLY: 5, Kind.LONG_ACCUMULATE: 7}
"""Divisions and, on the Cortex-M3, long products take the longer the more bits their operands have."""

_ARITHMETIC = frozenset(
    (Kind.ORDINARY, Kind.ACCUMULATE, Kind.LONG_MULTIPLY, Kind.LONG_ACCUMULATE, Kind.DIVIDE)
)
_FLOAT_RESULT = re.compile(r"v(add|sub|mul|fm|fn|ml|nm|cvt|neg|abs|div|sqrt|max|min)")


def _pipelined(block: Sequence[Instruction], weights: dict[Kind, int]) -> Weight:
    cycles = 0
    before: Instruction | None = None
    for instruction in block:
        cycles += _own(instruction, before, weights) + _stall(instruction, before)
        before = instruction
    jumps = block[-1].kind in (Kind.BRANCH, Kind.TABLE_BRANCH)
    return Weight(cycles, _REFILL if jumps else 0)


Worst: TypeAlias = Callable[[Instruction, Instruction | None], tuple[int, int]]
"""The most cycles of an instruction after another one, and how many more there are if it jumps."""


def _worst_m0plus(instruction: Instruction, before: Instruction | None) -> tuple[int, int]:
    weight = m0plus([instruction])
    return round(weight.cycles), round(weight.taken)


def _worst_of(weights: dict[Kind, int]) -> Worst:
    def worst(instruction: Instruction, before: Instruction | None) -> tuple[int, int]:
        cycles = _own(instruction, before, weights, _SLOW_REFILL) + _stall(instruction, before)
        folded = instruction.kind is Kind.CONDITION  # or not, if the fetch was late
        jumps = instruction.kind in (Kind.BRANCH, Kind.TABLE_BRANCH)
        return max(cycles, 1) if folded else cycles, _SLOW_REFILL if jumps else 0

    return worst


WORST: dict[str, Worst] = {
    "cortex-m0": _worst_m0plus,
    "cortex-m3": _worst_of(_SLOW_M3),
    "cortex-m4": _worst_of(_SLOW_M4),
}
"""By core. The others have no tables."""


def _own(
    instruction: Instruction, before: Instruction | None, weights: dict[Kind, int], refill: int = _REFILL
) -> int:
    """Cycles of an instruction that need not wait."""
    kind, registers = instruction.kind, instruction.registers
    loads_pc = "pc" in registers and not instruction.name.startswith(("st", "push", "vst"))
    if kind is Kind.LOAD:
        # Loads in a row overlap, unless one moves its address or the next address is what it loads.
        overlaps = (
            before is not None
            and before.kind is Kind.LOAD
            and not before.writes_back
            and not instruction.address_registers & set(before.registers[:1])
        )
        return (1 if overlaps else 2) + (refill if registers[:1] == ("pc",) else 0)
    if kind is Kind.STORE:
        # The write buffer hides a store, but not an address that is a sum.
        summed = len(instruction.address_registers) > 1
        return 2 if summed and not (before is not None and before.kind is Kind.LOAD) else 1
    if kind is Kind.PAIR:
        return 3
    if kind in (Kind.LIST, Kind.FLOAT_LIST):
        return 1 + instruction.listed + (refill if loads_pc else 0)
    if kind is Kind.FLOAT_LOAD:
        return 3 if registers[0].startswith("d") else 2
    if kind is Kind.CONDITION:
        return 0 if before is not None and before.size == 2 else 1  # folded into a short one before it
    if kind is Kind.FLOAT and instruction.name.startswith("vmov") and len(registers) > 2:
        return 2
    return weights.get(kind, 1)


def _stall(instruction: Instruction, before: Instruction | None) -> int:
    """One cycle if it needs too early what the instruction before it computes."""
    if before is None:
        return 0
    result = set(before.registers[:1])
    if instruction.kind in (Kind.LOAD, Kind.STORE, Kind.PAIR, Kind.LIST, Kind.FLOAT_LOAD, Kind.FLOAT_LIST):
        return 1 if before.kind in _ARITHMETIC and result & (instruction.address_registers - {"sp"}) else 0
    if instruction.kind in (Kind.FLOAT, Kind.FLOAT_ACCUMULATE, Kind.FLOAT_DIVIDE):
        # An accumulator is needed late enough only as a sum's operand of its own, which is not modelled.
        return 1 if _FLOAT_RESULT.match(before.name) and result & set(instruction.registers[1:]) else 0
    return 0
