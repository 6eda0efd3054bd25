# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""<tinyml/values.h>: real numbers into tensors of every type and back, against numpy, under sanitizers."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tinyml.harness.program_build import SANITIZERS

RUNTIME = Path(__file__).resolve().parents[2] / "plugin" / "tinyml" / "runtime" / "include"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wpedantic", "-Werror"]

# Reads descriptions of tensors, each with real numbers; writes what it stored, and what that reads back as.
# One process for all, because one under sanitizers takes long to start.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <tinyml/values.h>

struct asked {
	uint32_t type, count;
	float scale;
	int32_t zero_point;
};

static int answer(const struct asked *asked)
{
	const uint32_t bytes = (uint32_t)tinyml_type_bytes((uint8_t)asked->type) * asked->count;
	const size_t many = asked->count + 1; /* one more than the tensor has room for */
	float *values = (float *)malloc(many * sizeof(float));
	void *memory = malloc(bytes);
	const struct tinyml_tensor tensor = {
		"t", memory, NULL, bytes, asked->scale, asked->zero_point, (uint8_t)asked->type, 0,
	};

	if (!values || !memory || fread(values, sizeof(float), many, stdin) != many) {
		return 1;
	}
	if (tinyml_set_input(&tensor, values, many) != asked->count) {
		return 2;
	}
	fwrite(memory, 1, bytes, stdout);
	if (tinyml_get_output(&tensor, values, many) != asked->count) {
		return 3;
	}
	fwrite(values, sizeof(float), asked->count, stdout);
	free(values);
	free(memory);
	return 0;
}

int main(void)
{
	struct asked asked;

	while (fread(&asked, sizeof(asked), 1, stdin) == 1) {
		int status = answer(&asked);

		if (status != 0) {
			return status;
		}
	}
	return 0;
}
"""

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
TYPES = ("float32", "float64", *INTEGERS, "bool")  # in the order of enum tinyml_type
ROWS = [
    ("int8", 0.1, -128),
    ("int8", 0.0078125, 0),
    ("uint8", 0.5, 128),
    ("int16", 3.0517578e-05, 0),
    ("uint16", 0.25, 1000),
    ("int32", 1e-4, 0),
]


def awkward(scale: float) -> NDArray[np.float32]:
    """Halves, ends of ranges, far outside, and many others."""
    halves = (np.arange(-40, 40) + 0.5) * scale
    ends = np.array([0.0, -0.0, 1e-30, -1e-30, 1e9, -1e9, 3e9, -3e9, 3e38, -3e38, np.inf, -np.inf, np.nan])
    ends = np.concatenate(
        [
            ends,
            *((s * 2.0**b + d) * scale for s in (-1, 1) for b in (7, 8, 15, 16) for d in (np.arange(-2, 3),)),
        ]
    )
    random = np.random.default_rng(7).normal(0, 100 * scale, 500)
    return np.concatenate([halves, ends, random]).astype(np.float32)


def saturated(steps: NDArray[np.float32], zero_point: int, dtype: str) -> NDArray[np.generic]:
    """numpy's rounding, then the type's ends (NaN the lower); Python's integers do not overflow."""
    info = np.iinfo(dtype)
    high = min(int(info.max), 2**62)
    lowest = np.where(np.isnan(steps), -np.inf, steps)
    whole = [int(np.clip(np.float64(np.rint(x)), -(2.0**62), 2.0**62)) + zero_point for x in lowest]
    return np.array([min(max(w, int(info.min)), high) for w in whole], dtype)


@dataclass(frozen=True)
class Case:
    """A tensor and what goes into it. A scale of 0 is none."""

    dtype: str
    scale: float
    zero_point: int

    @property
    def values(self) -> NDArray[np.float32]:
        return awkward(self.scale or 1.0)

    def question(self) -> bytes:
        head = struct.pack("=IIfi", TYPES.index(self.dtype), self.values.size, self.scale, self.zero_point)
        return head + self.values.tobytes() + bytes(4)


QUANTIZED = [Case(*row) for row in ROWS]
PLAIN = [Case(dtype, 0.0, 0) for dtype in TYPES]
Answers = dict[Case, tuple[NDArray[np.generic], NDArray[np.float32]]]


@pytest.fixture(scope="module", params=["c", "c++"])
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What was stored and what was read back, for all cases. Applications are written in either language."""
    compiler = shutil.which("gcc" if request.param == "c" else "g++")
    if compiler is None:
        pytest.skip(f"no compiler for {request.param}")
    flags = STRICT if request.param == "c" else ["-Wall", "-Wextra", "-Werror"]
    built = tmp_path_factory.mktemp("values") / "values"
    subprocess.run(
        [compiler, *flags, *SANITIZERS, "-x", request.param, f"-I{RUNTIME}", "-", "-o", built],
        input=PROGRAM.encode(),
        check=True,
    )
    cases = [*QUANTIZED, *PLAIN]
    done = subprocess.run(
        [built], input=b"".join(case.question() for case in cases), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    found, at = {}, 0
    for case in cases:
        count = case.values.size
        stored = np.frombuffer(done.stdout, case.dtype, count, at)
        at += stored.nbytes
        found[case] = (stored, np.frombuffer(done.stdout, np.float32, count, at))
        at += 4 * count
    assert at == len(done.stdout)
    return found


@pytest.mark.parametrize("case", QUANTIZED, ids=str)
def test_quantized(answers: Answers, case: Case) -> None:
    stored, read = answers[case]
    with np.errstate(over="ignore"):
        steps = case.values / np.float32(case.scale)
    np.testing.assert_array_equal(stored, saturated(steps, case.zero_point, case.dtype))
    offset = stored.astype(np.int64) - case.zero_point
    np.testing.assert_array_equal(read, offset.astype(np.float32) * np.float32(case.scale))


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_not_quantized(answers: Answers, case: Case) -> None:
    stored, read = answers[case]
    if case.dtype in INTEGERS:
        np.testing.assert_array_equal(stored, saturated(case.values, 0, case.dtype))
    else:
        np.testing.assert_array_equal(stored, case.values.astype(case.dtype))
    np.testing.assert_array_equal(read, stored.astype(np.float32))
