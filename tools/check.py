# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``make test``: check style and types and run all four tiers of tests, even if one of them fails.

Style and types are checked beside the first tests: one check after the other would leave processors idle.

``python -m tools.check [--deep] [arguments for pytest]``. ``--deep`` (``make test-deep``) runs long campaigns
in full instead of a fixed tenth of them: see ``tests/depth.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tools import lint
from tools.environment import ROOT

SLOWEST = 25


def workers() -> str:
    return str(max(1, min(4, os.cpu_count() or 1)))


def untracked() -> set[str]:
    """Files in the tree that git neither has nor ignores; none where this is no clone."""
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return set(done.stdout.splitlines())


def main() -> int:
    start = time.monotonic()
    before = untracked()
    options = ["-q", "-n", workers(), f"--durations={SLOWEST}", "--durations-min=1"]
    pytest = [sys.executable, "-m", "pytest", *options, *sys.argv[1:]]
    with ThreadPoolExecutor() as beside:
        style = beside.submit(lint.run)
        tests = subprocess.run(pytest, cwd=ROOT, check=False).returncode
        failed = style.result()
    if tests:
        failed.append("pytest")
    if left := sorted(untracked() - before):
        failed.append(f"files that the tests left in the tree ({', '.join(left)})")
    minutes = (time.monotonic() - start) / 60
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed", f"({minutes:.1f} minutes)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
