# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A program as bytes: <tinyml/play.h> and runtime/player/program.h describe them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ops.framework.program import Call, Operand, Repeat, Step, Turns
from tinyml.player.kernels import KERNELS
from tinyml.player.program import Program

FORMAT, LOOPS_FORMAT = 1, 2
HEADER = struct.Struct("<IBBHIIIII")
POSITION_BITS = 30
WORD = 4


@dataclass(frozen=True)
class Encoded:
    """The bytes of a program, from its header on."""

    content: bytes
    constants: int  # bytes of its constants


def encode(program: Program, start: int, work: int, test_step: int) -> Encoded:
    """``start`` is the position of the program in its image; ``test_step`` that of its self-test."""
    tables: dict[str, int] = {}
    constants = bytearray()
    first = start + HEADER.size
    for table in program.tables:
        constants += bytes(-(first + len(constants)) % max(WORD, table.alignment, table.values.itemsize))
        tables[table.name] = first + len(constants)
        constants += table.values.tobytes()
    constants += bytes(-len(constants) % WORD)
    records = _Records(first + len(constants), tables)
    run = _words(program.run, records)
    reset = _words(program.reset, records)
    calls = records.start + len(records.content)
    loops = any(isinstance(step, Turns) for step in (*program.run, *program.reset))
    version = LOOPS_FORMAT if loops else FORMAT
    layouts = max((KERNELS[call.function].layouts for call in program.calls()), default=0)
    starts = (calls, len(run), calls + WORD * len(run), len(reset))
    header = HEADER.pack(0, version, layouts, test_step, work, *starts)
    words = struct.pack(f"<{len(run) + len(reset)}I", *run, *reset)
    return Encoded(header + bytes(constants) + bytes(records.content) + words, len(constants))


def checksum(payload: bytes, program: int) -> int:
    """The sum of a payload's words, without the one at ``program``, in which it is kept."""
    total = 0
    words = struct.unpack(f"<{len(payload) // WORD}I", payload)
    for place, word in enumerate(words):
        if place != program // WORD:
            total = ((total >> 1 | total << 31) + word) & 0xFFFFFFFF
    return total


class _Records:
    """The records of all calls; equal ones are stored once."""

    def __init__(self, start: int, tables: Mapping[str, int]) -> None:
        self.start, self.tables = start, tables
        self.content = bytearray()
        self._known: dict[bytes, int] = {}

    def position(self, call: Call) -> int:
        content = KERNELS[call.function].record.encode(call.record, self.tables)
        content += bytes(-len(content) % WORD)
        if content not in self._known:
            self._known[content] = self.start + len(self.content)
            self.content += content
        return self._known[content]

    def operand(self, operand: Operand) -> int:
        position = operand.position + (self.tables[operand.table] if operand.table else 0)
        return operand.memory << POSITION_BITS | position


def _words(steps: Sequence[Step], records: _Records, level: int = 0) -> list[int]:
    """``level``: loops around the steps."""
    words: list[int] = []
    for step in steps:
        if isinstance(step, Repeat):
            body = [word for call in step.calls for word in _call(call, records, level)]
            words += [step.count << 16, len(body), *body]
        elif isinstance(step, Turns):
            body = _words(step.steps, records, level + 1)
            record = replace(step.call.record, members={**step.call.record.members, ".words": str(len(body))})
            words += [*_call(replace(step.call, record=record), records, level), *body]
        else:
            words += _call(step, records, level)
    return words


def _call(call: Call, records: _Records, level: int) -> list[int]:
    kernel = KERNELS[call.function]
    assert len(call.operands) == kernel.operands, call
    steps = [operand.step for operand in call.operands]
    for loop in range(level):
        steps += [(*operand.loops, *(0,) * level)[loop] for operand in call.operands]
    stepped = any(steps)
    head = kernel.number | len(call.operands) << 10 | int(stepped) << 13 | call.layer << 16
    words = [head, records.position(call), *(records.operand(operand) for operand in call.operands)]
    return words + [step & 0xFFFFFFFF for step in steps] if stepped else words
