# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Thumb instructions as a disassembler prints them, sorted by what decides how long they take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from functools import cached_property

from tinyml.base.lazy_dataclass import dataclass


class Kind(Enum):
    """Instructions that take alike."""

    ORDINARY = "one result of the arithmetic unit"
    LOAD = "one register from memory"
    STORE = "one register to memory"
    PAIR = "two registers from or to memory"
    LIST = "a list of registers from or to memory"
    BRANCH = "branch or call"
    TABLE_BRANCH = "branch by a table"
    LOOP = "hardware loop"
    CONDITION = "IT: conditions of what follows"
    ACCUMULATE = "multiply and add, 32 bits"
    LONG_MULTIPLY = "64-bit product"
    LONG_ACCUMULATE = "64-bit product, added"
    DIVIDE = "division"
    FLOAT = "floating-point arithmetic, moves and comparisons"
    FLOAT_ACCUMULATE = "floating-point multiply and add"
    FLOAT_DIVIDE = "floating-point division or square root"
    FLOAT_LOAD = "one floating-point register from or to memory"
    FLOAT_LIST = "a list of floating-point registers from or to memory"


_CONDITION = "(?:eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al)?"
_PATTERNS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"it[te]*$", Kind.CONDITION),
        (r"(le|wls|dls)(tp)?$|lctp", Kind.LOOP),
        (r"v(ldm|stm|push|pop)", Kind.FLOAT_LIST),
        (r"v(ldr|str|ld[24]|st[24])", Kind.FLOAT_LOAD),
        (r"v(fma|fms|fnma|fnms|mla|mls|nmla|nmls)", Kind.FLOAT_ACCUMULATE),
        (r"v(div|sqrt)", Kind.FLOAT_DIVIDE),
        (r"v", Kind.FLOAT),
        (r"ldm|stm|push|pop", Kind.LIST),
        (r"ldrd|strd", Kind.PAIR),
        (r"ldr|pld", Kind.LOAD),
        (r"str", Kind.STORE),
        (r"tb[bh]$", Kind.TABLE_BRANCH),
        (rf"(b|bl|bx|blx){_CONDITION}$|cbn?z$", Kind.BRANCH),
        (r"[su]div", Kind.DIVIDE),
        (r"ml[as]", Kind.ACCUMULATE),
        (r"[su]mull", Kind.LONG_MULTIPLY),
        (r"[su]mlal(?![bdt])|umaal", Kind.LONG_ACCUMULATE),
        (r"", Kind.ORDINARY),
    )
)
_REGISTER = re.compile(r"\b(r\d+|sp|lr|pc|ip|fp|sl|sb|[sdq]\d+)\b")
_ALIASES = {"ip": "r12", "fp": "r11", "sl": "r10", "sb": "r9"}
_LISTED = re.compile(r"\b([rsdq])(\d+)-[rsdq](\d+)")
_HEADING = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)(?:\s+(.*))?$")


@dataclass(frozen=True)
class Instruction:
    """One line of a disassembly. ``name`` is without a width suffix (.w, .n)."""

    address: int
    size: int
    name: str
    operands: str
    function: str

    @cached_property
    def kind(self) -> Kind:
        return next(kind for pattern, kind in _PATTERNS if pattern.match(self.name))

    @cached_property
    def registers(self) -> tuple[str, ...]:
        """In the order in which they are written; most instructions write the first."""
        return tuple(_ALIASES.get(name, name) for name in _REGISTER.findall(self.operands))

    @cached_property
    def address_registers(self) -> frozenset[str]:
        """What a load or store computes its address from."""
        inside = re.search(r"\[(.*?)\]", self.operands)
        if inside:
            return frozenset(_ALIASES.get(name, name) for name in _REGISTER.findall(inside.group(1)))
        return frozenset(self.registers[:1])  # a list after a base register

    @property
    def writes_back(self) -> bool:
        """Whether a load or store also moves its address."""
        return bool(re.search(r"\]!|\],", self.operands))

    @property
    def listed(self) -> int:
        """Registers in a list."""
        inside = re.search(r"\{(.*)\}", self.operands)
        if inside is None:
            return 1
        ranges = sum(int(last) - int(first) for _, first, last in _LISTED.findall(inside.group(1)))
        return inside.group(1).count(",") + 1 + ranges


def disassemble(text: str) -> dict[int, Instruction]:
    """Instructions by address, from what ``objdump -d --no-show-raw-insn`` prints."""
    found: list[tuple[int, str, str, str]] = []
    function = ""
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            function = heading.group(2)
        elif match := _LINE.match(line):
            operands = re.sub(r"\s*[;@].*$", "", match.group(3) or "").strip()
            name = re.sub(r"\.[wn]$", "", match.group(2))
            found.append((int(match.group(1), 16), name, operands, function))
    ends = [address for address, *_ in found[1:]] + [found[-1][0] + 2] if found else []
    return {
        address: Instruction(address, end - address, name, operands, function)
        for (address, name, operands, function), end in zip(found, ends, strict=True)
    }


def block(code: dict[int, Instruction], begin: int, count: int) -> Sequence[Instruction]:
    """The instructions from ``begin`` on."""
    found = []
    for _ in range(count):
        found.append(code[begin])
        begin += code[begin].size
    return found
