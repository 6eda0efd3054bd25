# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Numbers that both the compiler and the runtime know: Python names the macro, and both are equal."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[2] / "plugin" / "tinyml"
DEFINED = re.compile(r"^#define (TINYML_\w+)\s+(\d+)[uU]?(?:$|\s*/[*/])", re.MULTILINE)
NAMED = re.compile(r"^(\w+) = (\d+)(?:  # .*?|\n\"\"\"[^\"]*?)\b(TINYML_\w+)", re.MULTILINE)


def _macros() -> dict[str, set[tuple[str, int]]]:
    """Where each macro is defined, and as what."""
    found = defaultdict(set)
    for path in sorted((PLUGIN / "runtime").rglob("*.[ch]")):
        for name, number in DEFINED.findall(path.read_text()):
            found[name].add((path.name, int(number)))
    return found


MACROS = _macros()
SHARED = [
    (path.stem, name, int(number), macro)
    for path in sorted(PLUGIN.rglob("*.py"))
    for name, number, macro in NAMED.findall(path.read_text())
]


def test_some_are_found() -> None:
    assert {"TINYML_SUMS_F16_BLOCK", "TINYML_PLANES_S16_CHANNELS"} <= {macro for *_, macro in SHARED}


@pytest.mark.parametrize("module, name, number, macro", SHARED)
def test_the_runtime_has_the_same_number(module: str, name: str, number: int, macro: str) -> None:
    assert {value for _, value in MACROS[macro]} == {number}, f"{module}.{name}"


@pytest.mark.parametrize("macro", MACROS)
def test_a_number_has_one_home(macro: str) -> None:
    """Two definitions that are equal compile, until one of them changes."""
    homes = sorted({home for home, _ in MACROS[macro] if home.endswith(".h")})
    assert len(homes) <= 1, homes
