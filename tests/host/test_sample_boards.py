# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Every board that a sample.yaml names is run by the suite, or was run as docs/SAMPLE_BOARDS.md says."""

from __future__ import annotations

from dataclasses import replace

from tests.zephyr import applications, test_mlperf_tiny, test_slots
from tools import samples

PAIRS = samples.outside()


def test_boards_outside_the_suite_were_run() -> None:
    """Boards that cannot be emulated may be missing: building for them requires what a workspace may lack."""
    lines = samples.recorded(samples.PAGE.read_text(encoding="utf-8"))
    wanted = [pair for pair in PAIRS if not pair.build_only or (pair.test, pair.board) in lines]
    assert list(lines) == [(pair.test, pair.board) for pair in wanted], "run: python -m tools.samples"
    for pair in wanted:
        good = "built" if pair.build_only else "passed"
        assert f"| {good} |" in lines[pair.test, pair.board]


def test_the_suite_runs_every_sample_on_a_core_and_on_native_sim() -> None:
    """``tests/zephyr/applications.py`` takes tests and boards from the files; some samples have their own."""
    boards: dict[str, set[str]] = {}
    for pair in samples.named():
        boards.setdefault(pair.sample.name, set()).update({pair.board} if pair.in_suite else ())
    assert boards.pop("model_update") == {test_slots.BOARD, applications.NATIVE}
    assert boards["mlperf_tiny"] == set(test_mlperf_tiny.BOARDS)
    assert boards["digits"] <= set(applications.DIGITS_BOARDS)
    assert boards["gesture_own"] == {"qemu_cortex_m3", "qemu_cortex_m4", applications.NATIVE}
    assert boards.pop("writer") == {"qemu_cortex_m4", applications.NATIVE}  # slow without an FPU
    usual = {"qemu_cortex_m3", applications.NATIVE}
    assert all(found - {"qemu_cortex_m4"} == usual for found in boards.values()), boards


def test_a_page_is_renewed() -> None:
    first, second = PAIRS[:2]
    gone = replace(first, board="gone")
    old = samples.renewed(
        "", {(p.test, p.board): samples.line(p, "passed", "4", "1") for p in (first, gone)}, PAIRS
    )
    new = samples.renewed(old, {(second.test, second.board): samples.line(second, "failed", "4", "2")}, PAIRS)
    assert "gone" not in old
    assert samples.recorded(new).keys() == {(p.test, p.board) for p in (first, second)}


def test_what_was_not_tried_is_not_recorded() -> None:
    real = replace(PAIRS[0], build_only=True)
    assert samples.worded("not run", real) == "built"
    assert samples.worded("not run", replace(real, build_only=False)) is None
    assert samples.worded("filtered a module is missing", real) is None
    assert samples.worded("failed Timeout", real) == "failed Timeout"
