# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml.verify`, `tinyml.profile` and `tinyml.report` from Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tinyml
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
