# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Thumb instructions, as objdump prints them, to operations of the walk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from tinyml.bounds.decode_vectors import decode_vector
from tinyml.bounds.operands import Operands, UndecodedError, register
from tinyml.bounds.operations import CONDITIONS, PC, SHIFTS, SP, Flag, Kind, Operation
from tinyml.cost.instructions import Instruction

_BRANCHES = {f"b{name}": number for name, number in CONDITIONS.items()} | {"b": 14}
_LOGIC = {
    name: Kind[name.upper()]
    for name in [
        "mov",
        "mvn",
        "add",
        "adc",
        "sub",
        "sbc",
        "rsb",
        "and",
        "orr",
        "eor",
        "bic",
        "orn",
        "cmp",
        "cmn",
        "tst",
        "teq",
    ]
}
_COMPARES = (Kind.CMP, Kind.CMN, Kind.TST, Kind.TEQ)
_LONG = {
    "umull": Flag.NONE,
    "smull": Flag.SIGNED,
    "umlal": Flag.ADDS,
    "smlal": Flag.SIGNED | Flag.ADDS,
}
_FIELDS = {"ubfx": 0, "sbfx": 1, "bfi": 2, "bfc": 3}
_BITS = {"clz": 0, "rbit": 1, "rev": 2, "rev16": 3, "revsh": 4}
_EXTEND = re.compile(r"([us])xt(a?)([bh])$")
_ACCESS = re.compile(r"(ldr|str)(s?)([bhd]?)t?$")
_LIST = re.compile(r"(ldm|stm)(ia|db|fd|ea)?$")
_HALVES = re.compile(r"sm(ul|la)([bt])([bt])$")
_SELECTS = {"csel": 0, "csinc": 1, "csinv": 2, "csneg": 3}
_SELECTS_SELF = {"cinc": 1, "cinv": 2, "cneg": 3}
_NOTHING = re.compile(r"(nop|dsb|dmb|isb|pld|it[te]*|yield|sev|cps(id|ie))$|nop\b")
_LOOPS = re.compile(r"(wls|dls)(tp)?(?:\.(8|16|32))?$")
_ONE_UNKNOWN = re.compile(
    r"(smla|smls|smlad|smladx|smlsd|smlsdx|smuad|smuadx|smusd|smusdx|smmla|smmlar|smmls|smmlsr|smmul|smmulr"
    r"|smulw[bt]|smlaw[bt]|[us]xta?b16|pkhbt|pkhtb|q?d?(add|sub)(8|16)?|[usq]h?(add|sub)(8|16)|uq(add|sub)(8|16)"
    r"|qdadd|qdsub|sel|usad8|usada8|[us]sat16|mrs|[us](asx|sax)|[us]q?sh[lr]|[us]rshr|[us]qrsh[lr])$"
)
_BOTH_UNKNOWN = re.compile(
    r"(smlald|smlaldx|smlsld|smlsldx|smlal[bt][bt]|umaal|lsll|lsrl|asrl|[us]qshll|[us]rshrl|[us]qrsh[lr]l)$"
)


def decode(code: Sequence[Instruction]) -> tuple[list[Operation], dict[int, str]]:
    """The operations of instructions by rising address, and what could not be decoded, by address."""
    found: list[Operation] = []
    unknown: dict[int, str] = {}
    conditions: list[str] = []  # of the IT block that is open
    lanes: list[str] = []  # of the VPT block that is open
    for instruction in code:
        condition = conditions.pop(0) if conditions else ""
        lane = lanes.pop(0) if lanes and instruction.name.startswith("v") else ""
        name = instruction.name
        if re.fullmatch(r"it[te]*", name):
            first = CONDITIONS[instruction.operands]
            others = [first if letter == "t" else first ^ 1 for letter in name[2:]]
            conditions = [str(number) for number in (first, *others)]
        elif match := re.match(r"vp(?:st|t)([te]*)(\.|$)", name):
            lanes = ["t", *match[1]]
        try:
            operation = _one(instruction, condition, lane)
        except UndecodedError:
            unknown[instruction.address] = f"{instruction.name} {instruction.operands}".strip()
        else:
            found.append(operation)
    return found, unknown


def _one(instruction: Instruction, condition: str, lane: str) -> Operation:
    name, cond = re.sub(r"\.[wn]$", "", instruction.name), 14
    if condition:
        cond = int(condition)
        name = _without(name, cond)
    operation = _plain(instruction, name, lane)
    if condition:
        operation.cond = cond
    return operation


def _without(name: str, cond: int) -> str:
    """A name in an IT block without its condition."""
    stem, dot, rest = name.partition(".")
    for suffix in (suffix for suffix, number in CONDITIONS.items() if number == cond):
        if stem.endswith(suffix):
            return stem.removesuffix(suffix) + dot + rest
    raise UndecodedError


def _plain(instruction: Instruction, name: str, lane: str) -> Operation:
    operation = Operation(instruction.address, instruction.size, Kind.NOP)
    operands = Operands(instruction.operands)
    if name.startswith("v") or name == "lctp":
        return decode_vector(operation, name, operands, lane)
    if _NOTHING.match(name):
        return operation
    for decoder in _DECODERS:
        if decoder(operation, name, operands):
            return operation
    raise UndecodedError


def _arithmetic(to: Operation, name: str, operands: Operands) -> bool:
    stem = name if name in _LOGIC else name.removesuffix("s")
    if stem in ("addw", "subw", "movw"):
        stem = stem[:-1]
    if stem == "neg":
        stem, operands = "rsb", Operands(f"{operands.text}, #0")
    if stem not in _LOGIC:
        return False
    to.kind = _LOGIC[stem]
    compares = to.kind in _COMPARES
    moves = to.kind in (Kind.MOV, Kind.MVN)
    if compares or (name.endswith("s") and stem != name):
        to.flags |= Flag.SETS
    words = list(operands.words)
    shift = words.pop() if len(words) > 2 and words[-1].split()[0] in SHIFTS else ""
    if not compares:
        to.rd = register(words.pop(0))
    if not moves:
        to.rn = register(words.pop(0)) if len(words) > 1 or compares else to.rd
    if len(words) != 1:
        raise UndecodedError
    if words[0].startswith("#"):
        to.imm = int(words[0][1:], 0)
        to.extra = int(to.imm & 0xFFFFFFFF > 255)
        if to.rn == PC and not moves:  # an address near by: it is known
            base = (to.address + 4) & ~3
            to.imm = base + (to.imm if to.kind is Kind.ADD else -to.imm)
            to.kind = Kind.MOV
    else:
        to.rm = register(words[0])
        to.flags |= Flag.REGISTER
        _shift(to, shift)
        if to.kind is Kind.ADD and to.rd == PC and to.rn == PC and not shift:  # into a row of instructions
            to.kind, to.flags = Kind.BRANCH_TO, Flag.ADDS
            return True
        if PC in (to.rm, to.rn if not moves else 0):
            raise UndecodedError
    if to.rd == PC and not compares:
        if to.kind is not Kind.MOV or not to.flags & Flag.REGISTER:
            raise UndecodedError
        to.kind, to.flags = Kind.BRANCH_TO, Flag.OTHERWISE  # a jump by a table, if it is no return
    return True


def _shift(to: Operation, text: str) -> None:
    if text:
        word, _, by = text.partition(" ")
        to.shift, to.amount = SHIFTS[word], int(by[1:], 0) if by else 0


def _shifts(to: Operation, name: str, operands: Operands) -> bool:
    stem = name if name in SHIFTS else name.removesuffix("s")
    if stem not in SHIFTS:
        return False
    to.kind, to.shift = Kind.SHIFT, SHIFTS[stem]
    to.flags |= Flag.SETS if stem != name else Flag.NONE
    words = operands.words
    to.rd = register(words[0])
    to.rn = register(words[1]) if len(words) == 3 or stem == "rrx" else to.rd
    if stem == "rrx":
        return True
    if words[-1].startswith("#"):
        to.amount = int(words[-1][1:], 0)
    else:
        to.rm = register(words[-1])
        to.flags |= Flag.REGISTER
    return True


def _multiplies(to: Operation, name: str, operands: Operands) -> bool:
    words = operands.words
    if name in ("mul", "muls"):
        to.kind = Kind.MUL
        to.flags |= Flag.SETS if name == "muls" else Flag.NONE
        to.rd, to.rn = register(words[0]), register(words[-2])
        to.rm = register(words[-1])
    elif name in ("mla", "mls"):
        to.kind = Kind[name.upper()]
        to.rd, to.rn, to.rm, to.ra = map(register, words)
    elif name in _LONG:
        to.kind, to.flags = Kind.LONG, _LONG[name]
        to.rd, to.ra, to.rn, to.rm = map(register, words)
    elif name in ("sdiv", "udiv"):
        to.kind, to.flags = Kind.DIV, Flag.SIGNED if name == "sdiv" else Flag.NONE
        to.rd, to.rn, to.rm = register(words[0]), register(words[-2]), register(words[-1])
    elif match := _HALVES.match(name):
        to.kind = Kind.HALVES
        to.amount = (match[2] == "t") | (match[3] == "t") << 1
        to.rd, to.rn, to.rm = map(register, words[:3])
        if match[1] == "la":
            to.flags, to.ra = Flag.ADDS, register(words[3])
    else:
        return False
    return True


def _bits(to: Operation, name: str, operands: Operands) -> bool:
    words = list(operands.words)
    if match := _EXTEND.match(name):
        to.kind, to.width = Kind.EXTEND, 8 if match[3] == "b" else 16
        to.flags = Flag.SIGNED if match[1] == "s" else Flag.NONE
        if words[-1].startswith("ror"):
            to.amount = int(words.pop().partition("#")[2], 0)
        to.rd, to.rm = register(words[0]), register(words[-1])
        if match[2]:
            to.rn, to.flags = register(words[1]), to.flags | Flag.ADDS
    elif name in _FIELDS:
        to.kind, to.extra = Kind.FIELD, _FIELDS[name]
        to.rd = register(words[0])
        to.rn = to.rd if name == "bfc" else register(words[1])
        to.amount, to.width = (int(word[1:], 0) for word in words[-2:])
    elif name in _BITS:
        to.kind, to.extra = Kind.BITS, _BITS[name]
        to.rd, to.rm = register(words[0]), register(words[-1])
    elif name == "movt":
        to.kind, to.rd, to.imm = Kind.MOVT, register(words[0]), int(words[1][1:], 0)
    elif name in ("ssat", "usat"):
        to.kind, to.flags = Kind.SATURATE, Flag.SIGNED if name == "ssat" else Flag.NONE
        to.rd, to.width, to.rm = register(words[0]), int(words[1][1:], 0), register(words[2])
        _shift(to, words[3] if len(words) > 3 else "")
    else:
        return False
    return True


def _selects(to: Operation, name: str, operands: Operands) -> bool:
    words = operands.words
    if name in _SELECTS:
        to.extra, to.amount = _SELECTS[name], CONDITIONS[words[3]]
        to.rn, to.rm = (PC if word == "zr" else register(word) for word in words[1:3])
    elif name in _SELECTS_SELF:
        to.extra, to.amount = _SELECTS_SELF[name], CONDITIONS[words[2]] ^ 1
        to.rn = to.rm = PC if words[1] == "zr" else register(words[1])
    elif name in ("cset", "csetm"):
        to.extra, to.amount = 1 if name == "cset" else 2, CONDITIONS[words[1]] ^ 1
        to.rn = to.rm = PC
    else:
        return False
    to.kind, to.rd, to.flags = Kind.SELECT, register(words[0]), Flag.REGISTER
    return True


def _accesses(to: Operation, name: str, operands: Operands) -> bool:
    if match := _ACCESS.match(name):
        loads, two = match[1] == "ldr", match[3] == "d"
        to.kind = Kind[f"{'LOAD' if loads else 'STORE'}{'_TWO' if two else ''}"]
        to.width = {"": 4, "b": 1, "h": 2, "d": 4}[match[3]]
        to.flags = Flag.SIGNED if match[2] else Flag.NONE
        to.rd = register(operands.words[0])
        if two:
            to.ra = register(operands.words[1])
        operands.address(to)
    elif (match := _LIST.match(name)) or name in ("push", "pop"):
        stack = match is None
        to.rn = SP if stack else register(operands.words[0].rstrip("!"))
        loads = name.startswith(("ldm", "pop"))
        to.kind = Kind.LOAD_LIST if loads else Kind.STORE_LIST
        to.imm = sum(1 << number for number in operands.listed)
        before = name == "push" or bool(match and match[2] in ("db", "fd" if not loads else "ea"))
        to.flags = Flag.BEFORE if before else Flag.NONE
        if stack or operands.words[0].endswith("!"):
            to.flags |= Flag.BACK
    else:
        return False
    return True


def _jumps(to: Operation, name: str, operands: Operands) -> bool:
    words = operands.words
    if name in _BRANCHES:
        to.kind, to.cond, to.target = Kind.BRANCH, _BRANCHES[name], operands.place
    elif name in ("cbz", "cbnz"):
        to.kind, to.rn, to.target = Kind.BRANCH_ZERO, register(words[0]), operands.place
        to.flags = Flag.OTHERWISE if name == "cbnz" else Flag.NONE
    elif name == "bl":
        inside = "+0x" in operands.text  # a jump that is too far for a branch
        to.kind, to.target = Kind.BRANCH if inside else Kind.CALL, operands.place
        to.flags = Flag.BACK if inside else Flag.NONE
    elif name in ("bx", "blx"):
        to.kind, to.rm = Kind.BRANCH_TO if name == "bx" else Kind.CALL_TO, register(words[0])
    elif name in ("tbb", "tbh"):
        base, index, *_ = operands.text.strip("[]").split(",")
        to.kind, to.width = Kind.TABLE, 1 if name == "tbb" else 2
        to.rn, to.rm = register(base), register(index)
    elif match := _LOOPS.match(name):
        to.kind, to.rn = Kind.LOOP_START, register(words[1])
        to.width = 128 // int(match[3]) if match[2] else 0
        to.target = operands.place if match[1] == "wls" else 0
    elif name in ("le", "letp") and words[0] == "lr":
        to.kind, to.target = Kind.LOOP_END, operands.place
    else:
        return False
    return True


def _unknown(to: Operation, name: str, operands: Operands) -> bool:
    """Arithmetic on data alone: its results are unknown, whatever they are computed from."""
    words = operands.words
    both = bool(_BOTH_UNKNOWN.match(name))
    if not both and not _ONE_UNKNOWN.match(name):
        if name != "msr":
            return False
        to.kind = Kind.FLOAT_FLAGS if "apsr" in words[0].lower() else Kind.NOP
        return True
    to.kind = Kind.OPAQUE
    to.imm = sum(1 << register(word) for word in words[: 2 if both else 1])
    return True


_DECODERS: Iterable[Callable[[Operation, str, Operands], bool]] = (
    *(_jumps, _arithmetic, _shifts, _multiplies, _bits, _selects, _accesses, _unknown),
)
