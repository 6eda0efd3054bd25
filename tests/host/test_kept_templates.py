# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Templates are compiled once: what is kept of them is used, checked, and not needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest

from tinyml.base import templates

TEMPLATE = "test_cmake.txt.j2"
"""One of ``projects/templates``."""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "west-tinyml" / "templates"


def load(escaped: bool = False) -> jinja2.Template:
    """As a new process does."""
    return templates.environment.__wrapped__("projects", escaped).get_template(TEMPLATE)


def compiles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the templates that are compiled from now on."""
    found: list[str] = []
    original = jinja2.Environment.compile

    def noted(self: jinja2.Environment, source: Any, name: Any = None, *rest: Any, **more: Any) -> Any:
        found.append(name)
        return original(self, source, name, *rest, **more)

    monkeypatch.setattr(jinja2.Environment, "compile", noted)
    return found


def test_the_second_process_compiles_nothing(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiles(monkeypatch)
    first = load()
    assert compiled == [TEMPLATE]
    assert len(list(kept.iterdir())) == 1
    second = load()
    assert compiled == [TEMPLATE]
    assert first.render(name="kept") == second.render(name="kept")
    assert "project(kept_test)" in second.render(name="kept")


def test_other_options_are_another_file(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiles(monkeypatch)
    load()
    load(escaped=True)
    assert compiled == [TEMPLATE, TEMPLATE]
    assert len(list(kept.iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"\0", b"cut off"])
def test_damaged_files_are_made_again(kept: Path, damage: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    load()
    (file,) = kept.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if damage == b"cut off" else damage)
    compiled = compiles(monkeypatch)
    load()
    assert compiled == [TEMPLATE]
    assert file.read_bytes() == whole


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    compiled = compiles(monkeypatch)
    load()
    load()
    assert compiled == [TEMPLATE, TEMPLATE]
