# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The project as `pip install` without -e leaves it, for tests of the wheel's contents."""

from __future__ import annotations

import getpass
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NO_NETWORK = ("No matching distribution found", "Could not find a version", "Connection")
PARTS = ("plugin", "zephyr", "zephyr_module", "boards")
FILES = (
    *("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "module.yml", "library.json"),
    *("samples/digits/model.onnx", "samples/digits/model_float.onnx", "docs/notebooks/quickstart.ipynb"),
)
DAY_SECONDS = 24 * 3600


def install() -> Path:
    """A folder like site-packages with the installed project, whose sources are gone; skips without PyPI.

    It is the same folder for all tests, and for later runs with the same sources: do not change it.
    """
    place = Path(tempfile.gettempdir()) / f"west-tinyml-site-{getpass.getuser()}-{_digest()}"
    if not place.exists():
        made = Path(tempfile.mkdtemp(prefix=f"{place.name}-"))
        _install(made)
        try:
            (made / "site").rename(place)
        except OSError:  # another worker was faster
            assert place.is_dir()
        shutil.rmtree(made)
    os.utime(place)
    _forget_others(place)
    return place


def _digest() -> str:
    digest = hashlib.sha256(sys.version.encode())
    files = [ROOT / name for name in FILES]
    for part in PARTS:
        files += [path for path in sorted((ROOT / part).rglob("*")) if path.is_file() and not _ignored(path)]
    for path in files:
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _ignored(path: Path) -> bool:
    return any(part == "__pycache__" or part.endswith(".egg-info") for part in path.parts)


def _install(folder: Path) -> None:
    clone = folder / "clone"
    for part in PARTS:
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / part, clone / part, ignore=ignored)
    for name in FILES:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target"]
    command = [*pip, str(folder / "site"), str(clone)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode and any(text in done.stderr for text in NO_NETWORK):
        shutil.rmtree(folder)
        pytest.skip("pip cannot fetch setuptools here")
    assert done.returncode == 0, done.stderr


def _forget_others(place: Path) -> None:
    """Delete what was installed from other sources and has not been used for a day."""
    for other in place.parent.glob(f"west-tinyml-site-{getpass.getuser()}-*"):
        if other != place and time.time() - other.stat().st_mtime > DAY_SECONDS:
            shutil.rmtree(other, ignore_errors=True)


def run(site: Path, *words: str | Path, cwd: Path) -> str:
    """Run Python with the installed package; what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1", "COLUMNS": "200"}
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
