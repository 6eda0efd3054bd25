# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of tests with their child processes: unlike minutes, about the same on a busy machine.

The seconds of each tier are printed after the tests; ``--cpu-times FILE`` writes those of each test as JSON.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

OPTION = "--cpu-times"
PROPERTY = "cpu_seconds"


def spent() -> float:
    """Seconds of this process and of those that it has started and waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Meter:
    """Gives each report what was spent since the one before it; also in a worker of xdist."""

    def __init__(self) -> None:
        self.before = spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = spent()
        report.user_properties.append((PROPERTY, now - self.before))
        self.before = now
        return report


class Summary:
    """Adds up what the reports state; in the process that prints the results."""

    def __init__(self, tier_of: Callable[[str], str], file: str | None) -> None:
        self.tier_of = tier_of
        self.file = file
        self.tests: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, seconds in report.user_properties:
            if name == PROPERTY and isinstance(seconds, float):
                self.tests[report.nodeid] += seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.file:
            dearest = sorted(self.tests.items(), key=lambda entry: -entry[1])
            costs = {test: round(seconds, 2) for test, seconds in dearest}
            Path(self.file).write_text(json.dumps(costs, indent=1), encoding="utf-8")
        terminalreporter.write_line(f"CPU seconds: {self.words()}")

    def words(self) -> str:
        tiers: defaultdict[str, float] = defaultdict(float)
        for test, seconds in self.tests.items():
            tiers[self.tier_of(test)] += seconds
        return ", ".join(f"{tier} {seconds:,.0f}" for tier, seconds in tiers.items())
