# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml demo`: the story of a model in the terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tinyml.report.facts import load
from tinyml.report.memory_text import ROWS, memory_picture
from tinyml.verbs import demo
from tinyml.verbs.cli import main

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "digits" / "model.onnx"


def test_the_story(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "MACHINES", ())
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["demo"]) == 0
    said = capsys.readouterr().out
    parts = [
        "becomes C",
        "static void digits_conv2(",
        "All tensors in one arena of",
        "^ peak",
        "The C against",
    ]
    places = [said.index(part) for part in [*parts, "host", "40 of 40 values equal", "nrf52840dk", "Next"]]
    assert places == sorted(places)
    assert re.search(r"nrf52840dk +cortex-m4 +[\d,]+ bytes, \d+% +[\d,]+ bytes, \d+% +\d+\.\d+ ms", said)


def test_what_is_missing_comes_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without compilers and emulators there is still the C, the memory and the costs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["demo", str(DIGITS)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("missing here, no C compiler found")
    assert "missing here, to run on qemu-cortex-m4: sudo apt-get install gcc-arm-none-eabi" in said
    assert "The C against" not in said
    assert "What it costs, estimated" in said


def test_a_model_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "nowhere.onnx"]) != 0
    assert "nowhere.onnx" in capsys.readouterr().err


def test_the_picture_of_the_arena(tmp_path: Path) -> None:
    """A column of a step shows the tensors of that step at their addresses, and nothing else."""
    assert main(["report", str(DIGITS), "--json", str(tmp_path / "r.json")]) == 0
    report = load(tmp_path / "r.json")
    lines = [line.plain for line in memory_picture(report)]
    assert len(lines) == ROWS + 1
    steps = len(report.layers) + 1
    width = (len(lines[0]) - 10) // steps
    for step in range(steps):
        shown = {line[10 + step * width] for line in lines[:ROWS]} - {" ", "·"}
        live = [n for n, tensor in enumerate(report.tensors) if tensor.first <= step <= tensor.last]
        assert shown <= {"abcdefghijklmnopqrstuvwxyz"[n] for n in live}
    assert " " in lines[0][10:], "the highest addresses are not used all the time"
