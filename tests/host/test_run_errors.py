# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Runs that refuse: buffers that cannot be used, and constants that are not those of the model."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.support.programs import build_program
from tinyml.emit.checksum import crc_of, stored_bytes
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.pipeline import Options, compile_model

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"
CHECKED = ("-DTINYML_CHECK_WEIGHTS=1",)

# Prints the status of one run for each pair of buffers, and the byte that an output buffer held before.
CALLER = """\
#include <stdio.h>
#include <digits.h>

static char in[DIGITS_INPUT_BYTES + 8] __attribute__((aligned(8)));
static char out[DIGITS_OUTPUT_BYTES + 8] __attribute__((aligned(8)));

static void attempt(void *input, void *output)
{
	int status;

	out[0] = 77;
	status = digits_run((const float *)input, (float *)output); /* compilers order arguments as they like */
	printf("%d %d\\n", status, out[0] == 77);
}

int main(void)
{
	attempt(NULL, out);
	attempt(in, NULL);
	attempt(in + 1, out);
	attempt(in, out + 2);
	attempt(in, out);
	return 0;
}
"""
ARENA = """\
#include <stdio.h>
#include <digits.h>

int main(void)
{
	printf("%d\\n", digits_run());
	printf("%d\\n", digits_run());
	return 0;
}
"""


def said(folder: Path, files: Mapping[str, str], main: str, flags: tuple[str, ...]) -> list[str]:
    """The lines that a program around the model prints."""
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "main.c").write_text(main)
    summary = json.loads(files["digits.json"])
    kernels = [RUNTIME_C / name for name in summary["sources"]["runtime"]]
    sources = [folder / "main.c", folder / "digits.c", *kernels]
    flags = ("-std=c11", "-O1", *WARNINGS, *SANITIZERS, *flags)
    image = build_program(folder / "image", sources, flags, (folder, RUNTIME_INCLUDE, RUNTIME_C))
    done = subprocess.run([image], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def digits(io: str) -> dict[str, str]:
    return dict(compile_model(DIGITS, Options("digits", "host", "portable", io=io)).files)


def test_unusable_buffers_are_refused(tmp_path: Path) -> None:
    """NULL and misaligned ones; nothing is written then."""
    lines = said(tmp_path, digits("caller"), CALLER, ())
    assert lines[:4] == ["-22 1"] * 4
    assert lines[4] == "0 0"


@pytest.mark.parametrize("io,main", [("arena", ARENA), ("caller", CALLER)])
def test_right_constants_pass(tmp_path: Path, io: str, main: str) -> None:
    lines = said(tmp_path, digits(io), main, CHECKED)
    assert lines[-1].split()[0] == "0"


def with_changed_constant(files: dict[str, str]) -> dict[str, str]:
    """The same files with another number in the first table, as damaged flash would have it."""
    weights = files["digits_weights.h"]
    changed = re.sub(r"(= \{\n\t)(-?\d+)", lambda m: f"{m[1]}{int(m[2]) ^ 1}", weights, count=1)
    assert changed != weights
    return {**files, "digits_weights.h": changed}


@pytest.mark.parametrize("flags,status", [(CHECKED, "-5"), ((), "0")])
def test_changed_constants_are_refused(tmp_path: Path, flags: tuple[str, ...], status: str) -> None:
    """Every time, not only at first; and nothing is written."""
    lines = said(tmp_path, with_changed_constant(digits("caller")), CALLER, flags)
    assert lines[4] == (f"{status} 1" if flags else "0 0")
    assert said(tmp_path, with_changed_constant(digits("arena")), ARENA, flags) == [status, status]


def test_bytes_of_tables() -> None:
    """As C stores them, whatever the byte order of the computer and the payload of a NaN."""
    assert stored_bytes(np.array([1, -2], ">i2")) == b"\x01\x00\xfe\xff"
    assert stored_bytes(np.zeros(0, np.float32)) == bytes(4)
    odd = np.array([0xFFC00001], np.uint32).view(np.float32)
    assert stored_bytes(odd) == np.float32(np.nan).tobytes()
    assert crc_of([np.frombuffer(b"1234", np.int8), np.frombuffer(b"56789", np.int8)]) == 0xCBF43926
