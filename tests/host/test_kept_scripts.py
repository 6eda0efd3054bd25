# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Zephyr's scripts, whose answers tests keep while what they look at is the same (support/short_lived)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHORT_LIVED = Path(__file__).resolve().parents[1] / "support" / "short_lived"

SCRIPT = """
import glob, os, subprocess, sys
from pathlib import Path
log = Path(__file__).with_suffix(".log")
log.write_text((log.read_text() if log.exists() else "") + "x")
settings, out = Path(sys.argv[1]), Path(sys.argv[2])
text = settings.read_text()
if text == "wrong":
    sys.exit("wrong settings")
if text == "raises":
    raise ValueError("settings")
if text == "starts":
    subprocess.run([sys.executable, "-c", ""], check=True)
if text == "names the build":
    text += str(out.parent)
more = sorted(os.path.basename(name) for name in glob.glob(f"{settings.parent}/*.more"))
if os.path.exists(settings.parent / "extra"):
    more.append("and extra")
out.parent.mkdir(exist_ok=True)
out.write_text(" ".join([text, os.environ.get("WORD", "no word"), *more]))
print("said", text)
print("complained", file=sys.stderr)
"""


class Build:
    """An application and its build folder, for one script of a Zephyr beside them."""

    def __init__(self, folder: Path) -> None:
        self.top, self.app, self.build = folder, folder / "app", folder / "build"
        self.zephyr = folder / "zephyr"
        for place in (self.app, self.build / "CMakeFiles", self.zephyr / "scripts", self.zephyr / ".git"):
            place.mkdir(parents=True)
        (self.zephyr / "VERSION").write_text("4\n")
        (self.zephyr / ".git" / "HEAD").write_text("one")
        (self.zephyr / "scripts" / "kconfig.py").write_text(SCRIPT)
        self.settings("a")

    def settings(self, text: str) -> None:
        (self.app / "prj.conf").write_text(text)

    def run(self, **more: str) -> subprocess.CompletedProcess[str]:
        known = {**os.environ, "PYTHONPATH": str(SHORT_LIVED), **more}
        known["TINYML_TEST_ZEPHYR_LISTS"] = str(self.top / "kept")
        words = [self.zephyr / "scripts" / "kconfig.py", self.app / "prj.conf", self.out]
        command = [sys.executable, *map(str, words)]
        return subprocess.run(command, env=known, capture_output=True, text=True, check=False, cwd=self.top)

    @property
    def out(self) -> Path:
        return self.build / "zephyr" / "config"

    def runs(self) -> int:
        return len((self.zephyr / "scripts" / "kconfig.log").read_text())


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return Build(tmp_path)


def again(build: Build) -> None:
    """A build folder that is new."""
    if build.out.exists():
        build.out.unlink()
        build.out.parent.rmdir()


def test_the_same_is_not_computed_again(build: Build) -> None:
    for _ in range(2):
        again(build)
        ended = build.run()
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "said a\n", "complained\n")
        assert build.out.read_text() == "a no word"
    assert build.runs() == 1


def test_all_that_a_script_looks_at_counts(build: Build) -> None:
    """A file, a variable, a folder that is searched, a file that was not there; Zephyr's revision."""
    build.run()
    again(build)
    build.settings("b")
    build.run()
    assert build.out.read_text() == "b no word"
    again(build)
    build.run(WORD="word")
    assert build.out.read_text() == "b word"
    again(build)
    (build.app / "new.more").touch()
    build.run()
    assert build.out.read_text() == "b no word new.more"
    again(build)
    (build.app / "extra").touch()
    build.run()
    assert build.out.read_text() == "b no word new.more and extra"
    again(build)
    assert build.runs() == 5
    build.run()
    assert build.out.read_text() == "b no word new.more and extra"
    assert build.runs() == 5
    again(build)
    (build.zephyr / ".git" / "HEAD").write_text("two")
    build.run()
    assert build.runs() == 6


def test_another_build_folder(build: Build) -> None:
    """It gets the answer, unless that names the folder it was written for."""
    build.run()
    first, build.build = build.build, build.top / "another"
    (build.build / "CMakeFiles").mkdir(parents=True)
    build.run()
    assert build.runs() == 1
    assert build.out.read_text() == "a no word"
    build.settings("names the build")
    build.run()
    assert build.runs() == 2
    build.build = first
    again(build)
    build.run()
    assert build.runs() == 3
    assert build.out.read_text() == f"names the build{build.out.parent} no word"


@pytest.mark.parametrize("text", ["wrong", "raises", "starts"])
def test_errors_are_not_kept_nor_what_other_programs_do(build: Build, text: str) -> None:
    build.settings(text)
    ended = [build.run(), build.run()]
    assert build.runs() == 2
    assert [each.returncode for each in ended] == [0 if text == "starts" else 1] * 2
    assert ended[0].stderr == ended[1].stderr
