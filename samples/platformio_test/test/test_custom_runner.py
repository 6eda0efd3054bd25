# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Reads the test program's lines ``name: PASS`` and ``name: FAIL ...`` as test cases of PlatformIO."""

from __future__ import annotations

import re

from platformio.test.result import TestCase, TestStatus
from platformio.test.runners.base import TestRunnerBase


class CustomTestRunner(TestRunnerBase):  # type: ignore[misc]  # PlatformIO is untyped
    """One line, one case."""

    def on_testing_line_output(self, line: str) -> None:
        match = re.match(r"(.+): (PASS|FAIL)(.*)", line.strip())
        if match:
            status = TestStatus.PASSED if match[2] == "PASS" else TestStatus.FAILED
            self.test_suite.add_case(TestCase(match[1], status, message=match[3].strip()))
        super().on_testing_line_output(line)
