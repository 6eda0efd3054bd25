# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The operands of an instruction, from a line of a disassembly."""

from __future__ import annotations

import re

from tinyml.bounds.operations import PC, SHIFTS, Flag, Operation

_NAMES = {"sb": 9, "sl": 10, "fp": 11, "ip": 12, "sp": 13, "lr": 14, "pc": 15}
_FLOAT = re.compile(r"([sdq])(\d+)$")
_WORDS = {"s": 1, "d": 2, "q": 4}


class UndecodedError(Exception):
    """An instruction that the walk does not know. Where it is reached, there is no bound."""


def register(word: str) -> int:
    """The number of a core register."""
    word = word.strip().lower()
    if word in _NAMES:
        return _NAMES[word]
    if re.fullmatch(r"r(\d|1[0-5])", word):
        return int(word[1:])
    raise UndecodedError


def float_words(word: str) -> tuple[int, int]:
    """The first s register and the number of them, of an s, d or q register."""
    match = _FLOAT.match(word.strip())
    if match is None:
        raise UndecodedError
    words = _WORDS[match[1]]
    return int(match[2]) * words, words


class Operands:
    """The text after the name, and its parts at commas outside of brackets and braces."""

    def __init__(self, text: str) -> None:
        self.text = text
        parts = re.split(r",\s*(?![^\[\{]*[\]\}])", text)
        self.words = [part.strip() for part in parts if part.strip()]

    @property
    def place(self) -> int:
        """The address that a branch names."""
        match = re.search(r"(?:^|\s)([0-9a-f]+)(?: <|$)", self.text)
        if match is None:
            raise UndecodedError
        return int(match[1], 16)

    @property
    def braced(self) -> list[str]:
        match = re.search(r"\{(.*)\}", self.text)
        if match is None:
            raise UndecodedError
        return [part.strip() for part in match[1].split(",")]

    @property
    def listed(self) -> list[int]:
        """The core registers in braces."""
        found: list[int] = []
        for part in self.braced:
            first, _, last = part.partition("-")
            found += range(register(first), register(last or first) + 1)
        return found

    def address(self, to: Operation) -> None:
        """Fill in the address of an access: its base, its offset, and how the base moves."""
        match = re.search(r"\[([^\]]*)\](!?)(?:,\s*(\S.*))?$", self.text)
        if match is None:
            raise UndecodedError
        inside = [part.strip() for part in match[1].split(",")]
        to.rn = register(inside[0])
        offset = inside[1:]
        if match[2]:
            to.flags |= Flag.BACK | Flag.BEFORE
        elif match[3]:
            to.flags |= Flag.BACK
            offset = [part.strip() for part in match[3].split(",")]
        if offset and offset[0].startswith("#"):
            to.imm = int(offset[0][1:], 0)
        elif offset:
            to.rm = register(offset[0])
            to.flags |= Flag.REGISTER
            if len(offset) > 1:
                word, _, by = offset[1].partition(" ")
                if SHIFTS.get(word) != 0:
                    raise UndecodedError
                to.amount = int(by[1:], 0)
        if to.rn == PC:
            if to.flags & (Flag.BACK | Flag.REGISTER):
                raise UndecodedError
            to.imm += (to.address + 4) & ~3
