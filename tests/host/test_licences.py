# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Every source file states its licence and its copyright in its first lines, as SPDX tools expect."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPYRIGHT = "Copyright The west-tinyml contributors"
LICENCE = "SPDX-License-Identifier: "
SUFFIXES = (
    *(".py", ".c", ".h", ".cpp", ".in", ".ld", ".dts", ".dtsi"),
    *(".cmake", ".yaml", ".yml", ".conf", ".ini", ".toml", ".j2"),
)
NAMES = ("CMakeLists.txt", "Makefile")


def is_source(path: Path) -> bool:
    return (
        path.suffix in SUFFIXES
        or path.name in NAMES
        or path.name.startswith("Kconfig")
        or path.name.endswith("_defconfig")
    )


def sources() -> list[Path]:
    """The files that git tracks and that are written in a language with comments."""
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the list of sources needs git and a checkout")
    paths = [ROOT / name for name in done.stdout.split("\0") if name]
    return [path for path in paths if is_source(path) and path.is_file() and path.stat().st_size]


def test_sources_state_their_licence() -> None:
    found = sources()
    assert len(found) > 500
    silent = []
    for path in found:
        head = "\n".join(path.read_text(encoding="utf-8").splitlines()[:4])
        generated = "tests/golden/" in path.as_posix() and path.suffix != ".py"
        if LICENCE not in head or (COPYRIGHT not in head and not generated):
            silent.append(path.relative_to(ROOT).as_posix())
    assert silent == [], f"these files need the lines `{COPYRIGHT}` and `{LICENCE}Apache-2.0` at the top"
