# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""samples/mlperf_tiny without Zephyr: the protocol, inputs and results, the features, under sanitizers."""

from __future__ import annotations

import os
import runpy
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.mlperf import SAMPLE, results, run_official
from tinyml.harness.program_build import RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.harness.tools import host_compiler

FUZZED_COMMANDS = 200_000
SOURCE = Path(__file__).parents[1] / "support" / "mlperf_device.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mlperf")
    subprocess.run([sys.executable, SAMPLE / "mel_tables.py", folder / "mel_tables.h"], check=True)
    sources = [SOURCE, *(SAMPLE / "src" / name for name in ("commands.c", "inference.c", "mel.c"))]
    includes = [f"-I{place}" for place in (RUNTIME_INCLUDE, SAMPLE / "src", folder)]
    flags = ["-std=gnu11", "-O1", *WARNINGS, *SANITIZERS, *includes]
    command = [host_compiler().path, *flags, *sources, "-o", folder / "device"]
    subprocess.run([str(word) for word in command], check=True)
    return folder / "device"


def say(program: Path, kind: str, *commands: str) -> list[list[str]]:
    """The lines of each answer, without m-ready."""
    text = "".join(f"{command}%" for command in commands)
    done = subprocess.run(
        [str(program), kind], input=text.encode(), capture_output=True, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    start, *answers, rest = done.stdout.decode().split("m-ready\r\n")
    assert (start, rest) == ("m-init-done\r\n", "")
    return [answer.splitlines() for answer in answers]


def environment() -> dict[str, str]:
    return {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}


def test_identification(program: Path) -> None:
    assert say(program, "values", "name", "profile") == [
        ["m-name-dut-[tests]"],
        ["m-profile-[west-tinyml for MLPerf Tiny]", "m-model-[kws01]"],
    ]


def test_values_are_stored_as_they_are(program: Path) -> None:
    """And given to every run again, although this model overwrites its input."""
    said = say(program, "values", "db load 6", "db 00017fff", "db 80fd", "db print", "infer 3 2", "results")
    assert said[0] == ["m-[Expecting 6 bytes]"]
    assert said[1:3] == [[], ["m-load-done"]]
    assert said[3] == ["m-buffer-00-01-7f-ff-80-fd"]
    steps = ["m-warmup-start-2", "m-warmup-done", "m-infer-start-3", "m-lap-us-0", "m-lap-us-1"]
    assert said[4][:-1] == [*steps, "m-infer-done"]
    stored = np.array([0, 1, 127, -1, -128, -3])
    assert results(said[4]) == results(said[5]) == ((stored + 3) * 0.5).tolist()


def test_pixels_are_shifted_for_int8(program: Path) -> None:
    said = say(program, "pixels", "db load 6", "db 0001807fff10", "infer 1 0")
    stored = np.array([0, 1, 128, 127, 255, 16]) - 128
    assert results(said[2]) == ((stored + 3) * 0.5).tolist()


def test_floats_are_quantised_and_the_result_is_an_error(program: Path) -> None:
    values = [0.0, 0.6, -0.6, 64.0, -1000.0, 65.0]
    sent = struct.pack("<6f", *values).hex()
    said = say(program, "floats", "db load 24", f"db {sent}", "infer 1 0")
    kept = np.array([0.0, 0.5, -0.5, 64.0, -62.5, 65.0])
    assert results(said[2])[0] == pytest.approx(np.mean((kept - np.array(values)) ** 2), rel=1e-6)
    values[4] = -1.0
    said = say(program, "floats", "db load 24", f"db {struct.pack('<6f', *values).hex()}", "infer 1 0")
    kept[4] = -1.0
    expected = np.mean((kept - np.array(values)) ** 2)
    assert results(said[2])[0] == pytest.approx(expected, abs=1e-5)


WRONG = {
    "db": "db takes load, print or hexadecimal digits",
    "db load": "db load takes a number of bytes from 1 to 6",
    "db load 7": "db load takes a number of bytes from 1 to 6",
    "db load 4x": "db load takes a number of bytes from 1 to 6",
    "db 0": "A byte has two hexadecimal digits",
    "db 0g": "Not a hexadecimal digit at 1",
    "db 00": "Bytes that no db load announced",
    "infer 0": "infer takes the number of runs, and that of runs to warm up",
    "infer 1 -1": "infer takes the number of runs, and that of runs to warm up",
    "what": "Unknown command: what",
    "x" * 81: "Unknown command: too long",
}


def test_wrong_commands(program: Path) -> None:
    assert say(program, "values", *WRONG) == [[f"e-[{text}]"] for text in WRONG.values()]


def test_missing_data_are_reported(program: Path) -> None:
    said = say(program, "values", "db load 6", "db 00", "infer 1 0")
    assert said[2][0] == "e-[The model takes 6 bytes; 1 were loaded]"


def test_any_bytes(program: Path) -> None:
    command = [str(program), "fuzz", "5", str(FUZZED_COMMANDS)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.endswith(f"{FUZZED_COMMANDS} commands\n")


def test_features(program: Path) -> None:
    """The C against numpy, on noise, silence, a tone and a step."""
    rng = np.random.default_rng(3)
    tone = 12000 * np.sin(2 * np.pi * 440 * np.arange(4096) / 16000)
    parts = [rng.normal(0, 3000, 4096), np.zeros(2048), tone, np.full(1024, 32767.0)]
    samples = np.concatenate(parts).astype("<i2")
    done = subprocess.run([str(program), "mel"], input=samples.tobytes(), capture_output=True, check=True)
    found = np.frombuffer(done.stdout, np.float32).reshape(-1, 40)
    expected = runpy.run_path(str(SAMPLE / "mel_tables.py"))["rows"](samples)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 1e-4
    assert 0.2 < expected.max() <= 1  # it is not silence that was compared


def test_the_runner_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"main\.py does not exist: give a checkout of github"):
        run_official(tmp_path, ["--dut", "none"], "a", tmp_path, tmp_path)
