# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the player does instead of running code: calls of kernels with records and operands."""

from __future__ import annotations

from dataclasses import field, replace
from enum import IntEnum

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ops.framework.kernel import Record


class Memory(IntEnum):
    """What an operand is in: enum tinyml_player_memory."""

    ARENA = 0
    STATE = 1
    IMAGE = 2
    NOTHING = 3


@dataclass(frozen=True)
class Operand:
    """A place in memory. ``step`` is what a turn of a repetition adds to the position."""

    memory: Memory
    position: int = 0
    step: int = 0
    element_bytes: int = 1
    table: str = ""  # the name of a constant, whose position is not known yet

    def moved(self, elements: int, step: int) -> Operand:
        return replace(
            self,
            position=self.position + elements * self.element_bytes,
            step=self.step + step * self.element_bytes,
        )


NULL = Operand(Memory.NOTHING)


@dataclass(frozen=True)
class Call:
    """A kernel by its C function, or by function and loop."""

    function: str
    record: Record
    operands: tuple[Operand, ...]
    layer: int


@dataclass
class Repeat:
    """Calls that are made several times."""

    count: int
    calls: list[Call] = field(default_factory=list)


Step = Call | Repeat
