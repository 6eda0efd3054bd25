# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Find and install the Debian/Ubuntu packages that builds and emulation require."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from tools.console import StepError, run_logged, step

# The compiler of this tree, whatever is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "plugin"))

from tinyml.cores.toolchains import ARM, RISCV, RISCV_VECTOR, XTENSA, Part, Toolchain


def _command(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


def _parts(toolchain: Toolchain) -> dict[str, Callable[[], bool]]:
    def here(part: Part) -> Callable[[], bool]:
        return lambda: part not in toolchain.missing()

    return {part.debian: here(part) for part in toolchain.parts}


def _venv() -> bool:
    """Debian splits ensurepip out of Python; without it ``python -m venv`` fails half-way."""
    probe = [sys.executable, "-c", "import venv, ensurepip"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


# Each package, with a check whether what it provides is installed (from any source).
PACKAGES: dict[str, Callable[[], bool]] = {
    "python3-venv": _venv,
    "git": _command("git"),
    "gcc": _command("gcc"),
    "g++": _command("g++"),
    "cmake": _command("cmake"),
    "ninja-build": _command("ninja"),
    "gperf": _command("gperf"),
    "device-tree-compiler": _command("dtc"),
    **_parts(ARM),
}

# Without these, a few tests are skipped and Zephyr builds take longer. They are installed for tests only, and
# a distribution that lacks them is no obstacle.
OPTIONAL: dict[str, Callable[[], bool]] = {
    "ccache": _command("ccache"),
    **_parts(RISCV),
    **_parts(RISCV_VECTOR),
    **_parts(XTENSA),
    "libmbedtls-dev": lambda: Path("/usr/include/psa/crypto.h").is_file(),
}

FOR_BARE_METAL = ("gcc", *_parts(ARM))
"""All that the standalone harness requires; the rest is for Zephyr."""


def missing(among: Iterable[str] | None = None) -> list[str]:
    """Packages that are not installed, of all or of those given."""
    return [package for package in (PACKAGES if among is None else among) if not PACKAGES[package]()]


def install_command(packages: list[str]) -> str:
    """A command that the user can paste."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get update && {sudo}apt-get install -y --no-install-recommends {' '.join(packages)}"


def _prefix() -> list[str] | None:
    """The command prefix to run as root without a password: empty, sudo, or None if there is no way."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:
        return [sudo, "-n"]
    return None


def ensure(log: Path, for_tests: bool = False) -> list[str]:
    """Install what is missing, if permitted; return what is still missing and not optional."""
    wanted = missing()
    extra = [package for package, here in OPTIONAL.items() if for_tests and not here()]
    with step("system packages", f"installing {' '.join(wanted + extra)}") as current:
        if not wanted + extra:
            current.result = "all installed"
            return []
        prefix = _prefix()
        if prefix is None:
            current.skip(f"missing {', '.join(wanted + extra)}; run: {install_command(wanted + extra)}")
            return wanted
        apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]
        hint = f"run it manually: {install_command(wanted + extra)}"
        install = [*apt, "install", "-y", "--no-install-recommends"]
        try:
            run_logged([*apt, "update"], log, hint)
            if wanted:
                run_logged([*install, *wanted], log, hint)
        except StepError as error:
            current.skip(f"{error}; {error.hint}")
            return missing()
        current.result = f"installed {', '.join(wanted)}" if wanted else "all required packages installed"
        if extra:
            try:
                run_logged([*install, *extra], log, "")
                current.result += f"; for tests: {', '.join(extra)}"
            except StepError:
                current.result += f"; cannot install for tests (optional): {', '.join(extra)}"
    return missing()
