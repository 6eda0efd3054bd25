# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Python packages that PlatformIO's Python lacks: named, or installed if the project allows it.

Standard library only, like ``requirements``.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tinyml.base.errors import ToolError
from tinyml.setup.requirements import REQUIREMENTS, missing

OPTION = "custom_tinyml_install"


def install(needed: Mapping[str, str] = REQUIREMENTS, allowed: bool = False) -> list[str]:
    """Install what is missing into this Python, if ``allowed``; returns what that was."""
    wanted = missing(needed)
    if not wanted:
        return []
    if not allowed:
        raise ToolError(
            f"the model compiler requires {', '.join(wanted)}, which PlatformIO's Python does not have",
            f"{_by_hand(wanted)}; or {OPTION} = yes in platformio.ini, and the build installs it",
        )
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    print(f"tinyml: installing {', '.join(wanted)} into PlatformIO's Python", flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    importlib.invalidate_caches()
    still = missing(needed)
    if still:
        reason = (done.stderr or done.stdout).strip().splitlines()
        raise ToolError(
            f"the model compiler requires {', '.join(still)}, and pip could not install it"
            + (f": {reason[-1]}" if reason else ""),
            f"install it yourself: {_by_hand(still)}",
        )
    return wanted


def _by_hand(wanted: Sequence[str]) -> str:
    return " ".join(_quoted(word) for word in [sys.executable, "-m", "pip", "install", *wanted])


def _quoted(word: str) -> str:
    return f'"{word}"' if set(word) & set(" <>=") else word
