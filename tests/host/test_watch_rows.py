# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Watched models whose input arrives in rows count what they count of the whole input."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import tinyml
from tests.support.programs import build_program
from tests.support.quantizing import FLOAT, digits, write_calibration
from tests.support.watching import in_numpy, rows_of, without_cycles
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.pipeline import Options, compile_model

MAIN = """
#include <stdio.h>
#include <string.h>
#include "fed.h"
#include "whole.h"

static float image[FED_ROWS][FED_ROW_ELEMENTS];
static unsigned int state = 1;

/* The counters of both are the same structure, and so are the same counts. */
static int differ(void)
{
	_Static_assert(sizeof(struct fed_watch) == sizeof(struct whole_watch), "the same counters");
	return memcmp(fed_watch(), whole_watch(), sizeof(struct fed_watch)) != 0;
}

int main(void)
{
	for (int run = 0; run < 40; run++) {
		for (unsigned int i = 0; i < FED_ROWS * FED_ROW_ELEMENTS; i++) {
			state = state * 1103515245u + 12345u;
			image[i / FED_ROW_ELEMENTS][i % FED_ROW_ELEMENTS] = (float)(state >> 16 & 255u) / 200.0f - 0.1f;
		}
		memcpy(whole_input(), image, sizeof(image));
		if (whole_run() != 0 || fed_begin() != 0) {
			return 1;
		}
		for (int row = 0, count = run % 3 + 1; row < FED_ROWS; row += count) {
			count = count < FED_ROWS - row ? count : FED_ROWS - row;
			if (fed_feed_rows(image[row], (size_t)count) != FED_ROWS - row - count) {
				return 2;
			}
		}
		if (differ()) {
			return 3;
		}
	}
	fed_begin();
	fed_feed_rows(image[0], 3);
	if (fed_begin() != 0 || fed_watch()->totals.errors != 1 || fed_watch()->totals.runs != 40) {
		return 4; /* a run that was given up */
	}
	fed_watch_reset();
	whole_watch_reset();
	memcpy(whole_input(), image, sizeof(image));
	return fed_feed_rows(image[0], FED_ROWS) != 0 || whole_run() != 0 || differ() ? 5 : 0;
}
"""


@pytest.fixture(scope="module")
def int8_digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    tinyml.quantize(FLOAT, write_calibration(folder)).save(folder / "digits8.onnx")
    return folder / "digits8.onnx"


@pytest.mark.parametrize("per_element", [1, 3, 5])
def test_the_same_counters(
    int8_digits: Path, tmp_path: Path, per_element: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where one element in three is counted, and rows end between those that are."""
    monkeypatch.setattr("tinyml.watch.plan.FEWEST_ELEMENTS", {1: 64, 3: 32, 5: 16}[per_element])
    files = {"main.c": MAIN}
    sources: set[str] = set()
    for name, io in (("fed", "rows"), ("whole", "arena")):
        made = compile_model(int8_digits, Options(target="host", name=name, io=io, watch=True))
        assert made.watch is not None
        assert made.watch.inputs[0].stride == per_element
        files |= made.files
        sources |= set(made.summary["sources"]["runtime"])
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    mine = [tmp_path / name for name in files if name.endswith(".c")]
    parts = [*mine, *(RUNTIME_C / name for name in sorted(sources))]
    flags = ("-std=c11", "-O1", *WARNINGS, *SANITIZERS)
    subprocess.run([build_program(tmp_path / "program", parts, flags, (RUNTIME_INCLUDE,))], check=True)


def test_a_device_counts_what_numpy_counts(int8_digits: Path) -> None:
    compiled = tinyml.compile(int8_digits, target="host", watch=True, io="rows", name="digits")
    images, _, held_back = digits()
    data = {"image": images[held_back][:30]}
    (name,) = compiled.built.graph.inputs
    data = {name: data["image"].reshape(-1, *compiled.built.graph.tensors[name].shape[1:]).astype("float32")}
    with tinyml.connect("host", model=compiled) as device:
        ran = device.run(None, data)
        counted = device.watch()
    assert without_cycles(counted) == in_numpy(compiled, rows_of(data), ran.runs).cbor
    assert counted.runs == 30
    assert counted.drift is not None


def test_the_memory_is_planned(int8_digits: Path) -> None:
    plain, watched = (
        compile_model(int8_digits, Options(name="m", io="rows", watch=watch)) for watch in (False, True)
    )
    assert watched.watch is not None
    more = watched.summary["state_bytes"] - plain.summary["state_bytes"]
    assert more == watched.watch.ram_bytes + 4, "and the cycles of a run that has begun"
