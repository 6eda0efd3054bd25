# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""tools/published_detectors.py: a small detector has a row, and a wrong box is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.host.test_suppression import USUAL, suppression
from tinyml import harness
from tools import published_detectors
from tools.published_detectors import Setup, row_of


@pytest.fixture
def model(tmp_path: Path) -> Path:
    pytest.importorskip("ai_edge_litert")
    pytest.importorskip("sklearn")
    path = tmp_path / "small.tflite"
    path.write_bytes(suppression(30, {name: USUAL[name] for name in list(USUAL)[:3]}))
    return path


def test_a_row(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_detectors, "instructions", lambda *_: "1")
    row = row_of(model, Setup(runs=3))
    assert (row.operator, row.equal, row.worst) == ("BoxSuppression", 3, 0)
    assert len(row.boxes) == 3
    assert all(0 < count <= 6 for count in row.boxes)
    assert str(row).count("|") == published_detectors.HEAD.count("|")


def test_a_wrong_box_is_found(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_detectors, "instructions", lambda *_: "1")
    right = harness.run_files

    def wrong(*args: object, **more: object) -> harness.Result:
        result = right(*args, **more)  # type: ignore[arg-type]
        chosen = next(array for array in result.outputs[1].values() if array.size > 1)
        chosen[0] = np.int32(29) - chosen[0] if chosen[0] != 14 else 3
        return result

    monkeypatch.setattr(harness, "run_files", wrong)
    row = row_of(model, Setup(runs=3))
    assert row.equal == 2
    assert row.worst > 0
