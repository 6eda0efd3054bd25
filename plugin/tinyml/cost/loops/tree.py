# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The loops of a layer's C function as a tree, and how often each part of it is executed.

The C is our own, so its form is known: a statement ends with ``;``, a block with a brace of its own line. A
condition on loop counters is decided by counting: padding is skipped exactly as often as in the C.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cost.loops.conditions import UnknownCondition, counters_of, true_part

_LOOP = re.compile(r"for \(int32_t (\w+) = (-?\d+); \1 < (-?\d+); \1(?:\+\+| \+= (\d+))\) \{")
_POSITION = re.compile(r"const int32_t (\w+) = (.+);")
_CONDITION = re.compile(r"if \((.+)\) \{")
_WORD = re.compile(r"[A-Za-z_]\w*")
_UNSURE = 0.5
"""How often a condition that data decides is taken to be true."""
_COMBINATIONS = 5_000
"""Of loop counters, for which a condition is decided: of longer loops, turns that are spread evenly."""
_COPY = re.compile(r"(mem(?:cpy|move|set))\(&?(\w+)(?:\[(.*?)\])?, &?(\w+)(?:\[(.*?)\])?, (\d+)\);")


@dataclass(frozen=True)
class Copy:
    """A copy of ``size`` bytes. How often it is done backwards, or else from word to word, as parts of 1."""

    function: str
    size: int
    backwards: float
    aligned: float


@dataclass
class Block:
    """What is between two braces. ``times``: how often it is executed; a loop has ``turns`` each time."""

    times: float = 1.0
    turns: int = 0
    counter: str = ""
    opening: str = ""
    statements: list[tuple[str, float]] = field(default_factory=list)  # and how often each is executed
    inner: list[Block] = field(default_factory=list)
    copies: dict[str, Copy] = field(default_factory=dict)  # of the whole tree, by statement

    @property
    def is_loop(self) -> bool:
        return self.turns > 0

    @property
    def height(self) -> int:
        """How many loops are inside one another in it."""
        return max((block.height + block.is_loop for block in self.inner), default=0)

    def blocks(self) -> Iterator[Block]:
        """This one and all in it."""
        yield self
        for block in self.inner:
            yield from block.blocks()


def parse(body: str, element_bytes: int = 1, in_place: bool = False) -> Block:
    """The tree of a function's body. A loop of one turn is no loop: compilers leave it out.

    ``in_place``: source and target of a copy are the same memory.
    """
    return _Reader(element_bytes, in_place).read(body)


class _Reader:
    def __init__(self, element_bytes: int, in_place: bool) -> None:
        self.element_bytes, self.in_place = element_bytes, in_place
        self.root = Block()
        self.open: list[tuple[Block, str]] = [(self.root, "block")]
        self.left: list[float] = [1.0]  # of what a block executes: the part that was not skipped before
        self.ranges: dict[str, range] = {}
        self.positions: dict[str, str] = {}
        self.taken = _UNSURE  # the part of the last block: what its condition let in

    def read(self, body: str) -> Block:
        for line in _statements(body):
            if line.startswith("}"):
                self._close(line)
            elif line.endswith("{"):
                self._open(line)
            else:
                self._statement(line)
        return self.root

    @property
    def at(self) -> Block:
        return self.open[-1][0]

    @property
    def times(self) -> float:
        return self.at.times * self.left[-1]

    def _open(self, line: str) -> None:
        loop = _LOOP.fullmatch(line)
        if loop:
            counter, start, end, step = loop[1], int(loop[2]), int(loop[3]), int(loop[4] or 1)
            turns = range(start, end, step)
            self.ranges[counter] = turns
            self.positions.pop(counter, None)
            if len(turns) == 1:
                self.open.append((self.at, "merged"))
                self.left.append(self.left[-1])
                return
            self._push(Block(self.times * len(turns), len(turns), counter, line), "loop")
            return
        condition = _CONDITION.fullmatch(line)
        part = self._part(condition[1]) if condition else 1.0
        if line.startswith("else"):
            part = 1 - self.taken
        self._push(Block(self.times * part, 0, "", line), "block")

    def _push(self, block: Block, kind: str) -> None:
        self.at.inner.append(block)
        self.open.append((block, kind))
        self.left.append(1.0)

    def _close(self, line: str) -> None:
        block, kind = self.open.pop()
        self.left.pop()
        if kind == "block":
            self.taken = block.times / self.times if self.times else _UNSURE
        rest = line[1:].strip()
        if rest.endswith("{"):
            self._open(rest)
        elif kind == "block" and any(text == "continue;" for text, _ in block.statements):
            self.left[-1] *= 1 - self.taken

    def _statement(self, line: str) -> None:
        position = _POSITION.fullmatch(line)
        if position:
            self.positions[position[1]] = position[2]
        self.at.statements.append((line, self.times))
        copy = _COPY.fullmatch(line)
        if copy:
            self.root.copies[line] = self._copy(copy)

    def _copy(self, found: re.Match[str]) -> Copy:
        size, bytes_ = int(found[6]), self.element_bytes
        target, source = (f"({found[i] or 0}) * {bytes_}" for i in (3, 5))
        backwards = 0.0
        if found[1] == "memmove" and self.in_place:
            backwards = self._part(f"{target} > {source} && {target} < {source} + {size}", 0.0)
        aligned = self._part(f"({target}) % 4 == 0 && ({source}) % 4 == 0", 1.0)
        return Copy(found[1], size, backwards, min(aligned, 1 - backwards))

    def _part(self, condition: str, unsure: float = _UNSURE) -> float:
        """How often a condition is true, as a part of all combinations of the counters that it needs."""
        code = _expanded(condition, self.positions)
        names = counters_of(code)
        if any(name not in self.ranges for name in names):
            return unsure
        room = max(2, int(_COMBINATIONS ** (1 / max(1, len(names)))))
        try:
            return true_part(code, {name: _spread(self.ranges[name], room) for name in names})
        except UnknownCondition:
            return unsure


def _expanded(code: str, positions: Mapping[str, str]) -> str:
    """With the definitions of positions in the place of their names."""
    for _ in range(3):
        code = _WORD.sub(lambda word: f"({positions[word[0]]})" if word[0] in positions else word[0], code)
    return code


def _spread(turns: range, room: int) -> list[int]:
    if len(turns) <= room:
        return list(turns)
    return [turns[i * len(turns) // room] for i in range(room)]


def _statements(body: str) -> Iterator[str]:
    """Lines that were broken are put together again."""
    begun = ""
    for line in map(str.strip, body.splitlines()):
        begun = f"{begun} {line}".strip()
        if begun.endswith((";", "{", "}")):
            yield begun
            begun = ""
