# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The most cycles that an instruction can take by Arm's tables, in the place where it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyml.bounds.operations import Operation
from tinyml.cost import cost_tables
from tinyml.cost.instructions import Instruction

UNALIGNED = {"cortex-m3": 2, "cortex-m4": 2}
"""A word at an odd address takes three transfers."""


def set_cycles(operations: Sequence[Operation], code: Mapping[int, Instruction], core: str) -> bool:
    """Fill in cycles; False for cores whose timing Arm does not document in tables."""
    worst = cost_tables.WORST.get(core)
    if worst is None:
        return False
    before: Instruction | None = None
    for operation in operations:
        instruction = code[operation.address]
        # The instruction before it may be another one after a jump to here: the slower of both counts.
        alone, after = worst(instruction, None), worst(instruction, before)
        operation.cycles, operation.taken = max(alone[0], after[0]), max(alone[1], after[1])
        before = instruction
    return True
