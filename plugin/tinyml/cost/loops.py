# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Reads generated C: how often each kind of operation is executed, and how much text compiles to code.

The C of layers is regular: counted loops with constant bounds, one statement to a line. What cannot be read
(a loop that ends by data) counts as executed once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

_LAYER = re.compile(r"^/\* (\d+): ", re.MULTILINE)
_CALL = re.compile(r"TINYML_LAYER\((\d+), \w+\((.*)\)\);")
_LOOP = re.compile(r"for \((?:int32_t|int|size_t) (\w+) = (\d+); \1 < (\d+); \1(?:\+\+| \+= (\d+))\)")
_BANDS = re.compile(r"^if \(band < (\d+)\) \{$")  # of rows that arrive: one in each call, up to this one
_ONE_BAND = re.compile(r"^if \(band == \d+\) \{$")
_COPY = re.compile(r"mem(?:cpy|move|set)\(.*, (\d+)\);")
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
class Reading:
    """One layer's function: operations as often as they are executed, and as often as they are written."""

    body: str = ""
    in_place: bool = False  # the output takes over the memory of an input
    inner: list[int] = field(default_factory=list)  # how often loops without loops in them repeat
    executed: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)

    @property
    def shape(self) -> str:
        """What lets a compiler compute several elements at a time, once it has inlined the function."""
        whole = next((size for size in (16, 8, 4) if self.inner and not any(n % size for n in self.inner)), 1)
        return f"by {whole}{' in place' if self.in_place else ''}"


@lru_cache(maxsize=2)  # every figure of an estimate needs it
def read_layers(text: str) -> Mapping[int, Reading]:
    """The functions of all layers in the C of a model, by step."""
    marks = list(_LAYER.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    readings = {
        int(mark[1]): read_function(_body(text[mark.end() : end]))
        for mark, end in zip(marks, ends, strict=True)
    }
    for call in _CALL.finditer(text):
        places = call[2].split("), ")
        if int(call[1]) in readings:
            readings[int(call[1])].in_place = len({place.rstrip(")") for place in places}) < len(places)
    return readings


def _body(text: str) -> str:
    """From the brace that opens the function to the one that closes it."""
    opening = text.find("\n{\n")
    closing = text.find("\n}\n", opening)
    return text[opening + 3 : closing] if opening >= 0 else ""


def read_function(body: str) -> Reading:
    """Count operations; calls are counted by the name of the function."""
    reading = Reading(body)
    times = [1]
    bands = 0  # those that were read
    last = 0  # the repetitions of the loop that was opened last, until something of it is closed
    for line in _statements(body):
        loop = _LOOP.search(line)
        if loop:
            count = max(0, -(-(int(loop[3]) - int(loop[2])) // int(loop[4] or 1)))
            _count(reading, {"loop": 1}, times[-1])
            reading.executed["iteration"] += times[-1] * count
            times.append(times[-1] * count)
            last = count
            continue
        _count(reading, _operations(line), times[-1])
        if some := _BANDS.search(line):
            times.append(int(some[1]) - bands)
            bands = int(some[1])
            continue
        if _ONE_BAND.search(line):
            times.append(1)
            continue
        if copy := _COPY.search(line):
            reading.executed["copied byte"] += times[-1] * int(copy[1])
        for _ in range(line.count("{")):
            times.append(times[-1])
        for _ in range(line.count("}")):
            if len(times) > 1:
                times.pop()
            if last:
                reading.inner.append(last)
                last = 0
    return reading


def _count(reading: Reading, found: Mapping[str, int], times: int) -> None:
    for name, amount in found.items():
        reading.written[name] += amount
        reading.executed[name] += amount * times


def _statements(body: str) -> Iterator[str]:
    """Lines, with those that were broken joined again."""
    kept = ""
    for line in body.splitlines():
        kept = f"{kept} {line.strip()}".strip()
        if kept.endswith((";", "{", "}", ":")) or not kept:
            yield kept
            kept = ""
    if kept:
        yield kept


def _operations(line: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for token in _TOKEN.finditer(line):
        word = token[0]
        if word in _OPERATIONS:
            found[_OPERATIONS[word]] += 1
        elif word[0].isalpha() and line[token.end() : token.end() + 1] == "(" and word not in _KEYWORDS:
            found[f"{word}()"] += 1
        elif word == "if":
            found["choose"] += 1
    return found
