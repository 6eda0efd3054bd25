# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`make test` fails if the tests leave files in the tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import check, lint


@pytest.mark.parametrize("ignored", [True, False])
def test_files_in_the_tree(
    ignored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "test_it.py").write_text('def test_it(): open("flash.bin", "w").close()\n')
    (tmp_path / "conftest.py").touch()
    rules = ["__pycache__", ".pytest_cache", *(["*.bin"] if ignored else [])]
    (tmp_path / ".gitignore").write_text("".join(f"{rule}\n" for rule in rules))
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(lint, "run", list)
    monkeypatch.setattr(check, "workers", lambda: "0")
    monkeypatch.setattr("sys.argv", ["check"])
    assert check.main() == (0 if ignored else 1)
    assert (tmp_path / "flash.bin").exists()
    said = capsys.readouterr().out
    assert ("failed: files that the tests left in the tree (flash.bin)" in said) != ignored
