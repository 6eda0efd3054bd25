# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The tiers: what is skipped, what is reported, and that a missing required tier is an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tiers

ROOT = tiers.TESTS.parent


def test_a_test_belongs_to_the_tier_of_its_folder() -> None:
    assert [tier.name for tier in tiers.TIERS] == ["host", "standalone", "zephyr", "platformio"]
    here = tiers.tier_of(Path(__file__))
    assert here is not None
    assert here.name == "host"
    assert tiers.tier_of(ROOT / "setup.py") is None


def test_required_tiers_are_read_from_text() -> None:
    assert tiers.required("") == ()
    assert tiers.required("host, zephyr,") == ("host", "zephyr")
    with pytest.raises(ValueError, match=r"names moon; the tiers are host, standalone"):
        tiers.required("host,moon")


def test_summary_lists_what_ran_and_why_others_did_not() -> None:
    counts = {"host": tiers.Count(ran=312, skipped=2), "zephyr": tiers.Count(skipped=5)}
    reasons = {"host": None, "zephyr": "no workspace", "standalone": None, "platformio": "no pio"}
    assert tiers.summary(counts, reasons) == (
        "tiers: host ran 312 (and skipped 2), standalone ran 0, "
        "zephyr skipped 5 (no workspace), platformio skipped (no pio)"
    )


def test_complaints_name_missing_and_idle_tiers() -> None:
    counts = {"host": tiers.Count(ran=1), "standalone": tiers.Count(skipped=3)}
    reasons = {"host": None, "standalone": None, "zephyr": "no west", "platformio": None}
    found = tiers.complaints(tiers.NAMES, counts, reasons)
    assert [text.split("tier ")[1] for text in found] == [
        "standalone, of which no test ran",
        "zephyr, which cannot run here: no west",
        "platformio, of which no test ran",
    ]


def _pytest(require: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A pytest run of its own on two tiers, with one that cannot run."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "TINYML"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env={**inherited, **environment, tiers.REQUIRE: require},
        capture_output=True,
        text=True,
        check=False,
    )


ONE_TEST = "tests/host/test_tiers.py::test_required_tiers_are_read_from_text"


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["plain", "xdist"])
def test_a_required_tier_that_is_missing_fails_the_run(tmp_path: Path, workers: tuple[str, ...]) -> None:
    nowhere = str(tmp_path / "nowhere")
    fine = _pytest("host", ONE_TEST, *workers, TINYML_WORKSPACE=nowhere)
    assert fine.returncode == 0, fine.stdout
    assert "tiers: host ran 1" in fine.stdout
    short = _pytest("host,zephyr", ONE_TEST, *workers, TINYML_WORKSPACE=nowhere)
    assert short.returncode == 1, short.stdout
    assert f"the tier zephyr, which cannot run here: no west workspace at {nowhere}" in short.stdout


def test_an_unknown_tier_is_refused() -> None:
    result = _pytest("zephir", ONE_TEST)
    assert result.returncode == 4
    assert "TINYML_REQUIRE_TIERS names zephir" in result.stderr


def test_a_file_that_shares_builds_stays_on_one_worker() -> None:
    from tests.conftest import pytest_xdist_make_scheduler

    class Config:
        rootpath = ROOT

        def getvalue(self, name: str) -> list[str]:
            return ["popen", "popen"]

    scheduler = pytest_xdist_make_scheduler(Config(), None)  # type: ignore[arg-type]
    scope = scheduler._split_scope
    assert scope("tests/zephyr/test_build.py::test_a") == scope("tests/zephyr/test_build.py::test_b[1]")
    assert scope("tests/host/test_values.py::test_a") == scope("tests/host/test_values.py::test_b")
    assert scope("tests/host/test_ops.py::test_a") != scope("tests/host/test_ops.py::test_b")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends processes with their parent")
def test_a_crash_fails_the_run_and_does_not_hang_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests.support import orphans\norphans.end_with_this_process()\n"
    )
    (tmp_path / "test_crash.py").write_text(
        "import os, signal\ndef test_crash():\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 1
    assert "crashed while running 'test_crash.py::test_crash'" in run.stdout
