# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The answers of Zephyr's scripts that tests keep (tests/support/short_lived), while they are right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHORT_LIVED = Path(__file__).resolve().parents[1] / "support" / "short_lived"

SCRIPT = """
import sys
from pathlib import Path
log = Path(__file__).with_suffix(".log")
log.write_text((log.read_text() if log.exists() else "") + "x")
roots = [word.partition("=")[2] for word in sys.argv[1:] if word.startswith("--board-root=")]
boards = sorted(file.read_text() for root in roots for file in Path(root).glob("boards/*/board.yml"))
if "broken" in boards:
    sys.exit("a board is broken")
text = ",".join(boards)
if "--kconfig-out" in sys.argv:
    Path(sys.argv[sys.argv.index("--kconfig-out") + 1]).write_text(text)
else:
    print(text)
"""


class Zephyr:
    """A Zephyr with two of the scripts, which count their runs, and a folder with a board beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.boards = folder / "zephyr", folder / "ours"
        (self.folder / "scripts").mkdir(parents=True)
        (self.folder / ".git").mkdir()
        (self.folder / "VERSION").write_text("4\n")
        self.revision("one")
        for name in ("list_boards.py", "gen_driver_kconfig_dts.py"):
            (self.folder / "scripts" / name).write_text(SCRIPT)
        self.board("a")

    def revision(self, text: str) -> None:
        (self.folder / ".git" / "HEAD").write_text(text)

    def board(self, text: str) -> None:
        place = self.boards / "boards" / "board"
        place.mkdir(parents=True, exist_ok=True)
        (place / "board.yml").write_text(text)

    def ask(self, *words: str, script: str = "list_boards.py") -> subprocess.CompletedProcess[str]:
        known = {**os.environ, "PYTHONPATH": str(SHORT_LIVED)}
        known["TINYML_TEST_ZEPHYR_LISTS"] = str(self.folder.parent / "kept")
        command = [sys.executable, str(self.folder / "scripts" / script), *words]
        return subprocess.run(command, env=known, capture_output=True, text=True, check=False)

    def runs(self, script: str = "list_boards") -> int:
        return len((self.folder / "scripts" / f"{script}.log").read_text())


@pytest.fixture
def zephyr(tmp_path: Path) -> Zephyr:
    return Zephyr(tmp_path)


def test_an_answer_is_kept_for_all_applications_without_boards(zephyr: Zephyr, tmp_path: Path) -> None:
    ours = f"--board-root={zephyr.boards}"
    assert zephyr.ask(ours, f"--board-root={tmp_path / 'one'}").stdout == "a\n"
    assert zephyr.ask(ours, f"--board-root={tmp_path / 'another'}").stdout == "a\n"
    assert zephyr.runs() == 1


def test_other_boards_revisions_and_options_have_other_answers(zephyr: Zephyr) -> None:
    ours = f"--board-root={zephyr.boards}"
    assert zephyr.ask(ours).stdout == "a\n"
    zephyr.board("changed")
    assert zephyr.ask(ours).stdout == "changed\n"
    zephyr.revision("two")
    assert zephyr.ask(ours).stdout == "changed\n"
    assert zephyr.ask(ours, "--board=x").stdout == "changed\n"
    assert zephyr.runs() == 4


def test_an_error_is_not_kept(zephyr: Zephyr) -> None:
    zephyr.board("broken")
    for _ in range(2):
        ended = zephyr.ask(f"--board-root={zephyr.boards}")
        assert (ended.returncode, ended.stderr) == (1, "a board is broken\n")
    assert zephyr.runs() == 2


def test_a_file_that_a_script_writes_is_written_again(zephyr: Zephyr, tmp_path: Path) -> None:
    for name in ("first", "second"):
        words = ("--kconfig-out", str(tmp_path / name), "--bindings-dirs", str(tmp_path / "none"))
        zephyr.ask(*words, script="gen_driver_kconfig_dts.py")
        assert (tmp_path / name).read_text() == ""
    assert zephyr.runs("gen_driver_kconfig_dts") == 1


@pytest.mark.parametrize("within", ["workspace", "workspace/deep/in", "elsewhere"])
def test_the_workspace_is_the_one_that_west_finds(tmp_path: Path, within: str) -> None:
    """From any folder; without a workspace, west's own error."""
    pytest.importorskip("west")
    (tmp_path / "workspace" / ".west").mkdir(parents=True)
    (tmp_path / "workspace" / ".west" / "config").write_text("[manifest]\npath = deep\nfile = west.yml\n")
    folder = tmp_path / within
    folder.mkdir(parents=True, exist_ok=True)
    bare = {name: text for name, text in os.environ.items() if name not in ("ZEPHYR_BASE", "PYTHONPATH")}
    one, other = (
        subprocess.run(
            [sys.executable, "-m", "west", "topdir"],
            cwd=folder,
            env={**bare, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        for more in ({}, {"PYTHONPATH": str(SHORT_LIVED)})
    )
    assert (one.returncode, one.stdout) == (other.returncode, other.stdout)
    assert (one.stdout.strip() == str(tmp_path / "workspace")) == within.startswith("workspace")
