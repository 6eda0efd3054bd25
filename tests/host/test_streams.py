# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Windows, rings and decisions in C, under sanitizers; and their headers as C++ applications include them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import build_program
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS

PROGRAM = Path(__file__).parents[1] / "streams" / "streams.c"
SOURCES = [RUNTIME_C / "signal" / f"{name}.c" for name in ("sliding", "ring", "decision")]


def test_windows_rings_and_decisions(tmp_path: Path) -> None:
    image = tmp_path / "streams"
    flags = ("-std=c11", "-O1", "-pthread", *WARNINGS, *SANITIZERS)
    build_program(image, [PROGRAM, *SOURCES], flags, (RUNTIME_INCLUDE,))
    done = subprocess.run([str(image)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_headers_are_fine_in_cpp(tmp_path: Path) -> None:
    source = tmp_path / "application.cpp"
    headers = ("stream", "decision", "micro_frontend")
    source.write_text(
        "".join(f"#include <tinyml/{name}.h>\n" for name in headers) + "int main() { return 0; }\n"
    )
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Werror", f"-I{RUNTIME_INCLUDE}", "-fsyntax-only"]
    subprocess.run(["g++", *flags, str(source)], check=True)
