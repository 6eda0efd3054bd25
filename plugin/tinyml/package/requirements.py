# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The Python packages that compiling needs, for builds that run in somebody else's environment.

Standard library only: this module is what looks after the others, so it must load without them.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Mapping

from tinyml.errors import ToolError

REQUIREMENTS = {
    "numpy": "numpy>=1.24",
    "onnx": "onnx>=1.15",
    "tflite": "tflite>=2.10",
    "flatbuffers": "flatbuffers>=23.5",
    "jinja2": "jinja2>=3.1",
    "yaml": "pyyaml>=6.0",
    "rich": "rich>=13.0",
}
"""Module -> the requirement that brings it; a test holds it against pyproject.toml."""

QUANTIZE = {"onnxruntime": "onnxruntime>=1.17"}
"""What making a float model int8 needs besides."""


def missing(needed: Mapping[str, str] = REQUIREMENTS) -> list[str]:
    """The requirements whose modules this Python cannot find."""
    return [wanted for module, wanted in needed.items() if importlib.util.find_spec(module) is None]


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
            f"the model compiler needs {', '.join(still)}, and pip could not install it"
            + (f": {reason[-1]}" if reason else ""),
            "install it yourself: " + " ".join(_quoted(word) for word in [*command[:4], *still]),
        )
    return wanted


def _quoted(word: str) -> str:
    return f'"{word}"' if set(word) & set(" <>=") else word
