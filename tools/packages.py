"""The Debian/Ubuntu packages that builds and emulation need: which are missing, and installing them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from tools.console import StepError, run_logged, step


def _command(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


def _newlib() -> bool:
    """gcc answers with a bare name when it has no such file."""
    gcc = shutil.which("arm-none-eabi-gcc")
    if gcc is None:
        return False
    answer = subprocess.run([gcc, "-print-file-name=libc.a"], capture_output=True, text=True, check=False)
    return Path(answer.stdout.strip()).is_absolute()


def _venv() -> bool:
    """Debian splits ensurepip out of Python; without it ``python -m venv`` fails half-way."""
    probe = [sys.executable, "-c", "import venv, ensurepip"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


# Package, and how to see that what it brings is there (from wherever it came).
PACKAGES: dict[str, Callable[[], bool]] = {
    "python3-venv": _venv,
    "git": _command("git"),
    "gcc": _command("gcc"),
    "g++": _command("g++"),
    "cmake": _command("cmake"),
    "ninja-build": _command("ninja"),
    "gperf": _command("gperf"),
    "device-tree-compiler": _command("dtc"),
    "gcc-arm-none-eabi": _command("arm-none-eabi-gcc"),
    "libnewlib-arm-none-eabi": _newlib,
    "qemu-system-arm": _command("qemu-system-arm"),
}


FOR_BARE_METAL = ("gcc", "gcc-arm-none-eabi", "libnewlib-arm-none-eabi", "qemu-system-arm")
"""All that the standalone harness needs; the rest is for Zephyr."""


def missing(among: Iterable[str] | None = None) -> list[str]:
    """Packages that are not there: of all, or of those named."""
    return [package for package in (PACKAGES if among is None else among) if not PACKAGES[package]()]


def install_command(packages: list[str]) -> str:
    """What the user can paste."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get update && {sudo}apt-get install -y --no-install-recommends {' '.join(packages)}"


def _prefix() -> list[str] | None:
    """How to become root without asking: nothing, sudo, or not at all."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:
        return [sudo, "-n"]
    return None


def ensure(log: Path) -> list[str]:
    """Install what is missing where that is allowed; returns what is still missing."""
    wanted = missing()
    with step("system packages", f"installing {' '.join(wanted)}") as current:
        if not wanted:
            current.result = "all there"
            return []
        prefix = _prefix()
        if prefix is None:
            current.skip(f"missing {', '.join(wanted)}; run: {install_command(wanted)}")
            return wanted
        apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]
        hint = f"run it by hand: {install_command(wanted)}"
        try:
            run_logged([*apt, "update"], log, hint)
            run_logged([*apt, "install", "-y", "--no-install-recommends", *wanted], log, hint)
        except StepError as error:
            current.skip(f"{error}; {error.hint}")
        else:
            current.result = f"installed {', '.join(wanted)}"
    return missing()
