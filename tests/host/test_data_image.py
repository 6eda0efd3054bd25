# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/data_image.md and the player's records in Python are those of the C."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from pathlib import Path

from tinyml.harness.program_build import RUNTIME_C
from tinyml.harness.tools import host_compiler
from tinyml.player import records
from tinyml.player.encode import HEADER
from tinyml.player.kernels import BY_NUMBER
from tinyml.player.layout import Layout
from tinyml.player.playable import LAYOUTS
from tools import player_docs
from tools.environment import ROOT

C_NAMES = {"pool": "tinyml_pool_s8", "softmax": "tinyml_softmax_s8"}
"""Records without pointers that are the structures of kernels."""


def test_the_page_has_all_kernels_and_records() -> None:
    text = player_docs.PAGE.read_text("utf-8")
    assert player_docs.page(text) == text, "run python -m tools.player_docs"


def test_numbers_and_records_stay() -> None:
    """A firmware plays packs of later compilers: what was published keeps its number, record and operands.

    What a kernel reads in its tables may change if ``layouts`` counts it.
    """
    published = json.loads((ROOT / "tests" / "recorded" / "play_kernels.json").read_text())
    now = {
        kernel.name: [kernel.number, kernel.record.format, kernel.operands, kernel.layouts]
        for kernel in BY_NUMBER.values()
    }
    assert {name: now.get(name) for name in published} == published
    assert set(now) == set(published), "add new kernels to tests/recorded/play_kernels.json"
    assert {kernel.layouts for kernel in BY_NUMBER.values()} == set(range(LAYOUTS + 1))


def test_equal_records_are_one() -> None:
    """The work of a call is looked up by its record: of two that are equal, one would have the other's."""
    layouts = [value for value in vars(records).values() if isinstance(value, Layout)]
    assert len(set(layouts)) == len({id(layout) for layout in layouts})


def structures() -> dict[str, list[str]]:
    """Members of the structures that play_records.h includes, by name."""
    text = "".join(path.read_text() for path in (RUNTIME_C / "include" / "tinyml").glob("play_*.h"))
    found = {}
    for name, body in re.findall(r"^struct (tinyml_play_\w+) \{\n(.*?)^\};", text, re.M | re.S):
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        found[name] = [m for m in re.findall(r"(\w+)(?:\[\w+\])?[;,]", body) if m != "unused"]
    return found


def offsets(layout: Layout) -> dict[str, int]:
    """Of each member, in Python's form of a record."""
    found, position = {}, 0
    for member in layout.members:
        code, _, name = member.partition(" ")
        if name:
            found[name.lstrip(".")] = position
        position += struct.calcsize(f"<{code.rstrip('*')}")
    return found


def test_records_are_those_of_c(tmp_path: Path) -> None:
    declared = structures()
    lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <tinyml/play_records.h>"]
    lines += ["#include <tinyml/pool.h>", "#include <tinyml/softmax.h>", "int main(void)", "{"]
    expected: dict[str, int] = {}
    for layout, name in player_docs.names().items():
        c_name = next(
            (known for known in (f"tinyml_play_{name}", f"tinyml_play_{name}_s8") if known in declared),
            C_NAMES.get(name, ""),
        )
        if not c_name:
            continue
        expected[c_name] = layout.size
        lines.append(f'printf("{c_name} %zu\\n", sizeof(struct {c_name}));')
        for member, position in offsets(layout).items():
            expected[f"{c_name}.{member}"] = position
            path = re.sub(r"\.(\d+)", r"[\1]", member)
            lines.append(f'printf("{c_name}.{member} %zu\\n", offsetof(struct {c_name}, {path}));')
    source = tmp_path / "records.c"
    source.write_text("\n".join([*lines, "return 0;", "}"]) + "\n")
    program = tmp_path / "records"
    include = f"-I{RUNTIME_C / 'include'}"
    subprocess.run([host_compiler().path, "-std=c11", include, source, "-o", program], check=True)
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert {k: int(v) for k, v in (line.split() for line in printed.splitlines())} == expected
    assert len([name for name in expected if "." not in name]) >= 10


def test_the_program_is_that_of_c() -> None:
    text = (RUNTIME_C / "player" / "program.h").read_text()
    body = re.search(r"^struct tinyml_program \{\n(.*?)^\};", text, re.M | re.S)
    assert body is not None
    sizes = {"uint32_t": 4, "uint16_t": 2, "uint8_t": 1}
    assert sum(sizes[kind] for kind in re.findall(r"(uint\d+_t) \w+;", body[1])) == HEADER.size
