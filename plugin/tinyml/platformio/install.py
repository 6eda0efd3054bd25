# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Install missing Python packages into PlatformIO's Python. Standard library only, like ``requirements``."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping

from tinyml.errors import ToolError
from tinyml.requirements import REQUIREMENTS, missing


def install(needed: Mapping[str, str] = REQUIREMENTS) -> list[str]:
    """Install what is missing into this Python; returns what that was."""
    wanted = missing(needed)
    if not wanted:
        return []
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
            "install it yourself: " + " ".join(_quoted(word) for word in [*command[:4], *still]),
        )
    return wanted


def _quoted(word: str) -> str:
    return f'"{word}"' if set(word) & set(" <>=") else word
