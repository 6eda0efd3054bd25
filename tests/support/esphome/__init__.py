# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where ESPHome is, if it is here: in an environment of its own, because it pins all of its packages."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PARTS = Path(__file__).resolve().parent / "parts"
"""Components for ESPHome's platform ``host``: a microphone that replays a file, and audio without ESP-IDF."""
STAND_INS = Path(__file__).resolve().parent / "stand_ins"
"""The few declarations of ESPHome's that our C++ reads, for a compiler without ESPHome."""


def esphome(*words: object) -> subprocess.CompletedProcess[str]:
    """Run ESPHome: ``esphome`` in the path, or what TINYML_ESPHOME names."""
    program = os.environ.get("TINYML_ESPHOME") or shutil.which("esphome")
    if program is None:
        pytest.skip("esphome is not installed: pip install it elsewhere, and set TINYML_ESPHOME")
    command = [program, *(str(word) for word in words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
