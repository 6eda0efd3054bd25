# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Links between pages lead somewhere, and what pages and messages name as a file exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "plugin" / "tinyml"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "samples").glob("*/README.md")),
    *sorted(PACKAGE.rglob("README.md")),
    *sorted((ROOT / "boards").rglob("*.md")),
]
PAGE_IDS = [path.relative_to(ROOT).as_posix() for path in PAGES]
GENERATED = ("reference/",)
"""Pages that `tools.docs` writes when it builds the site."""

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)+/?")
ROOMS = {path.name for path in PACKAGE.iterdir()}
FOLDERS = {"benchmarks", "docs", "plugin", "samples", "tools", "zephyr_module"}


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of the headings, as code hosts and the site make them."""
    text = re.sub(r"(?s)```.*?```", "", page.read_text(encoding="utf-8"))
    headings = re.findall(r"(?m)^#+ (.+)$", text)
    plain = (re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each)) for each in headings)
    return {each.strip().lower().replace(" ", "-") for each in plain}


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"(?s)```.*?```", "", text))


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        target, _, anchor = link.partition("#")
        if ":" in target or target.startswith(GENERATED):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{link} does not exist"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{link}: {sorted(anchors(path))}"


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_files_of_the_compiler_that_pages_name_exist(page: Path) -> None:
    """``ops/framework/kernel.py``: below plugin/tinyml, below the repository, or beside the page."""
    missing = []
    for code in CODE.findall(re.sub(r"(?s)```.*?```", "", page.read_text(encoding="utf-8"))):
        for name in FILE.findall(code) if code.strip() == (FILE.findall(code) or [""])[0] else ():
            first = name.split("/")[0]
            if (first not in ROOMS | FOLDERS and not name.endswith(".py")) or re.search("[A-Z]{4}", name):
                continue  # a board, a file of a user's project, a place holder
            folders = (PACKAGE, PACKAGE / "runtime", PACKAGE / "ops", ROOT, ROOT / "plugin", page.parent)
            if not any((folder / name).exists() for folder in folders):
                missing.append(name)
    assert not missing, f"{page.name} names {missing}"


def test_pages_that_code_and_samples_name_exist() -> None:
    named = re.compile(r"\bdocs/[\w/]+\.(?:md|rst)\b")
    suffixes = {
        ".py",
        ".c",
        ".h",
        ".j2",
        ".cmake",
        ".yml",
        ".yaml",
        ".txt",
        ".ini",
        ".conf",
        ".json",
        ".toml",
    }
    folders = ("plugin", "zephyr_module", "zephyr", "samples", "tools", "boards", "tests")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    files += [path for path in (ROOT / "zephyr_module").rglob("Kconfig*") if path.is_file()]
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        if ".pio" not in path.parts and "build" not in path.parts
        for name in named.findall(path.read_text(encoding="utf-8", errors="replace"))
        if not (ROOT / name).exists()
    }
    assert not missing
