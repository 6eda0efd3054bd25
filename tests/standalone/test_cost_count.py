# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml cost --count`: instructions of the machine that emulates the core."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tinyml
from tinyml import harness
from tinyml.api.costs import counted, emulator_of
from tinyml.base.errors import ConfigError
from tinyml.cost.error_bars import DOUBTFUL
from tinyml.datasets import arrays
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


@pytest.mark.parametrize("core", ["riscv32", "riscv32-zve32x"])
def test_estimates_of_a_model_that_no_figure_was_fitted_to(core: str) -> None:
    """The digits sample is not among the published models; tests/host/test_cost.py has recorded cores."""
    model = tinyml.compile(DIGITS, target=core)
    found, truth = tinyml.cost(model), counted(model)
    assert found.instructions is not None
    assert truth.instructions is not None
    assert found.instructions_error is not None
    assert found.instructions_error < DOUBTFUL
    assert truth.counted_on == f"qemu-{core}"
    assert abs(truth.instructions / found.instructions - 1) <= found.instructions_error
    inputs = [arrays.pattern_inputs(model.built.graph)]
    linked = harness.run_files(model.files, truth.counted_on, inputs).footprint
    assert linked is not None
    assert found.flash_bytes == pytest.approx(linked.total.flash, rel=0.1)


def test_a_core_without_figures_is_counted() -> None:
    """Estimates are unknown, and the note says what to do; counts do not mention estimates."""
    model = tinyml.compile(DIGITS, target="riscv32-zve32f")
    found, truth = tinyml.cost(model), counted(model)
    assert found.instructions is None
    assert found.note.endswith("; with --count, qemu-riscv32-zve32f counts instructions")
    assert truth.instructions is not None
    assert truth.note == "instructions were counted on qemu-riscv32-zve32f for one input"


def test_cores_that_nothing_emulates() -> None:
    assert emulator_of("cortex-m33").name == "qemu-cortex-m4"
    with pytest.raises(ConfigError, match="no machine emulates generic"):
        emulator_of("generic")
