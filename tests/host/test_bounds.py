# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Bounds: reading machine code, and where the ways of a branch meet. tests/standalone walks real code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tinyml
from tinyml.base.errors import ConfigError
from tinyml.bounds.decode import decode
from tinyml.bounds.elf import read_elf
from tinyml.bounds.flow import set_merges
from tinyml.bounds.images import built_models, machine_for
from tinyml.bounds.layer_lines import layers_by_line
from tinyml.bounds.loops import loop_starts
from tinyml.bounds.operations import AT_RETURN, Flag, Kind, Operation, Role
from tinyml.bounds.parts import MOST_PARTS
from tinyml.bounds.stated_turns import turns_by_line
from tinyml.bounds.walk_program import SOURCES, read_findings
from tinyml.cost.instructions import disassemble
from tools import worst_cases, worst_ways


def decoded(*lines: str) -> list[Operation]:
    text = "\n".join(f"  {2 * number:x}:\t{line}" for number, line in enumerate(lines))
    operations, unknown = decode(list(disassemble(f"00000000 <f>:\n{text}\n").values()))
    assert not unknown, unknown
    return operations


def test_kinds_are_those_of_the_walk() -> None:
    body = re.search(r"enum kind \{(.*?)\n\};", (SOURCES / "ops.h").read_text(), re.DOTALL)
    assert body is not None
    names = re.findall(r"^\tK_(\w+),", body[1], re.MULTILINE)
    assert names == [kind.name for kind in Kind]
    flags = dict(re.findall(r"F_(\w+) = (\d+),", (SOURCES / "ops.h").read_text()))
    assert {name: int(value) for name, value in flags.items()} == {
        str(flag.name): int(flag) for flag in Flag if flag
    }
    roles = dict(re.findall(r"ROLE_(\w+) = (\d+),", (SOURCES / "ops.h").read_text()))
    assert {name: int(value) for name, value in roles.items()} == {
        role.name: int(role) for role in Role if role
    }
    parts = re.search(r"#define MAX_PARTS\s+(\d+)u", (SOURCES / "machine.h").read_text())
    assert parts is not None
    assert int(parts[1]) == MOST_PARTS + 1


@pytest.mark.parametrize(
    "line, fields",
    [
        ("adds\tr0, #1", {"kind": Kind.ADD, "rd": 0, "rn": 0, "imm": 1, "flags": Flag.SETS}),
        ("add.w\tr0, r1, r2, lsl #2", {"rd": 0, "rn": 1, "rm": 2, "amount": 2, "flags": Flag.REGISTER}),
        ("negs\tr3, r4", {"kind": Kind.RSB, "rd": 3, "rn": 4, "imm": 0, "flags": Flag.SETS}),
        ("ldr.w\tr3, [r0], #4", {"kind": Kind.LOAD, "rd": 3, "rn": 0, "imm": 4, "flags": Flag.BACK}),
        ("ldr\tr5, [pc, #8]", {"kind": Kind.LOAD, "rn": 15, "imm": 12}),
        ("ldrsh.w\tr3, [r0, #2]!", {"width": 2, "flags": Flag.BACK | Flag.BEFORE | Flag.SIGNED}),
        ("stmdb\tsp!, {r4-r6, lr}", {"kind": Kind.STORE_LIST, "imm": 0x4070}),
        ("smlal\tr0, r1, r2, r3", {"kind": Kind.LONG, "rd": 0, "ra": 1, "rn": 2, "rm": 3}),
        ("smlad\tr0, r1, r2, r3", {"kind": Kind.OPAQUE, "imm": 1}),
        ("mls\tr0, r1, r2, r3", {"kind": Kind.MLS, "ra": 3}),
        ("tbb\t[pc, r3]", {"kind": Kind.TABLE, "rn": 15, "rm": 3, "width": 1}),
        ("bl\t20 <f+0x20>", {"kind": Kind.BRANCH, "target": 0x20}),
        ("bl\t20 <g>", {"kind": Kind.CALL, "target": 0x20}),
        ("wlstp.8\tlr, r7, 5e <f+0x5e>", {"kind": Kind.LOOP_START, "rn": 7, "width": 16, "target": 0x5E}),
        ("vmov\tr1, s3", {"kind": Kind.FROM_FLOAT, "rd": 3, "rn": 1}),
        ("vmladava.s8\tlr, q0, q1", {"kind": Kind.OPAQUE, "imm": 1 << 14, "target": 0}),
        ("vadd.i32\tq1, q2, r3", {"kind": Kind.OPAQUE, "imm": 0, "target": 0xF0}),
        ("vstrb.8\tq0, [r3], #16", {"kind": Kind.VECTOR_STORE, "width": 1, "imm": 16, "rn": 3}),
        ("vstrb.32\tq0, [r5, q7]", {"kind": Kind.VECTOR_STORE, "width": 1, "rn": 5, "ra": 28, "extra": 0}),
        ("vmov\tq7[2], q7[0], r4, r8", {"kind": Kind.TO_FLOAT, "rd": 28, "ra": 30, "rn": 4, "rm": 8}),
        ("vmov.f32\ts0, #112\t@ 0x3f800000  1.0", {"kind": Kind.TO_FLOAT, "rn": 15, "imm": 0x3F800000}),
        ("vmov.f32\ts9, #144\t@ 0xc0800000 -4.0", {"rd": 9, "imm": 0xC0800000}),
        ("vpush\t{d8-d11}", {"kind": Kind.FLOAT_STORE, "rd": 16, "width": 8, "imm": -32}),
    ],
)
def test_instructions_are_read(line: str, fields: dict[str, object]) -> None:
    (operation,) = decoded(line)
    assert {name: getattr(operation, name) for name in fields} == fields


def test_conditions_come_from_the_block_before() -> None:
    _, first, second, after = decoded("ite\tge", "movge\tr0, #1", "movlt\tr0, #2", "mov\tr1, r0")
    assert [first.cond, second.cond, after.cond] == [10, 11, 14]


def test_an_unknown_instruction_is_named() -> None:
    operations, unknown = decode(list(disassemble("00000000 <f>:\n  0:\tldrex\tr0, [r1]\n").values()))
    assert not operations
    assert unknown == {0: "ldrex r0, [r1]"}


def test_the_ways_of_a_branch_meet() -> None:
    code = decoded("beq.n\t6 <f+0x6>", "adds\tr0, #1", "b.n\t8 <f+0x8>", "adds\tr0, #2", "bx\tlr")
    set_merges(code, lambda address, count: None)
    assert code[0].merge == 4
    code = decoded("beq.n\t4 <f+0x4>", "bx\tlr", "bx\tlr")
    set_merges(code, lambda address, count: None)
    assert code[0].merge == AT_RETURN


def test_branches_know_the_start_of_their_loop() -> None:
    """The innermost one, also of code that is not between its start and the jump back."""
    assert loop_starts([[3], [2, 6], [5, 3], [1, 4], [5, 3], [], [2]]) == [None, 3, 3, 3, 3, None, 3]
    assert loop_starts([[1], [1, 2], [0, 3], []]) == [0, 1, 0, None]


def test_lines_of_generated_code_belong_to_layers() -> None:
    source = (
        "static int other(void)\n{\n}\n"
        "static void m_conv1(const int8_t *x)\n{\n\tloop();\n}\n"
        "int m_run(void)\n{\n\tTINYML_LAYER(3, m_conv1(x));\n}\n"
    )
    assert layers_by_line(source) == {4: 3, 5: 3, 6: 3, 7: 3, 10: 3}


def test_comments_say_how_often_loops_turn() -> None:
    assert turns_by_line("a\n\t/* at most 3 turns */\n\twhile (x) {\n/* at most 1 turn */\n") == {3: 3, 5: 1}


def test_a_failure_is_read() -> None:
    found = read_findings("anywhere 12\nfail 34 a loop that ends by data\n")
    assert found.failure == (34, "a loop that ends by data")
    assert found.by_data == [12]


def test_mistakes_are_explained(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no image")
    with pytest.raises(ConfigError, match="not an ELF file for a 32-bit Arm core"):
        read_elf(tmp_path / "text")
    with pytest.raises(ConfigError, match="has no image with a model"):
        built_models(tmp_path)
    with pytest.raises(ConfigError, match="there are no bounds for riscv32"):
        machine_for("riscv32")
    with pytest.raises(ConfigError, match="there are no bounds for host"):
        tinyml.bound(Path(__file__).parents[2] / "samples/digits/model.onnx", "host")


def test_the_page_of_worst_cases_is_current() -> None:
    rows = worst_cases.load()
    ways = worst_ways.load()
    assert worst_cases.PAGE.read_text(encoding="utf-8") == worst_cases.page(rows, ways)
    assert {row.model for row in rows} == set(worst_cases.MODELS)
    for row in rows:
        assert row.worst <= row.bound <= 1.05 * row.worst, row
        assert row.stack_used <= row.stack_bound <= row.stack_used + 64, row
    assert {way.machine for way in ways} == set(worst_cases.MACHINES)
    for way in ways:
        assert way.worst <= way.bound <= 1.2 * way.worst, way
