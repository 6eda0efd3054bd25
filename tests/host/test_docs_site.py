# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The documentation site builds without warnings, and has every page, command and public name."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import tinyml
from tinyml.verbs import VERBS
from tools import docs, figures

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in docs.PACKAGES:
        pytest.importorskip(module)
    folder = tmp_path_factory.mktemp("site")
    assert docs.build(folder) == 0, "Sphinx warns; its messages are above"
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 20
    for page in pages:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        heading = next(line for line in text.splitlines() if line.startswith("# "))[2:]
        written = html.unescape((site / page.with_suffix(".html")).read_text(encoding="utf-8"))
        title = f"<title>{re.sub('[`*]', '', heading)} "
        assert title in written, f"{page}: Sphinx has a page of its own with that name"


def test_every_page_is_reached(site: Path) -> None:
    """From the navigation of the first page."""
    linked = set(re.findall(r'href="([\w/.-]+\.html)', (site / "index.html").read_text(encoding="utf-8")))
    for page in (ROOT / "docs").glob("*.md"):
        if page.stem != "index":
            assert f"{page.stem}.html" in linked


def test_pages_of_reports_are_shown(site: Path) -> None:
    guide = (site / "measure.html").read_text(encoding="utf-8")
    for name in ("report", "summary"):
        assert f'<iframe src="reports/{name}.html"' in guide
        assert "digits" in (site / "reports" / f"{name}.html").read_text(encoding="utf-8")


def test_commands_and_names(site: Path) -> None:
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for verb in VERBS:
        assert f"usage: tinyml {verb.name} " in commands
        assert f'href="#{verb.name}"' in commands
    assert commands.count("clearly save RAM") < 4, "settings that all commands share are there once"
    names = (site / "reference" / "python_api.html").read_text(encoding="utf-8")
    for name in set(tinyml.__all__) - {"__version__"}:
        assert f'id="tinyml.{name}"' in names
    assert "tinyml_set_input" in (site / "reference" / "c_api.html").read_text(encoding="utf-8")


def test_the_schema_of_tinyml_yaml(site: Path) -> None:
    assert "models" in json.loads((site / docs.SCHEMA).read_text(encoding="utf-8"))["properties"]


def test_json_and_errors(site: Path) -> None:
    files = (site / "reference" / "json.html").read_text(encoding="utf-8")
    assert "arena_lower_bound_bytes" in files
    assert "no work: buffer sharing already puts the output in place" in files, "comments of the fields"
    messages = (site / "reference" / "errors.html").read_text(encoding="utf-8")
    assert "there is no pass" in messages


def test_the_first_page(site: Path) -> None:
    """A picture, bars, three doors, a logo and buttons that copy; and a text for coding assistants."""
    first = (site / "index.html").read_text(encoding="utf-8")
    for part in ("landing.svg", "bars.svg", "logo.svg", "copy.js", "site.css"):
        assert part in first
    assert first.count('class="door docutils') == 3 or first.count("door") >= 3
    bars = next(site.rglob("bars.svg")).read_text(encoding="utf-8")
    assert bars.count('class="ours"') > 10
    text = (site / "llms.txt").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([\w.]+\.html)\): \S", text)
    assert len(linked) > 30
    assert all((site / page).is_file() for page in linked)


def test_pictures_are_those_that_the_code_draws() -> None:
    for name, draw in figures.FIGURES.items():
        path = figures.FOLDER / f"{name}.svg"
        assert path.read_text(encoding="utf-8") == draw(), "run: python -m tools.figures"
        ElementTree.fromstring(draw())
    measured = {"fewer_bits"}  # by tools.fewer_bits, which trains the samples
    assert {path.stem for path in figures.FOLDER.glob("*.svg")} == set(figures.FIGURES) | measured
