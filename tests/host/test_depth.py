# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What `make test` leaves to `make test-deep`: a fixed choice, and nothing that neither of them runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import depth, tiers

ROOT = tiers.TESTS.parent
PLUGINS = ("-p", "xdist")  # without those that drive devices, which take seconds to load
NAMES = [f"case {number}" for number in range(1000)]
CONFTEST = """
from pathlib import Path
from tests import tiers
tiers.TESTS = Path(__file__).resolve().parent
from tests.conftest import *
"""
CAMPAIGN = """
import pytest
from tests.depth import some

@pytest.mark.tenth
@pytest.mark.parametrize("number", range(200))
def test_campaign(number): pass

@pytest.mark.tenth("together")
def test_one(): pass

@pytest.mark.tenth("together")
def test_two(): pass

@pytest.mark.deep
def test_long(): pass

def test_loop():
    print("in the loop:", len(some(range(300))))
"""


def test_a_tenth_is_chosen_by_name_alone() -> None:
    found = depth.chosen(NAMES)
    assert 80 <= len(found) <= 120
    assert depth.chosen(NAMES[:500]) == found & set(NAMES[:500]), "other cases do not matter"
    assert depth.chosen(NAMES[::-1]) == found, "nor does their order"


def test_at_least_one_is_chosen() -> None:
    assert len(depth.chosen(["a", "b"])) == 1
    assert depth.chosen([]) == set()


def test_some_of_the_cases_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(depth.SETTING, raising=False)
    assert set(depth.some(NAMES)) == depth.chosen(NAMES)
    assert depth.some([1, 22], name=lambda number: "x" * number) in ([1], [22])
    monkeypatch.setenv(depth.SETTING, "1")
    assert depth.some(NAMES) == NAMES


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A suite of its own, with our conftest.py."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers --import-mode=importlib\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    file = tmp_path / "host" / "test_campaign.py"
    file.parent.mkdir()
    file.write_text(CAMPAIGN)
    return file


def run(campaign: Path, *arguments: str) -> str:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "TINYML"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rP", "-p", "no:cacheprovider", *PLUGINS, *arguments],
        cwd=campaign.parents[1],
        env={
            **inherited,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugin")]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["plain", "xdist"])
def test_a_run_without_and_with_everything(campaign: Path, workers: tuple[str, ...]) -> None:
    short = run(campaign, str(campaign), *workers)
    ran = int(short.rpartition(" passed")[0].split()[-1])
    assert 12 <= ran <= 30
    assert f"left to `make test-deep`: {204 - ran} tests" in short
    whole = run(campaign, "--deep", str(campaign), *workers)
    assert "204 passed" in whole
    assert "in the loop: 300" in whole
    assert "left to" not in whole


def test_what_is_named_runs(campaign: Path) -> None:
    assert "1 passed" in run(campaign, "host/test_campaign.py::test_long")
    assert "1 passed" in run(campaign, f"{campaign}::test_long", "-n", "1")
