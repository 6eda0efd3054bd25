# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`explore`: points, the front, what fits, and the lines that select a point."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tinyml
from tests.support.browser import browser
from tests.support.quantizing import FLOAT, digits
from tinyml.api import exploring
from tinyml.api.exploration import HEAD, Board, Exploration, Point
from tinyml.api.exploration_page import page
from tinyml.api.sources import as_model
from tinyml.base.errors import ToolError
from tinyml.pipeline import Options
from tinyml.projects import manifest
from tinyml.settings.optimize import GOALS
from tinyml.verbs import cli
from tinyml.verbs import explore as verb

DIGITS = FLOAT.parent / "model.onnx"


def points(*costs: tuple[str, int, int, int]) -> Exploration:
    found = [
        Point(name, "auto", "flash", "", ram, flash, 0, None, cycles) for name, ram, flash, cycles in costs
    ]
    return Exploration(
        "m", Board("b", "cortex-m4", 100, 1000, 1.0), tuple(found), {}, "estimated"
    ).sorted_out()


@pytest.fixture(autouse=True)
def _without_cmsis_nn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which kernels are tried must not depend on the machine."""
    monkeypatch.setattr(exploring, "find_cmsis_nn", lambda: None)


def test_the_front() -> None:
    found = points(
        ("speed", 90, 500, 10), ("balanced", 50, 510, 11), ("size", 50, 400, 30), ("ram", 60, 520, 12)
    )
    assert [point.optimize for point in found.front] == ["speed", "balanced", "size"]
    assert found.suggested is not None
    assert found.suggested.optimize == "balanced"


def test_equal_points_are_one() -> None:
    found = points(("balanced", 50, 500, 10), ("speed", 50, 500, 10))
    assert [point.optimize for point in found.front] == ["balanced"]
    assert found.points[1].same_as == "the default"


def test_what_does_not_fit_is_not_suggested() -> None:
    found = points(("speed", 101, 10, 1), ("ram", 99, 900, 30))
    assert [point.fits for point in found.front] == [False, True]
    assert found.suggested is not None
    assert found.suggested.optimize == "ram"
    assert points(("speed", 101, 10, 1)).suggested is None


def test_a_quantised_model_is_suggested_unless_it_loses_too_much() -> None:
    """nine times smaller and as good is better; worse is taken only if nothing else fits."""
    small = Point("balanced", "auto", "flash", "int8", 10, 100, 1, None, 10, decibels=40.0)
    large = Point("balanced", "auto", "flash", "float", 90, 900, 1, None, 90)
    poor = replace(small, lost_points=1.5)
    place = Board("b", "cortex-m4", 100, 1000)
    narrow = replace(place, ram_bytes=50)
    for limit, other, expected in (
        (place, small, "int8"),
        (place, poor, "float"),
        (narrow, poor, "int8"),
    ):
        found = Exploration("m", limit, (large, other), {}, "estimated").sorted_out()
        assert len(found.front) == 2
        assert found.suggested is not None
        assert found.suggested.precision == expected


def test_lines_of_the_manifest_can_be_read_back(tmp_path: Path) -> None:
    explored = tinyml.explore(FLOAT, target="cortex-m4", calibration=digits()[0][:64])
    assert {point.precision for point in explored.points} == {"float", "int8", "int16", "int4"}
    assert not explored.failures
    counts = rf"{len(explored.points)} points on cortex-m4, \d+ of them best"
    assert re.fullmatch(rf"<Exploration of \w+: {counts}; suggested: .+ bytes of RAM>", repr(explored))
    for point in explored.points:
        text = f"models:\n  - name: a\n    file: a.onnx\n{point.yaml}\n"
        (entry,) = manifest.parse(text, "x").models
        assert (entry.optimize or "balanced", entry.weights or "flash") == (point.optimize, point.weights)
        assert bool(entry.quantize) == (point.precision != "float")
        assert ("int16" in entry.quantize) == (point.precision == "int16")
        assert (entry.quantize.get("weights") == "int4") == (point.precision == "int4")
    least = {
        precision: min(point.ram_bytes for point in explored.front if point.precision == precision)
        for precision in ("int8", "int16", "float")
    }
    assert least["int8"] < least["int16"] < least["float"]
    assert "dB at the outputs" in next(point.quality for point in explored.front if point.precision == "int8")
    best = {point.precision: point for point in explored.front}
    assert (best["float"].decibels, best["float"].quality_text) == (None, "")
    assert best["int4"].decibels < best["int8"].decibels < best["int16"].decibels  # type: ignore[operator]
    rows = {row[0]: row for row in explored.rows()}
    assert re.fullmatch(r"[\d.]+ dB, [\d.]+ % as float", rows["int8"][HEAD.index("quality")])
    assert explored.suggested is not None
    assert explored.suggested.precision != "float"
    shown = page(explored)
    assert shown.count("<svg") == 2
    assert "http://" not in shown.replace("http://www.w3.org/2000/svg", "")
    assert all(word in shown for word in ("optimize: size", "int16", "tinyml.yaml"))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = tmp_path / "x.json"
    words = ["explore", str(DIGITS), "-b", "nrf52840dk/nrf52840", "--json", str(told)]
    assert cli.main([*words, "--html", str(tmp_path / "x.html")]) == 0
    data = json.loads(told.read_text())
    assert (data["target"], data["mhz"], data["ram_bytes"]) == ("cortex-m4", 64, 256 * 1024)
    assert len(data["points"]) == 2 * len(GOALS)
    assert "optimize: size" in capsys.readouterr().out
    assert (tmp_path / "x.html").read_text().startswith("<!DOCTYPE html>")
    assert cli.main(["explore", str(DIGITS), "--ram", "100"]) == 1
    assert "nothing fits cortex-m3" in capsys.readouterr().out
    assert cli.main(["explore", str(DIGITS), "--serial", "/dev/null"]) == 1
    assert "requires the name of the board" in capsys.readouterr().err


def test_the_best_are_measured_on_the_board(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights in RAM are tried as well; a point that cannot be measured does not end the others."""
    seen: list[Any] = []

    @contextmanager
    def placed(args: Any, console: Any, profiled: bool) -> Any:
        seen.append((args.optimize, args.weights))
        yield SimpleNamespace()

    def report_of(model: Path, chosen: Any) -> Any:
        if seen[-1][0] == "size":
            raise ToolError("no answer")
        return SimpleNamespace(profile=SimpleNamespace(total=900 if seen[-1][1] == "ram" else 1000))

    monkeypatch.setattr(verb, "placed", placed)
    monkeypatch.setattr("tinyml.verbs.profile.report_of", report_of)
    args = SimpleNamespace(model=DIGITS, board="b", quantize=[])
    found = exploring.explore_options(
        as_model(DIGITS),
        Options(),
        Board("b", "cortex-m4"),
        measure=verb._on_the_board(args, None),  # type: ignore[arg-type]
    )
    assert ("balanced", "ram") in seen
    assert found.how == "measured on b"
    assert {point.cycles for point in found.points} == {900, 1000}
    assert {point.weights for point in found.front} == {"flash", "ram"}
    assert set(found.failures.values()) == {"no answer"}


def test_no_estimate_takes_fewer_cycles_than_instructions() -> None:
    """A Cortex-M4 executes one instruction at a time, whichever kernels were fitted to other layers."""
    place = Board("m4", "cortex-m4")
    found = exploring.explore_options(
        as_model(DIGITS), Options("digits"), place, kernels=("auto", "cmsis-nn")
    )
    timed = [point for point in found.points if point.instructions is not None]
    assert any(point.kernels == "cmsis-nn" for point in timed)
    assert all((point.cycles or 0) >= (point.instructions or 0) for point in timed)


@pytest.mark.tenth("Chromium")
def test_plots_are_dark_on_dark_screens(tmp_path: Path) -> None:
    file = tmp_path / "explored.html"
    file.write_text(page(points(("speed", 90, 500, 10), ("balanced", 50, 510, 11))), encoding="utf-8")
    paper = "getComputedStyle(document.querySelector('.plot-paper')).fill"
    with browser(tmp_path) as chromium:
        found = []
        for dark in (False, True):
            chromium.open(file, dark=dark)
            found.append(chromium.run(paper))
    assert found == ["rgb(255, 255, 255)", "rgb(20, 24, 29)"]
