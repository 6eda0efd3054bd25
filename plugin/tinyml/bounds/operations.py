# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Instructions as the walk takes them: what an operation is, and how it is written for c/walk.c."""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag

from tinyml.base.lazy_dataclass import dataclass


class Kind(IntEnum):
    """enum kind of c/ops.h has the same order."""

    NOP = 0
    MOV = 1
    MVN = 2
    ADD = 3
    ADC = 4
    SUB = 5
    SBC = 6
    RSB = 7
    AND = 8
    ORR = 9
    EOR = 10
    BIC = 11
    ORN = 12
    CMP = 13
    CMN = 14
    TST = 15
    TEQ = 16
    SHIFT = 17
    MUL = 18
    MLA = 19
    MLS = 20
    LONG = 21
    DIV = 22
    EXTEND = 23
    FIELD = 24
    BITS = 25
    MOVT = 26
    HALVES = 27
    SATURATE = 28
    SELECT = 29
    OPAQUE = 30
    LOAD = 31
    STORE = 32
    LOAD_TWO = 33
    STORE_TWO = 34
    LOAD_LIST = 35
    STORE_LIST = 36
    BRANCH = 37
    BRANCH_ZERO = 38
    CALL = 39
    BRANCH_TO = 40
    CALL_TO = 41
    TABLE = 42
    LOOP_START = 43
    LOOP_END = 44
    FLOAT_LOAD = 45
    FLOAT_STORE = 46
    FLOAT_MOVE = 47
    TO_FLOAT = 48
    FROM_FLOAT = 49
    FLOAT_FLAGS = 50
    VECTOR_LOAD = 51
    VECTOR_STORE = 52
    VECTOR_TAIL = 53
    PREDICATE = 54


class Flag(IntFlag):
    """The flags of an operation: see c/ops.h."""

    NONE = 0
    SETS = 1
    REGISTER = 2
    SIGNED = 4
    ADDS = 8
    BEFORE = 16
    BACK = 32
    OTHERWISE = 64
    MASKED = 128


class Role(IntEnum):
    """What begins at an operation, of a part whose runs have a total: see c/ops.h."""

    NONE = 0
    CALL = 1
    TURN = 2
    STATES = 3


SP, LR, PC = 13, 14, 15
ALWAYS = 14
AT_RETURN = -1
NO_LAYER = 0xFFFF
CONDITIONS = {
    **{
        name: number
        for number, name in enumerate(
            ["eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al"]
        )
    },
    "hs": 2,
    "lo": 3,
}
SHIFTS = {"lsl": 0, "lsr": 1, "asr": 2, "ror": 3, "rrx": 4}
_LAYOUT = struct.Struct("<I4B4B4BiIiI6H")


@dataclass
class Operation:
    """One instruction. The fields are those of ``struct op``; what they mean depends on the kind."""

    address: int
    size: int
    kind: Kind
    cond: int = ALWAYS
    flags: Flag = Flag.NONE
    rd: int = PC
    rn: int = PC
    rm: int = PC
    ra: int = PC
    shift: int = 0
    amount: int = 0
    width: int = 0
    extra: int = 0
    imm: int = 0
    target: int = 0
    merge: int = AT_RETURN
    again: int = 0
    cycles: int = 0
    taken: int = 0
    layer: int = NO_LAYER
    limit: int = 0
    part: int = 0
    role: Role = Role.NONE

    def packed(self) -> bytes:
        return _LAYOUT.pack(
            *(self.address, self.size, self.kind, self.cond, self.flags),
            *(self.rd, self.rn, self.rm, self.ra, self.shift, self.amount, self.width, self.extra),
            *(
                _signed(self.imm),
                self.target,
                self.merge,
                self.again,
                self.cycles,
                self.taken,
                self.layer,
                self.limit,
                self.part,
                self.role,
            ),
        )

    @property
    def falls_through(self) -> bool:
        """Whether the next instruction can follow: after a call it does."""
        if self.cond != ALWAYS or self.kind in (Kind.BRANCH_ZERO, Kind.LOOP_END, Kind.LOOP_START):
            return True
        return not (self.kind in (Kind.BRANCH, Kind.BRANCH_TO, Kind.TABLE) or self.loads_pc)

    @property
    def loads_pc(self) -> bool:
        if self.kind is Kind.LOAD:
            return self.rd == PC
        return self.kind is Kind.LOAD_LIST and bool(self.imm >> PC & 1)


def _signed(value: int) -> int:
    """As the same 32 bits with a sign."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
