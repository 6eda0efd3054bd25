# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where this installation has its parts outside Python: in a clone beside the package, else inside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tinyml.base.errors import ToolError

PACKAGE = Path(__file__).resolve().parents[1]
CLONE = PACKAGE.parents[1]
INSTALLED = PACKAGE / "module"  # setup.py copies it there


def zephyr_module() -> Path | None:
    """The folder that Zephyr takes as a module; None if this copy of the package is incomplete."""
    for folder in (CLONE, INSTALLED):
        if (folder / "zephyr" / "module.yml").is_file():
            return folder
    return None


def gdb_commands() -> Path:
    """The script that GDB sources."""
    return Path(__file__).parents[1] / "harness" / "gdb_commands.py"


def cmake_package() -> Path:
    """The folder with tinymlConfig.cmake."""
    return PACKAGE / "projects" / "cmake_package"


def platformio_hook() -> Path:
    """The script for `extra_scripts`."""
    for folder in (CLONE / "plugin", INSTALLED):
        if (hook := folder / "platformio_hook.py").is_file():
            return hook
    raise incomplete()


def runtime() -> Path:
    """The C that ships, with its headers in ``include``."""
    return PACKAGE / "runtime"


def for_pip(extras: Sequence[str] = ()) -> str:
    """This project as an argument for pip: the clone it runs from, or its name."""
    name = f"-e {CLONE}" if (CLONE / "pyproject.toml").is_file() else "west-tinyml"
    return f"{name}[{','.join(extras)}]" if extras else name


def incomplete() -> ToolError:
    return ToolError(
        f"{PACKAGE} has neither the Zephyr module nor the PlatformIO hook: this copy is incomplete",
        "pip install --force-reinstall west-tinyml",
    )
