# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Caches between writing code and running it, and the bits that say what a core can run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tinyml.cores.toolchains import ARM, RISCV
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE
from tinyml.harness.tools import cross_compiler, host_compiler

SYNC = Path(RUNTIME_C) / "slot" / "sync.c"
CORTEX_M7 = ("-mcpu=cortex-m7", "-mthumb")


def compiled(tmp_path: Path, *flags: str, riscv: bool = False) -> str:
    """The assembly of sync.c, without comments and directives."""
    compiler = cross_compiler(RISCV if riscv else ARM)
    output = tmp_path / "sync.s"
    command = [
        str(compiler.path),
        "-O2",
        *flags,
        f"-I{RUNTIME_INCLUDE}",
        "-ffreestanding",
        "-S",
        str(SYNC),
        "-o",
        str(output),
    ]
    subprocess.run(command, check=True)
    return output.read_text()


def recorded(tmp_path: Path, caches: int, start: int, size: int) -> list[tuple[int, int]]:
    """The registers that are written, in order, with ``caches`` in CCR: sync.c on the host, where a recorder
    takes the place of the registers and of the barriers."""
    source = SYNC.read_text(encoding="utf-8")
    source = re.sub(r"#if defined\(__ARM_ARCH_PROFILE\).*", "#if 1", source)
    source = source.replace('__asm__ volatile("dsb 0xf\\nisb 0xf" ::: "memory")', "record(0u, 0u)")
    source = re.sub(r"(ICIMVAU|DCCIMVAC|BPIALL) = (\w+);", r"record(\1, \2);", source)
    source = source.replace("uint32_t caches = CCR;", f"uint32_t caches = {caches}u;")
    assert source.count("record(") == 4
    (tmp_path / "sync.c").write_text(
        "#include <stdint.h>\n#include <stdio.h>\n#define TINYML_SLOT_REGISTER(offset) (offset)\n"
        'static void record(unsigned a, unsigned b) { printf("%u %u\\n", a, b); }\n'
        f"{source}\nint main(void) {{ tinyml_slot_sync((void *)(uintptr_t){start}u, {size}u); }}\n"
    )
    program = tmp_path / "sync"
    command = [
        str(host_compiler().path),
        f"-I{RUNTIME_INCLUDE}",
        str(tmp_path / "sync.c"),
        "-o",
        str(program),
    ]
    subprocess.run(command, check=True)
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    return [(int(a), int(b)) for a, b in (line.split() for line in said.splitlines())]


BARRIER = (0, 0)
DATA, INSTRUCTIONS, BRANCHES = 0xF70, 0xF58, 0xF78  # DCCIMVAC, ICIMVAU, BPIALL


def test_every_line_is_cleaned_before_instructions_are_forgotten(tmp_path: Path) -> None:
    lines = [0x60020, 0x60040, 0x60060]
    assert recorded(tmp_path, 0x30000, 0x60024, 0x60) == [
        BARRIER,
        *((DATA, line) for line in [*lines, 0x60080]),
        BARRIER,
        *((INSTRUCTIONS, line) for line in [*lines, 0x60080]),
        (BRANCHES, 0),
        BARRIER,
    ]


@pytest.mark.parametrize(
    "caches, registers", [(0, set()), (0x10000, {DATA}), (0x20000, {INSTRUCTIONS, BRANCHES})]
)
def test_caches_that_are_off_are_left_alone(tmp_path: Path, caches: int, registers: set[int]) -> None:
    found = recorded(tmp_path, caches, 0x60000, 64)
    assert {register for register, _ in found} - {0} == registers


def test_instructions_of_each_core(tmp_path: Path) -> None:
    m7 = compiled(tmp_path, *CORTEX_M7)
    assert m7.count("dsb") >= 3
    assert m7.count("isb") >= 3
    assert "-536813568" in m7, "0xe000e000, the System Control Space"
    assert "dsb" not in compiled(tmp_path, "-mcpu=cortex-m0", "-mthumb"), "no caches, no registers for them"
    risc = ("-march=rv32imac", "-mabi=ilp32")
    assert ".4byte 0x0000100f" in compiled(tmp_path, *risc, riscv=True)
    assert "0x0000100f" not in compiled(tmp_path, *risc, "-DTINYML_SLOT_NO_FENCE_I", riscv=True)


@pytest.mark.parametrize(
    "march, mabi, base", [("rv32imac", "ilp32", "RV32I"), ("rv32emac", "ilp32e", "RV32E")]
)
def test_a_core_with_16_registers_is_another_core(tmp_path: Path, march: str, mabi: str, base: str) -> None:
    """The bits that a firmware for it compares with those of an image."""
    source = tmp_path / "core.c"
    other = "RV32E" if base == "RV32I" else "RV32I"
    source.write_text(
        "#include <tinyml/slot.h>\n"
        f'_Static_assert((TINYML_SLOT_CORE & TINYML_SLOT_CORE_{base}) != 0, "its own");\n'
        f'_Static_assert((TINYML_SLOT_CORE & TINYML_SLOT_CORE_{other}) == 0, "the other one");\n'
    )
    compiler = cross_compiler(RISCV)
    flags = [f"-march={march}", f"-mabi={mabi}", f"-I{RUNTIME_INCLUDE}", "-ffreestanding", "-fsyntax-only"]
    subprocess.run([str(compiler.path), *flags, str(source)], check=True)
