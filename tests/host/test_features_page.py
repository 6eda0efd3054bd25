# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/features.md names every kind and every key with its default, and its C compiles."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.feeding import compiled_with, negating
from tinyml.bench import frontends as frames
from tinyml.features import settings as frontends
from tinyml.features.kinds import KINDS
from tinyml.harness.program_build import RUNTIME_INCLUDE, WARNINGS
from tools import benchmarks

PAGE = (Path(__file__).parents[2] / "docs" / "features.md").read_text(encoding="utf-8")


def rows(section: str) -> dict[str, str]:
    """Defaults by key, from the table of a section; several keys may share a line."""
    found: dict[str, str] = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        keys = re.findall(r"`(\w+)`", cells[0]) if line.startswith("| `") else []
        values = cells[1].split(", ") if len(keys) > 1 else [cells[1]] if keys else []
        found |= dict(zip(keys, values, strict=True))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_keys_and_defaults(kind: str) -> None:
    section = PAGE.split(f"### `{kind}`")[1].split("\n## ")[0].split("\n### ")[0]
    listed = rows(section)
    assert listed.keys() == frontends.keys_of(kind).keys()
    for key, default in frontends.keys_of(kind).items():
        text = ",".join(map(str, default)) if isinstance(default, tuple) else f"{default}"
        shown = {"True": "true", "False": "false"}.get(text, re.sub(r"\.0$", "", text))
        empty = {"mean": "0", "std": "1"}.get(key, "")
        assert listed[key] == (shown or empty), key


def test_common_keys() -> None:
    section = PAGE.split("All kinds have these keys:")[1].split("### ")[0]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == set(frontends.KEYS)


def test_the_c_of_the_page_compiles(tmp_path: Path) -> None:
    blocks = re.findall(r"```c\n(.*?)```", PAGE, re.DOTALL)
    feed, ring, decision = blocks
    compiled = compiled_with(
        negating(tmp_path, [1, 2]), frontends.from_mapping({"kind": "micro", "channels": 2}, "t")
    )
    for name, text in compiled.files.items():
        (tmp_path / name.replace("fed", "kws")).write_text(text.replace("fed", "kws").replace("FED", "KWS"))
    settings, _, check = decision.partition("\n\n")[2].partition("\n\n")
    lines = [
        "#include <tinyml/decision.h>",
        "#include <tinyml/stream.h>",
        "void use(const float *scores);",
        "void report(uint32_t bytes);",
        "void led_on(void);",
        "void microphone_isr(const int16_t *block);",
        "void audio_block(const int16_t *samples, size_t count);",
        "void thread(void);",
        "void decide(void);",
        feed,
        ring,
        decision.partition("\n")[0],
        f"void decide(void)\n{{\n{settings}\n{check}\n}}",
    ]
    source = tmp_path / "page.c"
    source.write_text("\n".join(lines), encoding="utf-8")
    flags = ["-std=c11", *WARNINGS, f"-I{RUNTIME_INCLUDE}", f"-I{tmp_path}", "-fsyntax-only"]
    subprocess.run(["gcc", *flags, str(source)], check=True)


def test_instructions_of_transforms_are_the_recorded_ones() -> None:
    recorded = [f for f in frames.load(benchmarks.FRAMES) if f.name in frames.TRANSFORMS]
    cells = re.findall(r"^\| Cortex-M\d.* \| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.MULTILINE)
    columns = [[f"{f.instructions:,}" for f in recorded if f.name == name] for name in frames.TRANSFORMS]
    assert cells == list(zip(*columns, strict=True))
