# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sorts tests into tiers (see ``tiers.py``), skips those that cannot run here, counts them at the end."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import depth, tiers
from tests.support import cpu, orphans
from tools import workspace

orphans.end_with_this_process()

# Find the programs installed with this Python (west, pio), whether or not its environment is activated.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

# A build starts some twenty Pythons: let them keep their bytecode even where the environment says not to. So
# does this one: pytest rewrites every test, and each worker would do that again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = os.environ.setdefault(
        "PYTHONPYCACHEPREFIX", str(workspace.cache_folder() / "bytecode")
    )

# Nothing that is tested allocates memory, and the search for leaks takes seconds per program on aarch64.
os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0")

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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--deep", action="store_true", help="run whole campaigns, as `make test-deep` does")
    parser.addoption(cpu.OPTION, metavar="FILE", help="write the CPU seconds of each test")


def pytest_configure(config: pytest.Config) -> None:
    for marker in depth.MARKERS:
        config.addinivalue_line("markers", marker)
    config.pluginmanager.register(cpu.Meter())
    if config.getoption("--deep"):
        os.environ[depth.SETTING] = "1"
    try:
        tiers.required()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_to_deep(config, items)
    if config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        # Tests that take minutes first: the many short ones fill the workers evenly at the end.
        items.sort(key=lambda item: -rank(item))
    for item in items:
        tier = tiers.tier_of(item.path)
        if tier is None:
            raise pytest.UsageError(f"{item.path}: tests belong in one of tests/{{{','.join(tiers.NAMES)}}}/")
        if reason := tiers.reason_missing(tier):
            item.add_marker(pytest.mark.skip(reason=f"tier {tier.name}: {reason}"))


def pytest_collection_finish() -> None:
    """What is there by now stays until the end: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


NO_TIME = "no time left: `make test` runs it"


def pytest_runtest_setup() -> None:
    """`make quick` stops when its time is over, wherever it is."""
    end = os.environ.get("TINYML_TEST_DEADLINE")
    if end and time.time() > float(end):
        pytest.skip(NO_TIME)


def rank(item: pytest.Item) -> int:
    """The place of a test's tier; those that build whole images come last."""
    tier = tiers.tier_of(item.path)
    return tiers.TIERS.index(tier) if tier else 0


def leave_to_deep(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what ``make test-deep`` alone runs (see ``depth.py``)."""
    if depth.is_deep():
        return
    named = tuple(
        argument.replace(os.sep, "/").removeprefix(f"{config.rootpath.as_posix()}/")
        for argument in map(str, config.args)
        if "::" in argument
    )
    campaigns: dict[str, list[str]] = {}
    for item in items:
        if marker := item.get_closest_marker("tenth"):
            campaign = marker.args[0] if marker.args else item.nodeid.split("[")[0]
            campaigns.setdefault(campaign, []).append(item.nodeid)
    kept = set().union(*map(depth.chosen, campaigns.values()))

    def stays(item: pytest.Item) -> bool:
        if item.nodeid.startswith(named):
            return True
        if item.get_closest_marker("deep"):
            return False
        return not item.get_closest_marker("tenth") or item.nodeid in kept

    left = [item for item in items if not stays(item)]
    if left:
        items[:] = [item for item in items if stays(item)]
        config.hook.pytest_deselected(items=left)
        if hasattr(config, "workeroutput"):
            config.workeroutput["left"] = len(left)
        elif report := config.pluginmanager.get_plugin("tier-report"):
            report.left = len(left)


class TierReport:
    """Counts how the tests of each tier ended; with xdist, in the process that prints the results."""

    def __init__(self, root: Path, terminal: Any = None) -> None:
        self.root = root
        self.terminal = terminal
        self.counts: dict[str, tiers.Count] = {}
        self.left = 0  # to `make test-deep`
        self.late = 0  # tests that a deadline left out

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.left = max(self.left, getattr(node, "workeroutput", {}).get("left", 0))

    def _reasons(self) -> dict[str, str | None]:
        return {tier.name: tiers.reason_missing(tier) for tier in tiers.TIERS}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.late += report.skipped and NO_TIME in str(report.longrepr)
        tier = tiers.tier_of(self.root / report.nodeid.split("::")[0])
        if tier is None:
            return
        count = self.counts.setdefault(tier.name, tiers.Count())
        if report.skipped and not hasattr(report, "wasxfail"):
            count.skipped += 1
        elif report.when == "call" or report.failed:
            count.ran += 1
        if report.failed and self.terminal is not None:
            self.terminal.write_line(f"\nFAILED {report.nodeid}", red=True)  # the end may be far away

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
            if self.left:
                terminal.write_line(f"left to `make test-deep`: {self.left:,} tests")
            if self.late:
                terminal.write_line(f"left out, for want of time: {self.late:,} tests", red=True)
            if place := os.environ.get("TINYML_TEST_COUNTS"):
                ran = sum(count.ran for count in self.counts.values())
                Path(place).write_text(f"{ran} {self.late}", encoding="utf-8")
            for complaint in complaints:
                terminal.write_line(complaint, red=True)


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # not in a worker of xdist
        config = session.config
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        config.pluginmanager.register(TierReport(config.rootpath, terminal), "tier-report")

        def tier_of(test: str) -> str:
            tier = tiers.tier_of(config.rootpath / test.split("::")[0])
            return tier.name if tier else "others"

        config.pluginmanager.register(cpu.Summary(tier_of, config.getoption(cpu.OPTION)))


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
