# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Totals of kernels, which bounds believe: runs that take long reach each of them, and none exceeds it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.ways_by_data import Subject, soft, subjects
from tinyml import harness
from tinyml.base.errors import TinymlError
from tinyml.harness import program_build
from tinyml.harness.tools import host_compiler

BOXES = program_build.RUNTIME_C / "boxes"
TWO_CALLS = Path(__file__).parents[1] / "support" / "two_suppressions.c"
STATEMENT = re.compile(r"^\t+((?:calls|turns)_of_(\w+))\(([^;]+)\);", re.MULTILINE)
SUBJECTS = {one.name: one for one in subjects()}
FEW = (soft("soft boxes, 2 of 3", 2, 3), soft("soft boxes, 2 of 4", 2, 4))
REACHES = {
    "nms.h": "boxes, 9 of 20 for 3 classes",
    "suppression_f32.c": "queued boxes, 5 of 20",
    "soft_suppression_f32.c": "soft boxes, 5 of 20",
}
MOVES = {"queue_add": FEW[0], "queue_next": FEW[1]}
"""With more boxes, the totals of moves are not reached: a queue cannot have the longest ones each time."""


def stated() -> list[tuple[str, str, str]]:
    """File, statement, and the function whose calls or turns have a total."""
    return [
        (path.name, found[0].strip(), found[2])
        for path in sorted(BOXES.glob("*.[ch]"))
        for found in STATEMENT.finditer(path.read_text())
    ]


def run_checked(subject: Subject) -> None:
    """All samples, on the host, in a build with assertions."""
    compiled = subject.compiled("host")
    samples = [dict(zip(compiled.graph.inputs, row, strict=True)) for row in subject.samples]
    harness.run_files(compiled.files, "host", samples, options=harness.Options(sanitize=True))


def test_every_total_is_tried() -> None:
    assert {file for file, _, _ in stated()} == set(REACHES)
    defined = {
        name
        for path in BOXES.glob("*.[ch]")
        for name in re.findall(r"^TINYML_(?:CALLS|TURNS)_OF\((\w+)\)", path.read_text(), re.MULTILINE)
    }
    assert defined == {function for _, _, function in stated()}


@pytest.mark.parametrize(
    "subject",
    [*(one for name, one in SUBJECTS.items() if "boxes" in name and "counts" not in name), *FEW],
    ids=lambda subject: subject.name,
)
def test_no_run_exceeds_a_total(subject: Subject) -> None:
    run_checked(subject)


def run_two(folder: Path, sources: Path) -> subprocess.CompletedProcess[str]:
    """Two calls of each kernel, of which only the first has totals."""
    image = folder / "two"
    names = ("suppression_f32.c", "soft_suppression_f32.c")
    files = [TWO_CALLS, *(sources / name for name in names)]
    paths = [f"-I{sources}", f"-I{program_build.RUNTIME_INCLUDE}"]
    flags = ("-std=c11", "-O1", *program_build.SANITIZERS, *program_build.WARNINGS)
    subprocess.run([host_compiler().path, *flags, *paths, *files, "-o", image], check=True, timeout=120)
    return subprocess.run([image], check=False, capture_output=True, text=True, timeout=300)


def test_totals_are_those_of_one_call(tmp_path: Path) -> None:
    done = run_two(tmp_path, BOXES)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", ["suppression_f32.c", "soft_suppression_f32.c"])
def test_a_total_that_is_kept_for_the_next_call_is_found(file: str, tmp_path: Path) -> None:
    """The seeded fault: nothing is forgotten."""
    shutil.copytree(BOXES, tmp_path / "boxes")
    source = tmp_path / "boxes" / file
    text = source.read_text()
    assert "TINYML_FORGET_TOTAL(" in text
    source.write_text(re.sub(r"TINYML_FORGET_TOTAL\(\w+\);", ";", text))
    assert "!= 0" in run_two(tmp_path, tmp_path / "boxes").stderr


@pytest.mark.parametrize("file, statement, function", stated(), ids=lambda value: value.partition("(")[0])
def test_a_total_that_is_too_low_is_found(
    file: str, statement: str, function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seeded fault: one less than the kernel states."""
    shutil.copytree(BOXES, tmp_path / "boxes")
    source = tmp_path / "boxes" / file
    text = source.read_text()
    assert statement in text
    source.write_text(text.replace(statement, statement.removesuffix(");") + " - 1);"))
    monkeypatch.setattr(program_build, "RUNTIME_C", tmp_path)
    with pytest.raises(TinymlError, match=rf"left_of_{function} != 0"):
        run_checked(MOVES.get(function) or SUBJECTS[REACHES[file]])
