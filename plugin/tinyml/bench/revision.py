# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The same measurements with the compiler of another commit, for a comparison."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tinyml.base.errors import ConfigError, ToolError
from tinyml.bench import record

ROOT = Path(__file__).resolve().parents[3]


def measure_revision(revision: str, arguments: Sequence[str]) -> record.Record:
    """Run ``tinyml bench`` with ``arguments`` as it was in ``revision`` of this repository."""
    with tempfile.TemporaryDirectory(prefix="tinyml-bench-") as name:
        folder = Path(name)
        _export(revision, folder)
        out = folder / "record.json"
        done = subprocess.run(
            [sys.executable, "-m", "tinyml", "bench", *arguments, "--json", str(out)],
            env={**os.environ, "PYTHONPATH": str(folder / "plugin")},
            capture_output=True,
            text=True,
            check=False,
        )
        if not out.is_file():
            said = (done.stderr or done.stdout).strip().splitlines()
            raise ToolError(f"tinyml bench of {revision} failed: {said[-1] if said else 'no message'}")
        return record.load(out)


def _export(revision: str, folder: Path) -> None:
    """The tree of a commit, without touching the working tree."""
    if not (ROOT / ".git").exists():
        raise ConfigError(
            f"{revision!r} is neither a file nor, outside of a git clone of west-tinyml, a commit",
            "name a JSON file that `tinyml bench --json` wrote",
        )
    archive = folder / "tree.tar"
    command = ["git", "-C", str(ROOT), "archive", "--output", str(archive), revision, "plugin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigError(
            f"{revision!r} is neither a file nor a commit", done.stderr.strip() or "git rev-parse"
        )
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(folder)
