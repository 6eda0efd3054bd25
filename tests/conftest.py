# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sorts tests into tiers (see ``tiers.py``), skips those that cannot run here, counts them at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import tiers
from tests.support import orphans
from tools import workspace

orphans.end_with_this_process()

# Find the programs installed with this Python (west, pio), whether or not its environment is activated.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

# A build starts some twenty Pythons: let them keep their bytecode even where the environment says not to.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(workspace.cache_folder() / "bytecode"))

if place := workspace.find():
    # Everything below, including the compiler, uses one workspace and its CMSIS-NN.
    os.environ.setdefault("TINYML_WORKSPACE", str(place))


@pytest.fixture(scope="session")
def models_folder() -> Path:
    """The folder of published models with goldens, which is not part of this repository."""
    named = os.environ.get("TINYML_MODELS")
    folder = Path(named) if named else tiers.TESTS.parent.parent / "shared" / "models"
    if not (folder / "index.csv").is_file():
        pytest.skip("no published models here (TINYML_MODELS names their folder)")
    return folder


def pytest_configure(config: pytest.Config) -> None:
    try:
        tiers.required()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        tier = tiers.tier_of(item.path)
        if tier is None:
            raise pytest.UsageError(f"{item.path}: tests belong in one of tests/{{{','.join(tiers.NAMES)}}}/")
        if reason := tiers.reason_missing(tier):
            item.add_marker(pytest.mark.skip(reason=f"tier {tier.name}: {reason}"))


class TierReport:
    """Counts how the tests of each tier ended; with xdist, in the process that prints the results."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.counts: dict[str, tiers.Count] = {}

    def _reasons(self) -> dict[str, str | None]:
        return {tier.name: tiers.reason_missing(tier) for tier in tiers.TIERS}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        tier = tiers.tier_of(self.root / report.nodeid.split("::")[0])
        if tier is None:
            return
        count = self.counts.setdefault(tier.name, tiers.Count())
        if report.skipped and not hasattr(report, "wasxfail"):
            count.skipped += 1
        elif report.when == "call" or report.failed:
            count.ran += 1

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        yield  # whatever else is printed at the end comes before
        if session.config.option.collectonly:
            return
        complaints = tiers.complaints(tiers.required(), self.counts, self._reasons())
        if complaints:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            terminal.write_line(tiers.summary(self.counts, self._reasons()))
            for complaint in complaints:
                terminal.write_line(complaint, red=True)


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # not in a worker of xdist
        session.config.pluginmanager.register(TierReport(session.config.rootpath), "tier-report")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests run on any free worker, but those of a file that shares builds stay together.

    Each worker would make the fixtures of such a file again.
    """
    from xdist.scheduler import LoadScopeScheduling

    @cache
    def shares(file: str) -> bool:
        path = config.rootpath / file
        tier = tiers.tier_of(path)
        return tier is not None and (tier.one_worker or 'scope="module"' in path.read_text(encoding="utf-8"))

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::")[0]
            return file if shares(file) else nodeid

    return ByFile(config, log)
