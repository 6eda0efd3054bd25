# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Edits of a user in random order: what CMake and ninja build afterwards, as from scratch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.depth import is_deep
from tests.rebuilds.walk import Entry, Project, walk

pytestmark = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("ninja")), reason="cmake and ninja are not installed"
)

STEPS = 8 if is_deep() else 5  # each starts several compilers


@pytest.mark.tenth
@pytest.mark.parametrize("seed", range(10))
def test_a_walk(seed: int, tmp_path: Path) -> None:
    done = walk(tmp_path / "walk", seed, STEPS)
    assert not done[-1].startswith("WRONG"), "\n".join(done)


def test_other_settings_end_an_error_that_the_old_ones_caused(tmp_path: Path) -> None:
    """ninja needs the list of kernels before it runs CMake, and the old settings allow no new list."""
    project = Project(tmp_path / "app")
    project.start()
    entry = project.entries["one"]
    project.write_model("one", "tanh")
    entry.options = ["--limit=arena=200,the budget"]
    project.write_settings()
    assert project.check() == ""
    project.write_model("one", "conv")
    assert project.wanted() is None
    assert project.check() == ""
    entry.options = []
    project.write_settings()
    assert project.wanted() is not None
    assert project.check() == "", "it is stuck"
    entry.file.unlink()
    project.entries["one"] = Entry(tmp_path / "app" / "other.onnx", [])
    project.write_model("one", "tanh")
    project.write_settings()
    assert project.check() == "", "a file that no setting names any more is missed"
    project.write_compiler()
    assert project.check() == "", "a file that an update removed is missed"


def test_a_model_is_replaced_by_an_older_one(tmp_path: Path) -> None:
    """As by `mv`, `cp -p` and archives; its external data, too. An old date alone builds nothing."""
    project = Project(tmp_path / "app")
    project.start()
    assert project.check() == ""
    for kind in ("rubbish", "external"):
        project.write_model("one", kind)
        project.date("one", "older")
        assert project.check() == "", kind
    (data,) = project.folder.glob("*.data")
    data.write_bytes(bytes(len(data.read_bytes())))
    project.date("one", "older")
    assert project.check() == "", "external data"
    before = (project.build / "tinyml" / "one" / "one.c").stat().st_mtime_ns
    project.entries["one"].file.chmod(0o600)
    project.date("one", "older")
    assert project.check() == ""
    assert (project.build / "tinyml" / "one" / "one.c").stat().st_mtime_ns == before
