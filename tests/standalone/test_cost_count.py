# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml cost --count`: instructions of the machine that emulates the core."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tinyml.api.costs import emulator_of
from tinyml.base.errors import ConfigError
from tinyml.verbs import cli

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "samples/digits/model.onnx"
COUNTED = json.loads((ROOT / "benchmarks" / "record.json").read_text(encoding="utf-8"))["rows"]


def test_what_is_counted_is_exact(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The count of the record, and that of its layers."""
    file = tmp_path / "cost.json"
    assert cli.main(["cost", str(DIGITS), "--target", "cortex-m4", "--count", "--json", str(file)]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    places = ("digits", "portable", "qemu-cortex-m4")
    row = next(row for row in COUNTED if (row["model"], row["kernels"], row["machine"]) == places)
    assert found["instructions"] == pytest.approx(row["instructions"], rel=0.001)
    assert sum(layer["instructions"] for layer in found["layers"]) <= found["instructions"]
    assert found["counted_on"] == "qemu-cortex-m4"
    assert "counted on qemu-cortex-m4" in " ".join(capsys.readouterr().out.split())


def test_cores_that_nothing_emulates() -> None:
    assert emulator_of("cortex-m33").name == "qemu-cortex-m4"
    with pytest.raises(ConfigError, match="no machine emulates generic"):
        emulator_of("generic")
