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
import time

from tools import lint, reach
from tools.check import workers
from tools.environment import ROOT, VENV

SECONDS = 100
DEADLINE = "TINYML_TEST_DEADLINE"


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
    if tests:
        options = ["-q", "-n", workers(), "--no-header", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        environment = {**os.environ, DEADLINE: str(end)}
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode not in (0, 5):
            failed.append("pytest")
    if types.wait():
        failed.append("mypy")
    print(f"failed: {', '.join(failed)}" if failed else "nothing found; `make test` runs everything")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
