# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Counts what a sheet writes: how often each kind of operation is executed, and how often it is written.

Loops tell how often they repeat when they are opened. One that ends by data counts as executed once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import field

from tinyml.base.lazy_dataclass import dataclass

_COPY = re.compile(r"mem(?:cpy|move|set)\(.*, (\d+)\);")
_DIVISOR = re.compile(r"(?<!\*)/ ([^\s;,)]+)")
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|<<|>>|[-+*/%<>?\[=&|]")
_OPERATIONS = {
    "+": "add",
    "-": "add",
    "*": "multiply",
    "/": "divide",
    "%": "divide",
    "<<": "shift",
    ">>": "shift",
    "<": "compare",
    ">": "compare",
    "?": "choose",
    "[": "index",
    "=": "assign",
    "&": "logic",
    "|": "logic",
}
_KEYWORDS = frozenset(("for", "if", "return", "sizeof", "while", "switch", "defined"))


@dataclass
class _Block:
    """Braces that are open: how often what they hold is executed."""

    times: int = 1
    repeats: int = 0  # of a loop
    has_loops: bool = False


@dataclass(frozen=True)
class InBand:
    """What an operator of a chain does in a band, and in how many bands. ``link``: which operator it is."""

    link: int
    bands: int
    tally: Tally


@dataclass
class Tally:
    """What one layer's function does. Calls are counted by the name of the function."""

    executed: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    inner: list[int] = field(default_factory=list)  # how often loops without loops in them repeat
    operators: set[str] = field(default_factory=set)  # those of C that are written anywhere
    divisors: set[str] = field(default_factory=set)  # what is divided by, as it is written
    body: str = ""  # the function, once it is complete
    inside: list[Tally] = field(default_factory=list)  # of the layers that a loop of layers calls
    in_bands: list[InBand] = field(default_factory=list)  # what is done so, which is counted here, too
    in_place: bool = False  # the output takes over the memory of an input
    distance: int | None = None  # bytes from the first input to the first output, if both are in the arena
    backwards: bool = False  # the last position is computed first
    rectified: bool = False  # the first input is what ReLU or the like has left
    _open: list[_Block] = field(default_factory=lambda: [_Block()])

    @property
    def shape(self) -> str:
        """What lets a compiler compute several elements at a time, once it has inlined the function."""
        whole = next((size for size in (16, 8, 4) if self.inner and not any(n % size for n in self.inner)), 1)
        return f"by {whole}{' in place' if self.in_place else ''}"

    def statement(self, text: str) -> None:
        """A statement, or what stands before a brace."""
        self._count(self._operations(text))
        self.divisors.update(_DIVISOR.findall(text))
        if copy := _COPY.search(text):
            self.executed["copied byte"] += self._open[-1].times * int(copy[1])

    def open(self, times: int = 1) -> None:
        """What follows, up to ``close``, is executed ``times`` as often as what came before."""
        self._open.append(_Block(self._open[-1].times * times))

    def open_loop(self, repeats: int) -> None:
        for block in self._open:
            block.has_loops = True
        self._count({"loop": 1})
        times = self._open[-1].times * repeats
        self.executed["iteration"] += times
        self._open.append(_Block(times, repeats))

    def add(self, link: int, part: Tally) -> None:
        """What an operator of a chain writes here. It counts as if it had been written on this sheet."""
        times = self._open[-1].times
        self.in_bands.append(InBand(link, times, part))
        self.written.update(part.written)
        self.executed.update({name: amount * times for name, amount in part.executed.items()})
        self.inner += part.inner
        self.operators |= part.operators
        self.divisors |= part.divisors
        for block in self._open:
            block.has_loops |= bool(part.written["loop"])

    def close(self) -> None:
        block = self._open.pop()
        if block.repeats and not block.has_loops:
            self.inner.append(block.repeats)

    def _count(self, amounts: Mapping[str, int]) -> None:
        times = self._open[-1].times
        for name, amount in amounts.items():
            self.written[name] += amount
            self.executed[name] += amount * times

    def _operations(self, text: str) -> Counter[str]:
        amounts: Counter[str] = Counter()
        for token in _TOKEN.finditer(text):
            word = token[0]
            if word in _OPERATIONS:
                self.operators.add(word)
                amounts[_OPERATIONS[word]] += 1
            elif word[0].isalpha() and text[token.end() : token.end() + 1] == "(" and word not in _KEYWORDS:
                amounts[f"{word}()"] += 1
            elif word == "if":
                amounts["choose"] += 1
        return amounts
