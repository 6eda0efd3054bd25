# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml.verify`, `tinyml.profile` and `tinyml.report` from Python."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import tinyml
from tinyml.api.pictures import confusion_matrix, decibel_bars
from tinyml.report.facts import load

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"


def test_verify() -> None:
    images = np.random.default_rng(0).uniform(0, 1, (3, 1, 1, 8, 8)).astype(np.float32)
    found = tinyml.verify(DIGITS, images)
    assert found
    assert (found.equal, found.values, len(found.outputs)) == (30, 30, 3)
    assert "agrees on host with" in repr(found)
    assert "all 10 equal" in found._repr_html_()
    assert tinyml.verify(tinyml.compile(DIGITS, io="int8"), samples=1).values == 10


def test_verify_finds_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dense layer whose constants differ in the C is found, with its name."""
    from tinyml.ops.dense.dense import Dense

    right = Dense.evaluate

    def wrong(self: Dense, *arguments: object, **named: object) -> object:
        (y,) = right(self, *arguments, **named)  # type: ignore[arg-type]
        return [np.minimum(y, 0)]

    monkeypatch.setattr(Dense, "evaluate", wrong)
    found = tinyml.verify(DIGITS, reference="numpy")
    assert not found
    assert found.equal < found.values
    assert found.causes
    assert "differs on host" in repr(found)


def test_mistakes() -> None:
    with pytest.raises(tinyml.ConfigError, match="samples=0 is not at least 1"):
        tinyml.verify(DIGITS, samples=0)
    with pytest.raises(tinyml.ToolError, match="host does not count instructions"):
        tinyml.profile(DIGITS, on="host")
    with pytest.raises(tinyml.ConfigError, match=r"a report cannot be written to x\.pdf"):
        tinyml.report(DIGITS).write("x.pdf")


def test_report(tmp_path: Path) -> None:
    report = tinyml.report(DIGITS)
    assert "8 layers" in repr(report)
    assert "<iframe" in report._repr_html_()
    for ending in ("html", "md", "json"):
        assert report.write(tmp_path / f"report.{ending}").stat().st_size > 100
    assert load(tmp_path / "report.json") == report.facts


def test_pictures_for_notebooks() -> None:
    """Bars are as long as their decibels; a row of the matrix is darkest where most samples are."""
    drawn = ElementTree.fromstring(decibel_bars([("conv<1>", 50.0), ("dense", 12.5), ("bad", -3.0)]))
    bars = drawn.findall("{http://www.w3.org/2000/svg}rect")
    widths = [float(bar.get("width", "")) for bar in bars]
    assert widths[0] == 4 * widths[1]
    assert widths[2] == 0
    assert [bar.get("fill") for bar in bars][1] == "#c33", "below 20 dB"
    matrix = ElementTree.fromstring(confusion_matrix(["yes", "no"], [[9, 1], [0, 5]]))
    cells = matrix.findall("{http://www.w3.org/2000/svg}rect")
    shares = [float(cell.get("fill-opacity", "")) for cell in cells]
    assert shares == [0.765, 0.085, 0.0, 0.85]
    assert confusion_matrix(["c"] * 50, [[0] * 50] * 50) == "", "too many for a picture"
    assert decibel_bars([]) == ""
