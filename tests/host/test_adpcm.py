# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings with four bits a sample: the emulated microphone plays what scripts read."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tinyml.harness.tools import host_compiler
from tools.watch_figures import sample

ROOT = Path(__file__).parents[2]
adpcm = sample("common", "adpcm")
SCRIPT = ROOT / "zephyr_module" / "scripts" / "recording.py"
PLAYS = """
#include <stdio.h>

#include "replay_adpcm.h"

extern const int16_t it[];
extern const uint32_t it_samples, it_block_samples;

int main(void)
{
	struct replay_adpcm adpcm = {.words = it, .codes = it_block_samples};

	for (uint32_t i = 0; i < it_samples; i++) {
		printf("%d\\n", replay_adpcm_next(&adpcm));
	}
	return 0;
}
"""


COUNT = 3000


def sound() -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    """Quiet, loud, and beyond what a step can follow."""
    random = np.random.default_rng(3)
    tone = 9000 * np.sin(np.arange(COUNT) / 9) * np.linspace(0, 1, COUNT) + random.normal(0, 30, COUNT)
    tone[2000:2040] = np.resize([32767, -32768], 40)
    return np.round(tone).astype(np.int16)


def convert(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), str(file), "out.c", "--name", "it", *options]
    return subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)


def test_a_device_plays_what_python_reads(tmp_path: Path) -> None:
    file = tmp_path / "sound.wav"
    adpcm.save(file, sound(), 16000)
    assert file.stat().st_size < 0.6 * len(sound())
    found = adpcm.load(file)
    assert len(found) == len(sound())
    error = (found - sound().astype(np.float64))[500:1900]
    assert np.square(error).mean() < 0.002 * np.square(sound()[500:1900].astype(np.float64)).mean()
    assert convert(file, "--rate", "16000", "--channels", "1").returncode == 0
    (tmp_path / "plays.c").write_text(PLAYS)
    gcc = str(host_compiler().path)
    words = ["-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", f"-I{ROOT}/zephyr_module/drivers"]
    subprocess.run([gcc, *words, "plays.c", "out.c", "-o", "plays"], cwd=tmp_path, check=True)
    played = subprocess.run([tmp_path / "plays"], capture_output=True, text=True, check=True).stdout
    assert [int(line) for line in played.split()] == found.tolist()


@pytest.mark.parametrize(
    "offset,value,message",
    [
        (22, 2, "has ADPCM of 2 channels and 4 bits; convert it"),
        (24, 8000, "has 8000 samples a second; its node in the devicetree says 16000"),
        (38, 500, "has ADPCM of 1 channels"),
    ],
)
def test_other_recordings_are_refused(offset: int, value: int, message: str, tmp_path: Path) -> None:
    file = tmp_path / "sound.wav"
    adpcm.save(file, sound(), 16000)
    content = bytearray(file.read_bytes())
    struct.pack_into("<H", content, offset, value)
    file.write_bytes(content)
    done = convert(file, "--check", "--rate", "16000")
    assert done.returncode == 1
    assert message in done.stderr
