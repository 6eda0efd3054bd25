# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The comparison with two interpreters is complete, says what we lose, and is not better than the record."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tinyml.bench import record
from tools import benchmarks, rivals

CONTENT = rivals.load()
RUNS: list[rivals.Run] = CONTENT["runs"]
TOLERANCE = 0.02


def test_every_run_of_an_interpreter_has_one_of_ours() -> None:
    own = rivals.ours(RUNS)
    assert rivals.theirs(RUNS)
    assert not [run for run in rivals.theirs(RUNS) if run.place not in own]
    assert {run.runtime for run in rivals.theirs(RUNS)} == set(CONTENT["rivals"])


def test_every_run_has_a_row() -> None:
    rows = [line for line in rivals.section().splitlines() if line.startswith("| ") and "cortex-m" in line]
    assert len(rows) == len(rivals.theirs(RUNS))


@pytest.mark.parametrize("cost", ["instructions", "flash", "RAM"])
def test_what_we_lose_is_said(cost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rivals.theirs(RUNS)[0]
    own = rivals.ours(RUNS)[run.place]
    better = {
        "instructions": replace(run, instructions=own.instructions - 1),
        "flash": replace(run, code_bytes=0, constants_bytes=1),
        "RAM": replace(run, buffers_bytes=0, variables_bytes=0, stack_bytes=1),
    }[cost]
    others = [other for other in RUNS if other is not run]
    monkeypatch.setattr(rivals, "load", lambda: {**CONTENT, "runs": [better, *others]})
    said = f"{cost} of {run.model} on {run.core} at {run.optimize}"
    assert said in rivals.section()
    assert said not in "; ".join(rivals.lost(others))


def test_ours_are_not_better_than_the_record() -> None:
    """What the page says is what the compiler of today needs."""
    kept = {
        (row.sha256, row.machine): row for row in record.load(benchmarks.RECORD).rows if row.kernels == "auto"
    }
    compared = 0
    for run in rivals.ours(RUNS).values():
        row = kept.get((CONTENT["models"][run.model]["sha256"], f"qemu-{run.core}"))
        if row is None or run.optimize != row.optimize:
            continue
        compared += 1
        now = rivals.own_run(run.model, run.core, row).costs
        assert all(amount <= run.costs[cost] * (1 + TOLERANCE) for cost, amount in now.items()), run
    assert compared


def test_measuring_replaces_only_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(benchmarks.DIGITS.read_bytes())
    row = next(row for row in record.load(benchmarks.RECORD).rows if row.model == "digits")
    monkeypatch.setattr(rivals, "measure", lambda *args: replace(row, optimize=args[-1], instructions=77))
    run = rivals.theirs(RUNS)[0]
    content: dict[str, Any] = {
        "models": {"digits": {"title": "digits", "sha256": row.sha256, "io": "arena"}},
        "runs": [run],
    }
    new = rivals.measured(content, [tmp_path])
    assert new[-1] == run
    assert {own.place for own in new[:-1]} == {
        ("digits", core, level) for core in rivals.CORES for level in rivals.LEVELS
    }
    assert all(own.instructions == 77 for own in new[:-1])
    assert asdict(new[0])["runtime"] == rivals.OURS
