# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``make quick``: check what has changed, within two minutes.

``python -m tools.quick [--since REVISION] [--seconds N]``

Checks the style of the files that have changed and the types of all, and runs the tests on the host that the
change reaches (``tools/reach.py``), the nearest first, until the time is over. Default: what this branch has
added to main, or the last commit on main; and what is not committed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tools import lint, reach
from tools.check import workers
from tools.environment import ROOT, VENV

SECONDS = 100
DEADLINE = "TINYML_TEST_DEADLINE"
COUNTS = "TINYML_TEST_COUNTS"
"""A file for the numbers of tests that ran, and of those that the deadline left out."""
SHOWN = 5
FIRST = 8


def git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def base() -> str:
    """The revision to compare with."""
    head = git("rev-parse", "HEAD")
    for main in ("main", "origin/main"):
        common = git("merge-base", "HEAD", main)
        if common and common != head:
            return common[0]
    return "HEAD" if git("status", "--porcelain") else "HEAD~1"


def changed(since: str) -> list[str]:
    """The files that differ from a revision, committed or not; those that were deleted, too."""
    new = git("ls-files", "--others", "--exclude-standard")
    return sorted({*git("diff", "--name-only", since), *new})


def style(files: list[str]) -> list[str]:
    """The names of the checks that fail on some files."""
    here = [name for name in files if (ROOT / name).is_file()]
    python = [name for name in here if name.endswith(".py")]
    c = [name for name in here if name in set(lint.c_files())]
    checks = {
        "ruff check": (["ruff", "check"], python),
        "ruff format": (["ruff", "format", "--check"], python),
        "clang-format": (["clang-format", "--dry-run", "-Werror"], c),
    }
    return [
        name
        for name, ((program, *words), those) in checks.items()
        if those
        and subprocess.run([VENV / "bin" / program, *words, *those], cwd=ROOT, check=False).returncode
    ]


def groups(tests: list[str]) -> list[list[str]]:
    """The nearest files first: pytest reads all files that it is given before it runs the first test."""
    starts = (0, FIRST, 5 * FIRST, len(tests))
    return [tests[start:end] for start, end in pairwise(starts) if tests[start:end]]


def run(tests: list[str], end: float) -> tuple[bool, tuple[int, int]]:
    """Whether no test failed, and how many ran and did not."""
    options = ["-q", "-n", workers(), "--no-header", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    with tempfile.TemporaryDirectory(prefix="tinyml-quick-") as folder:
        counts = Path(folder) / "counts"
        environment = {**os.environ, DEADLINE: str(end), COUNTS: str(counts)}
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
        ran, late = map(int, counts.read_text("utf-8").split()) if counts.is_file() else (0, 0)
    return done.returncode in (0, 5), (ran, late)


def summary(ran: int, late: int, unread: int, seconds: float, tests: Sequence[str]) -> str:
    """What must be known about tests that did not run; nothing if all did."""
    if not late and not unread:
        return ""
    parts = [f"{late:,} of {ran + late:,} tests did not run"] if late else []
    parts += [f"the tests of {unread:,} of {len(tests):,} files were not even read"] if unread else []
    proved = f"{ran:,} tests ran" if ran else "no test ran, so this says nothing about the change"
    return (
        f"time was up after {seconds:g} s: {', and '.join(parts)}; nothing is known about what they test.\n"
        f"{proved}. More: --seconds {4 * seconds:g}, or the nearest ones alone:\n"
        f"python -m pytest {' '.join(tests[:SHOWN])}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="check what has changed, within two minutes")
    parser.add_argument("--since", metavar="REVISION", help="default: where this branch left main")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help="default: %(default)s")
    args = parser.parse_args()
    end = time.time() + args.seconds
    since = args.since or base()
    files = changed(since)
    tests = reach.host_tests(files)
    print(f"{len(files)} files differ from {since[:12]}; {len(tests)} files of tests are reached", flush=True)
    failed = style(files)
    types = subprocess.Popen([VENV / "bin" / "mypy", "--no-error-summary"], cwd=ROOT)
    ran = late = unread = 0
    for group in groups(tests):
        if time.time() > end:
            unread += len(group)
            continue
        fine, counted = run(group, end)
        ran, late = ran + counted[0], late + counted[1]
        if not fine and "pytest" not in failed:
            failed.append("pytest")
    if types.wait():
        failed.append("mypy")
    missing = summary(ran, late, unread, args.seconds, tests)
    if failed or not missing:
        print(f"failed: {', '.join(failed)}" if failed else "nothing found; `make test` runs everything")
    if missing:
        print(missing)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
