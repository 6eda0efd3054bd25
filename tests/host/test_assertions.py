# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Debug assertions of the runtime: active in sanitized builds, absent from all others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.harness.tools import host_compiler

# A dense layer whose stream of filters is not aligned to words.
PROGRAM = """\
#include <tinyml/dense.h>

static const int32_t filters[8] = {0};
int main(void)
{
	const struct tinyml_dense_stream_s8 p = {
		.inputs = 4, .outputs = 1, .out_min = -128, .out_max = 127,
		.filters = (const int32_t *)(const void *)((const char *)filters + 1),
	};
	int8_t x[4] = {0}, y[1];

	tinyml_dense_s8(&p, x, y);
	return 0;
}
"""


def build(folder: Path, flags: tuple[str, ...], rows: int = 0) -> Path:
    """The program; ``rows`` is 0 where only the assertion is to look at the pointer."""
    source, image = folder / "main.c", folder / "image"
    source.write_text(PROGRAM.replace(".inputs", f".rows = {rows}, .inputs"))
    command = [str(host_compiler().path), "-std=c11", *WARNINGS, *flags, f"-I{RUNTIME_INCLUDE}"]
    kernel = RUNTIME_C / "dense" / "dense_s8.c"
    subprocess.run([*command, str(source), str(kernel), "-o", str(image)], check=True)
    return image


def test_sanitized_builds_check(tmp_path: Path) -> None:
    done = subprocess.run([build(tmp_path, SANITIZERS)], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "dense_stream_s8.h" in done.stderr
    assert "Assertion" in done.stderr


@pytest.mark.parametrize("optimize", ["-O0", "-O2"])
def test_other_builds_do_not(tmp_path: Path, optimize: str) -> None:
    subprocess.run([build(tmp_path, (optimize,))], check=True)
    assert b"Assertion" not in (tmp_path / "image").read_bytes()
