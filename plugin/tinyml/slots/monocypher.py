# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Monocypher, which checks signatures on devices, where this computer has its sources."""

from __future__ import annotations

import os
from pathlib import Path

from tinyml.setup.workspace import find_zephyr


def find_monocypher() -> Path | None:
    """Its folder ``src``: that of TINYML_MONOCYPHER, or of a west workspace with the group ``slots``."""
    named = os.environ.get("TINYML_MONOCYPHER")
    zephyr = find_zephyr()
    folder = Path(named) if named else zephyr.parent / "modules" / "crypto" / "monocypher" if zephyr else None
    return folder / "src" if folder and (folder / "src" / "monocypher.c").is_file() else None
