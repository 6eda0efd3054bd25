# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Floating-point and Helium instructions: what they compute is unknown, what they move and address is not."""

from __future__ import annotations

import re

from tinyml.bounds.operands import Operands, UndecodedError, float_words, register
from tinyml.bounds.operations import PC, SP, Flag, Kind, Operation

_VECTOR_ACCESS = re.compile(r"v(ldr|str)([bhwd])(?:\.[usfi]?(\d+))?$")
_INTERLEAVED = re.compile(r"v(ld|st)([24])[0-3]\.(\d+)$")
_LIST = re.compile(r"v(ldm|stm)(ia|db)$")
_ELEMENT = {"b": 1, "h": 2, "w": 4, "d": 8}
_PLACES = re.compile(r"\[(\w+), q(\d)\]$")
_LANE = re.compile(r"q(\d)\[(\d+)\]$")
_COUNTS_UP = re.compile(r"v(i|d)w?dup\.")


def decode_vector(to: Operation, name: str, operands: Operands, lane: str) -> Operation:
    """Fill in the operation. ``lane``: then or else, in a VPT block."""
    if lane:
        to.flags |= Flag.MASKED | (Flag.OTHERWISE if lane == "e" else Flag.NONE)
        stem, dot, rest = name.partition(".")
        name = stem.removesuffix(lane) + dot + rest
    for decoder in (_predicates, _accesses, _moves):
        if decoder(to, name, operands):
            return to
    _computes(to, name, operands)
    return to


def _mask(word: str) -> int:
    first, words = float_words(word)
    if first + words > 32:
        raise UndecodedError
    return ((1 << words) - 1) << first


def _predicates(to: Operation, name: str, operands: Operands) -> bool:
    first = operands.words[0].lower() if operands.words else ""
    if re.match(r"vpst[te]*$", name):
        to.kind = Kind.NOP
    elif (
        name.startswith("vpt") or name == "vpnot" or (name.startswith("vcmp") and " q" in f" {operands.text}")
    ):
        to.kind = Kind.PREDICATE
    elif name.startswith("vcmp"):
        to.kind = Kind.NOP  # flags that vmrs brings
    elif name.startswith("vctp"):
        to.kind, to.rn, to.amount = Kind.VECTOR_TAIL, register(first), int(name.partition(".")[2]) // 8
    elif name == "vmrs":
        if first == "apsr_nzcv":
            to.kind = Kind.FLOAT_FLAGS
        else:
            to.kind, to.imm = Kind.OPAQUE, 1 << register(first)
    elif name == "vmsr":
        to.kind = Kind.NOP if first == "fpscr" else Kind.PREDICATE
    else:
        return False
    return True


def _accesses(to: Operation, name: str, operands: Operands) -> bool:
    if re.match(r"v(ldr|str)(\.\d+)?$", name):
        loads = name.startswith("vldr")
        to.rd, to.width = float_words(operands.words[0])
        operands.address(to)
        to.kind = Kind.FLOAT_LOAD if loads else Kind.FLOAT_STORE
    elif (match := _LIST.match(name)) or name in ("vpush", "vpop"):
        _list(to, name, operands)
        if match and match[2] == "db" and not to.flags & Flag.BACK:
            raise UndecodedError
    elif match := _VECTOR_ACCESS.match(name):
        loads = match[1] == "ldr"
        to.kind = Kind.VECTOR_LOAD if loads else Kind.VECTOR_STORE
        to.target = _mask(operands.words[0])
        to.rd = float_words(operands.words[0])[0] // 4
        to.width, to.amount, to.extra = _ELEMENT[match[2]], int(match[3] or 8) // 8, 1
        if re.search(r"\[.*q\d", operands.text):
            to.imm = 0
            if loads:
                to.kind = Kind.OPAQUE
            elif (places := _PLACES.search(operands.text)) and to.amount == 4:
                to.rn, to.ra, to.extra = register(places[1]), 4 * int(places[2]), 0
            else:
                raise UndecodedError  # addresses that are no words, or the vector alone
        else:
            operands.address(to)
    elif match := _INTERLEAVED.match(name):
        vectors = int(match[2])
        to.kind = Kind.VECTOR_LOAD if match[1] == "ld" else Kind.VECTOR_STORE
        to.extra = vectors
        if match[1] == "ld":
            to.target = sum({_mask(word) for word in operands.braced})
        back = operands.text.endswith("!")
        Operands(operands.text.rstrip("!")).address(to)
        if back:
            to.flags |= Flag.BACK
            to.imm = 16 * vectors
    else:
        return False
    return True


def _list(to: Operation, name: str, operands: Operands) -> None:
    words = [float_words(end) for part in operands.braced for end in part.split("-")]
    to.rd = words[0][0]
    to.width = words[-1][0] + words[-1][1] - to.rd
    to.kind = Kind.FLOAT_LOAD if name in ("vpop", "vldmia", "vldmdb") else Kind.FLOAT_STORE
    stack = name in ("vpush", "vpop")
    to.rn = SP if stack else register(operands.words[0].rstrip("!"))
    if stack or operands.words[0].endswith("!"):
        before = name == "vpush" or name.endswith("db")
        to.flags |= Flag.BACK | (Flag.BEFORE if before else Flag.NONE)
        to.imm = -4 * to.width if before else 4 * to.width


def _moves(to: Operation, name: str, operands: Operands) -> bool:
    """Moves whose values pass unchanged: compilers keep addresses in float registers."""
    if not re.match(r"vmov(\.(f32|f64|32))?$", name):
        return False
    words = operands.words
    kinds = "".join("r" if re.match(r"r\d|ip|lr|fp|sl|sb|sp", word) else word[0] for word in words)
    if kinds in ("sr", "drr", "ssrr"):
        to.kind = Kind.TO_FLOAT
        to.rd, to.width = float_words(words[0])[0], kinds.count("r")
        to.ra = to.rd + 1
        to.rn, to.rm = register(words[-to.width]), register(words[-1])
    elif kinds in ("rs", "rrd", "rrss"):
        to.kind = Kind.FROM_FLOAT
        to.width = kinds.count("r")
        to.rd = float_words(words[to.width])[0]
        to.rn, to.rm = register(words[0]), register(words[to.width - 1])
    elif kinds == "s#" and name == "vmov.f32":
        to.kind = Kind.TO_FLOAT
        to.rd, to.width, to.rn, to.imm = float_words(words[0])[0], 1, PC, _expanded(int(words[1][1:]))
    elif kinds == "qqrr":  # two registers become lanes of one vector, the first that of the second word
        second, first = (_LANE.match(word) for word in words[:2])
        if not (first and second):
            return False
        to.kind, to.width = Kind.TO_FLOAT, 2
        to.rd, to.ra = (4 * int(lane[1]) + int(lane[2]) for lane in (first, second))
        to.rn, to.rm = register(words[2]), register(words[3])
    elif kinds in ("ss", "dd"):
        to.kind = Kind.FLOAT_MOVE
        (to.rd, to.width), (to.ra, _) = float_words(words[0]), float_words(words[1])
    elif kinds in ("rq", "qr") and (lane := _LANE.match(words[kinds.index("q")])) and name == "vmov.32":
        to.kind = Kind.FROM_FLOAT if kinds == "rq" else Kind.TO_FLOAT
        to.rd, to.width = 4 * int(lane[1]) + int(lane[2]), 1
        to.rn = to.rm = register(words[kinds.index("r")])
    else:
        return False
    return True


def _expanded(constant: int) -> int:
    """The bits of a float that an instruction has in eight."""
    exponent = 0x3E000000 if constant >> 6 & 1 else 0x40000000
    return (constant >> 7) << 31 | exponent | (constant & 0x3F) << 19


def _computes(to: Operation, name: str, operands: Operands) -> None:
    """Results become unknown: the registers that are named first, and counters that move on."""
    to.kind = Kind.OPAQUE
    for place, word in enumerate(operands.words[:2]):
        if re.match(r"[sdq]\d+(\[\d+\])?$", word):
            if place == 0 or _LANE.match(word) or _LANE.match(operands.words[0]):
                to.target |= _mask(word.partition("[")[0])
            if place == 0 and not _LANE.match(word):
                break
        elif place == 0 or not re.match(r"[sdq]\d", operands.words[0]):
            to.imm |= 1 << register(word) if re.match(r"r\d|ip|lr|fp|sl|sb", word) else 0
    if _COUNTS_UP.match(name) or name.startswith("vshlc"):
        to.imm |= 1 << register(operands.words[1])
    if not to.imm and not to.target:
        raise UndecodedError
