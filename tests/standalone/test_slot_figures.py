# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The bytes of slots in docs/slots.md are those of the C in this tree."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from tinyml.cores.toolchains import ARM
from tinyml.harness.tools import cross_compiler
from tools import slot_figures

GCC = "12."
"""The page names it; other versions give other bytes."""


@pytest.mark.parametrize(
    "mark, rows",
    [
        ("linked", slot_figures.linked_rows),
        ("flash", slot_figures.flash_rows),
        ("memory", slot_figures.memory_rows),
    ],
)
def test_the_page_has_what_is_measured(mark: str, rows: Callable[[], Iterator[str]]) -> None:
    version = subprocess.check_output([cross_compiler(ARM).path, "-dumpversion"], text=True)
    if not version.startswith(GCC):
        pytest.skip(f"the figures are those of GCC 12, and this is {version.strip()}")
    page = slot_figures.PAGE.read_text(encoding="utf-8")
    assert slot_figures.replaced(page, mark, rows()) == page, "python -m tools.slot_figures --without-runs"
