# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The virtual environment in ``.venv``: this project, editable, with all packages its tests use."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from tools.console import StepError, run_logged, step

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "ready"
LOCK = ROOT / "requirements-dev.lock"
OLDEST_PYTHON = (3, 10)


def _fingerprint() -> str:
    """A value that changes whenever the environment must be created or updated."""
    installed, _, _ = (ROOT / "pyproject.toml").read_text().partition("[tool.ruff]")  # not the linters' rules
    digest = hashlib.sha256(installed.encode())
    digest.update(LOCK.read_bytes())
    digest.update(f"{sys.version}\n{sys.base_prefix}\n{ROOT}".encode())
    return digest.hexdigest()


def _works() -> bool:
    """Whether the environment's interpreter still starts (a system upgrade can take it away)."""
    python = VENV / "bin" / "python"
    if not python.exists():
        return False
    return (
        subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    )


def ensure(log: Path) -> None:
    """Create or update the environment, unless it is up to date."""
    with step("virtual environment") as current:
        if sys.version_info < OLDEST_PYTHON:
            raise StepError(
                f"this is Python {sys.version.split()[0]}; 3.10 or later is required",
                "install a newer one and select it: make PYTHON=python3.12 …",
            )
        if STAMP.exists() and STAMP.read_text() == _fingerprint():
            current.result = ".venv is up to date"
            return
        if not _works():
            shutil.rmtree(VENV, ignore_errors=True)
            hint = "if this is Debian or Ubuntu: apt-get install python3-venv"
            # Not sys.executable: that may be the broken .venv itself, if it is activated.
            python = getattr(sys, "_base_executable", sys.executable)
            run_logged([python, "-m", "venv", str(VENV)], log, hint)
            current.result = "created .venv"
        else:
            current.result = ".venv is out of date"
    with step("python packages", "installing; takes a minute or two the first time") as current:
        STAMP.unlink(missing_ok=True)
        pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
        hint = "pip requires access to a package index: check the network or pip's configuration, then retry"
        current.result = "installed as locked"
        try:
            run_logged([*pip, "--require-hashes", "-r", str(LOCK)], log, hint)
        except StepError:  # such as an index that has other versions, or a platform without wheels of these
            current.result = "installed, but not the versions of requirements-dev.lock: see the log"
        run_logged([*pip, "-e", f"{ROOT}[dev]"], log, hint)
        STAMP.write_text(_fingerprint())
