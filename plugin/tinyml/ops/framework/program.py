# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the player does instead of running code: calls of kernels with records and operands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    """A place in memory. ``step`` is what a turn of a repetition adds to the position.

    ``loops`` are the same for the loops around the call, the outermost one first, as far as there are any.
    """

    memory: Memory
    position: int = 0
    step: int = 0
    element_bytes: int = 1
    table: str = ""  # the name of a constant, whose position is not known yet
    loops: tuple[int, ...] = ()

    def moved(self, elements: int, step: int) -> Operand:
        return replace(
            self,
            position=self.position + elements * self.element_bytes,
            step=self.step + step * self.element_bytes,
        )

    def turned(self, level: int, elements: int, step: int) -> Operand:
        """The same in a loop with ``level`` loops around it, each turn of which adds ``step`` elements."""
        before = (*self.loops, *(0,) * (level - len(self.loops)))
        return replace(self.moved(elements, 0), loops=(*before, step * self.element_bytes))


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


@dataclass
class Turns:
    """A loop: what ``call`` makes again, until its operand, a condition, is 0."""

    call: Call
    steps: list[Step] = field(default_factory=list)

    @property
    def most(self) -> int:
        """How many turns there can be."""
        return int(self.call.record.members[".turns"])

    @property
    def is_condition(self) -> bool:
        """Whether it is not really a loop, but steps that are made or not."""
        return ".unless" in self.call.record.members


Step = Call | Repeat | Turns


def add(steps: list[Step], more: Iterable[Step]) -> None:
    """Put steps behind others; those under the same condition become one."""
    for step in more:
        last = steps[-1] if steps else None
        same = (
            isinstance(step, Turns)
            and step.is_condition
            and isinstance(last, Turns)
            and last.call.record == step.call.record
            and last.call.operands == step.call.operands
        )
        if same:
            assert isinstance(step, Turns)
            assert isinstance(last, Turns)
            add(last.steps, step.steps)
        else:
            steps.append(step)


def calls_of(steps: Iterable[Step]) -> Iterator[Call]:
    """Every call once, in the order of the program."""
    for step in steps:
        if isinstance(step, Call):
            yield step
        elif isinstance(step, Repeat):
            yield from step.calls
        else:
            yield step.call
            yield from calls_of(step.steps)
