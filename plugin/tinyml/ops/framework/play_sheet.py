# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The sheet on which kernels note calls for the player instead of writing C."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Layer
from tinyml.ops.framework.kernel import Kernel, Record, Sheet
from tinyml.ops.framework.program import NULL, Call, Memory, Operand, Repeat, Step, Turns

ELEMENT_BYTES = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "int32_t": 4, "float": 4, "void": 1}
PLAYED_LOOPS = 4
"""Inside one another, at most: TINYML_PLAY_NESTED_LOOPS."""
POINTER = "&tinyml_"  # how the name of a loop of a kernel begins, as an argument


class NotPlayableError(UnsupportedError):
    """A layer that is written as C of its own, not as a call.

    ``inside``: the layer in the body of a loop and its kernel, if it is that layer.
    """

    inside: tuple[Layer, Kernel[Any]] | None = None


@dataclass
class PlaySheet(Sheet):
    """Notes calls; anything else that a kernel writes makes the layer one that the player cannot play."""

    where: dict[str, Operand] = field(default_factory=dict)  # operands by the names that kernels use
    steps: list[Step] = field(default_factory=list)
    step: int = 0  # the number of the layer
    kernel: str = ""
    level: int = 0  # loops around the layer

    def call(self, function: str, record: str, *operands: str) -> None:
        loops = [operand for operand in operands if operand.startswith(POINTER)]
        name = " ".join([function, *(loop.removeprefix("&") for loop in loops)])
        places = tuple(self._operand(operand) for operand in operands if operand not in loops)
        (found,) = [one for one in self.records if one.name == record]
        if ".loop" in found.members:
            name = f"{function} {found.members['.loop'].removeprefix('&')}"
        self._note(Call(name, found, places, self.step))

    @property
    def plays(self) -> bool:
        return True

    def note(self, function: str, members: Mapping[str, object], *operands: str) -> None:
        record = Record(function, "", {name: str(value) for name, value in members.items()})
        self._note(Call(function, record, tuple(self._operand(o) for o in operands), self.step))

    def _write(self, text: str) -> None:
        if text:
            raise NotPlayableError(f"{self.kernel} is C of its own, which a model without code cannot have")

    def divide_scratch(self) -> None:
        self._parameter("scratch")

    def buffer(self, name: str, c_type: str, offset: int) -> None:
        scratch = self.where["scratch"]
        self.where[name] = Operand(
            scratch.memory, scratch.position + offset, element_bytes=ELEMENT_BYTES[c_type]
        )

    def element(self, pointer: str, offset: int, step: int) -> str:
        name = super().element(pointer, offset, step)
        self.where[name] = self._operand(pointer).moved(offset, step)
        return name

    @contextmanager
    def repeat(self, count: int) -> Iterator[None]:
        outer, self.steps = self.steps, []
        yield
        calls = [step for step in self.steps if isinstance(step, Call)]
        assert len(calls) == len(self.steps), "repetitions are not nested"
        self.steps = [*outer, Repeat(count, calls)]

    def once(self, condition: Operand, truth: bool, steps: list[Step]) -> Turns:
        """Steps that are made if a condition holds, or does not: a loop with one turn."""
        members = {".turns": "1", ".bounded": "0", ".unless": str(int(not truth))}
        record = Record("tinyml_play_loop", "", members)
        return Turns(Call("tinyml_play_loop", record, (condition,), self.step), steps)

    @contextmanager
    def when(self, condition: str, truth: bool) -> Iterator[None]:
        """What is noted inside is done if the condition, an operand, is ``truth``."""
        self.go_deeper()
        outer, self.steps = self.steps, []
        yield
        self.level -= 1
        self.steps = [*outer, self.once(self._operand(condition), truth, self.steps)] if self.steps else outer

    def go_deeper(self, loops: int = 1) -> None:
        """There are more loops, or conditions, around what follows."""
        self.level += loops
        if self.level > PLAYED_LOOPS:
            raise NotPlayableError(f"more than {PLAYED_LOOPS} loops and conditions are inside one another")

    @contextmanager
    def turns(self, most: int, condition: str, bounded: bool) -> Iterator[None]:
        """A loop around what is noted inside; ``condition``: an operand, or NULL.

        The player has no loops without steps. If nothing is noted, as in a body that only reshapes, nothing
        changes the condition, so turns do nothing: the loop is left out. If it is bounded, the run must still
        fail if the condition holds: it becomes one turn that keeps the condition as it is.
        """
        outer, self.steps = self.steps, []
        yield
        if not self.steps:
            if not bounded:
                self.steps = outer
                return
            most = 1
            self.note("tinyml_play_fill", {".bytes": 1, ".value": 1}, condition)
        record = Record("tinyml_play_loop", "", {".turns": str(most), ".bounded": str(int(bounded))})
        call = Call("tinyml_play_loop", record, (self._operand(condition),), self.step)
        self.steps = [*outer, Turns(call, self.steps)]

    def inside(self, pointer: str, offset: int, element_bytes: int) -> str:
        """A place ``offset`` bytes after another one, with elements of its own."""
        name = f"{pointer} + {offset} bytes of {element_bytes}"
        place = self._operand(pointer)
        self.where[name] = replace(place, position=place.position + offset, element_bytes=element_bytes)
        return name

    def part(self, pointer: str, offset: int, step: int) -> str:
        """What a turn works on: ``offset`` elements from a place, and ``step`` more in each turn."""
        name = f"{pointer} + {offset} + turn * {step}"
        self.where[name] = self._operand(pointer).turned(self.level, offset, step)
        return name

    def move(self, buffer: str, start: int, count: int, element_bytes: int) -> None:
        source = self.element(buffer, start, 0)
        self.copy(source, buffer, count * element_bytes)

    def copy(
        self, source: str, target: str, size: int, rows: int = 1, steps: tuple[int, int] = (0, 0)
    ) -> None:
        """Copy ``rows`` of ``size`` bytes, with these distances in source and target."""
        if rows == 1 and self._operand(source) == self._operand(target):
            return
        members: dict[str, object] = {
            ".rows": rows,
            ".bytes": size,
            ".from_step": steps[0],
            ".to_step": steps[1],
        }
        self.note("tinyml_play_copy", members, source, target)

    def clear(self, buffer: str, size: int) -> None:
        self.note("tinyml_play_fill", {".bytes": size, ".value": 0}, buffer)

    def _note(self, call: Call) -> None:
        self.steps.append(call)

    def _operand(self, name: str) -> Operand:
        if name == "NULL":
            return NULL
        if name in self.where:
            return self.where[name]
        (size,) = [table.values.itemsize for table in self.model_tables if table.name == name]
        return Operand(Memory.IMAGE, element_bytes=size, table=name)
