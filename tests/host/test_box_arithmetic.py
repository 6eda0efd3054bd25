# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""runtime/boxes/real.h: what cores without an FPU compute in integers equals floats, bit for bit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, WARNINGS
from tinyml.harness.tools import host_compiler

PROGRAM = Path(__file__).parents[1] / "support" / "box_arithmetic.c"
PAIRS = 1_000_000


def compare(folder: Path, source: Path, *more: str) -> subprocess.CompletedProcess[str]:
    image = folder / "compare"
    flags = ["-std=c11", "-O2", "-ffp-contract=off", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    paths = [f"-I{source}", f"-I{RUNTIME_C}", f"-I{RUNTIME_INCLUDE}"]
    subprocess.run(
        [host_compiler().path, *flags, *more, *WARNINGS, *paths, PROGRAM, "-o", image],
        check=True,
        timeout=120,
    )
    return subprocess.run([image, str(PAIRS)], check=False, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("divides", [False, True])
def test_equal_to_floats(divides: bool, tmp_path: Path) -> None:
    """Without and with an instruction that divides, as on a Cortex-M0 and on a Cortex-M3."""
    done = compare(tmp_path, RUNTIME_C, *(["-D__ARM_FEATURE_IDIV=1"] if divides else []))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_rounding_that_is_wrong_is_found(tmp_path: Path) -> None:
    """The seeded fault: ties go up instead of to even."""
    (tmp_path / "boxes").mkdir()
    text = (RUNTIME_C / "boxes/real.h").read_text(encoding="utf-8")
    assert text.count("(kept & 0xffu) + (bits & 1u) > 0x80u") == 1
    wrong = text.replace("(kept & 0xffu) + (bits & 1u) > 0x80u", "(kept & 0xffu) > 0x7fu")
    (tmp_path / "boxes/real.h").write_text(wrong, encoding="utf-8")
    assert compare(tmp_path, tmp_path).returncode == 1
