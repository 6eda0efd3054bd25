# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Assembly in the runtime keeps its layout, and the compiler checks the offsets that it knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[2] / "plugin" / "tinyml" / "runtime"
FILES = sorted(RUNTIME.rglob("*.[ch]"))
INSTRUCTION = re.compile(r'\\n(\\t)?"')  # the end of a line of assembly
FENCED = re.compile(r"/\* clang-format off \*/.*?/\* clang-format on \*/", re.DOTALL)
STRUCTURE = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.DOTALL | re.MULTILINE)
MEMBER = re.compile(r"[\s*](\w+)(?:\[[^]]*\])*[,;]")
TAKEN = (
    re.compile(r"TINYML_ASSEMBLY static [^;{]*?\{", re.DOTALL),  # parameters of functions in assembly
    re.compile(r"register [^;]*__asm__"),  # variables that are put into a register
)


def unfenced(text: str) -> list[str]:
    """Lines of assembly that clang-format would lay out, beyond a single instruction."""
    return [line for line in FENCED.sub("", text).splitlines() if INSTRUCTION.search(line)]


def known_structures() -> Iterator[tuple[Path, str]]:
    for path in FILES:
        for pattern in TAKEN:
            for place in pattern.findall(path.read_text()):
                for name in re.findall(r"struct (\w+) \*", place):
                    yield path, name


def checked(text: str, structure: str) -> dict[str, int]:
    lines = re.findall(rf"^TINYML_OFFSET\(struct {structure}, (\w+), (\d+)\);", text, re.MULTILINE)
    return {member: int(offset) for member, offset in lines}


def test_there_is_assembly() -> None:
    assert len([path for path in FILES if INSTRUCTION.search(path.read_text())]) > 10
    assert len(set(known_structures())) > 5


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_assembly_is_fenced_from_clang_format(path: Path) -> None:
    assert unfenced(path.read_text()) == []


def test_unfenced_assembly_is_found() -> None:
    asm = '__asm__ volatile("nop\\n\\t"\n"nop\\n\\t");\n'
    assert len(unfenced(asm)) == 2
    assert unfenced(f"/* clang-format off */\n{asm}/* clang-format on */\n") == []
    assert unfenced('__asm__("ssat %0, #8, %1" : "=r"(x) : "r"(x));\n') == []


@pytest.mark.parametrize("path, structure", sorted(set(known_structures())), ids=lambda it: Path(it).stem)
def test_offsets_that_assembly_knows_are_asserted(path: Path, structure: str) -> None:
    """The definition may be in the file that includes the assembly, or in one that it includes."""
    own = path.read_text()
    homes = [
        (text if text == own else text + own, match[2])
        for other in path.parent.iterdir()
        if other.suffix in (".c", ".h")
        for text in (other.read_text(),)
        for match in STRUCTURE.finditer(text)
        if match[1] == structure
        and (text == own or f'#include "{path.name}"' in text or f'#include "{other.name}"' in own)
    ]
    assert len(homes) == 1, structure
    text, body = homes[0]
    members = MEMBER.findall(re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL))
    asserted = checked(text, structure)
    assert asserted, f"struct {structure} has no TINYML_OFFSET"
    assert set(asserted) <= set(members)
    assert len(set(members) - set(asserted)) <= 1, sorted(set(members) - set(asserted))
    assert list(asserted.values()) == sorted(set(asserted.values()))
