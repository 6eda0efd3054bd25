# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The project as `pip install` without -e leaves it, for tests of the wheel's contents."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NO_NETWORK = ("No matching distribution found", "Could not find a version", "Connection")
PARTS = ("plugin", "zephyr", "zephyr_module", "boards")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "module.yml", "library.json")


def install(folder: Path) -> Path:
    """Install the project into ``folder``/site, from sources that are gone afterwards; skips without PyPI."""
    clone = folder / "clone"
    for part in PARTS:
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / part, clone / part, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, clone / name)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "site")]
    done = subprocess.run([*pip, str(clone)], capture_output=True, text=True, check=False, timeout=600)
    if done.returncode and any(text in done.stderr for text in NO_NETWORK):
        pytest.skip("pip cannot fetch setuptools here")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(clone)
    return folder / "site"


def run(site: Path, *words: str | Path, cwd: Path) -> str:
    """Run Python with the installed package; what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1", "COLUMNS": "200"}
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
