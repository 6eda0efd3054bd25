# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Totals of kernels, which bounds believe: runs that take long reach each of them, and none exceeds it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.ways_by_data import Subject, subjects
from tinyml import harness
from tinyml.base.errors import TinymlError
from tinyml.harness import program_build

BOXES = program_build.RUNTIME_C / "boxes"
STATEMENT = re.compile(r"^\t+((?:calls|turns)_of_(\w+))\(([^;]+)\);", re.MULTILINE)
SUBJECTS = {one.name: one for one in subjects()}
REACHES = {
    "nms.h": "boxes, 9 of 20 for 3 classes",
    "suppression_f32.c": "queued boxes, 5 of 20",
    "soft_suppression_f32.c": "soft boxes, 5 of 20",
}


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


@pytest.mark.parametrize("name", [name for name in SUBJECTS if "boxes" in name and "counts" not in name])
def test_no_run_exceeds_a_total(name: str) -> None:
    run_checked(SUBJECTS[name])


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
        run_checked(SUBJECTS[REACHES[file]])
