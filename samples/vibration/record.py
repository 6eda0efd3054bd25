# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Synthesise the vibration of a motor with an accelerometer on it.

    python record.py [FOLDER]

writes FOLDER/normal/<number>.csv (default: recordings), to train with, the same for bearing and imbalance, to
test with, and replay.csv, which the emulated sensor plays. A line is one sample of x, y and z in m/s², 400
of them a second.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
RATE = 400
GRAVITY = 9.81
SECONDS = 4
COUNTS = {"normal": 60, "imbalance": 10, "bearing": 10}
SCRIPT = (("normal", 3), ("imbalance", 2), ("normal", 2), ("bearing", 2), ("normal", 1))  # of replay.csv
Samples = npt.NDArray[np.float64]


def recording(state: str, seconds: float, random: np.random.Generator) -> Samples:
    """A motor that turns 23 to 27 times a second, its harmonics, gravity and noise."""
    time = np.arange(int(seconds * RATE)) / RATE
    turns = random.uniform(23, 27)
    angle = 2 * np.pi * turns * time + random.uniform(0, 2 * np.pi)
    size = random.uniform(0.8, 1.2) * (3.0 if state == "imbalance" else 1.0)
    out = random.normal(0, random.uniform(0.15, 0.25), (len(time), 3))
    out[:, 0] += size * np.cos(angle)
    out[:, 1] += size * np.sin(angle)
    for harmonic, share in ((2, 0.4), (4, 0.25)):
        out += (
            share
            * random.uniform(0.8, 1.2, 3)
            * np.sin(harmonic * angle + random.uniform(0, 6, 3)[0])[:, None]
        )
    if state == "bearing":  # a damaged ball hits the ring 3.6 times in a turn, and the housing rings
        phase = (3.6 * turns * time + random.uniform()) % 1 / (3.6 * turns)
        ring = random.uniform(3, 5) * np.exp(-phase / 0.004) * np.sin(2 * np.pi * 150 * phase)
        out += ring[:, None] * [0.7, 0.7, 1.0]
    out[:, 2] += GRAVITY
    return np.clip(out, -32.0, 32.0)


def save(path: Path, samples: Samples) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, samples, fmt="%.2f", delimiter=",")


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else HERE / "recordings"
    random = np.random.default_rng(21)
    for state, count in COUNTS.items():
        for number in range(count):
            save(folder / state / f"{number:02}.csv", recording(state, SECONDS, random))
    print(f"{sum(COUNTS.values())} recordings -> {folder}")
    random = np.random.default_rng(77)
    replay = np.concatenate([recording(state, seconds, random) for state, seconds in SCRIPT])
    save(HERE / "replay.csv", replay)
    print(f"{len(replay) / RATE:g} seconds -> replay.csv")


if __name__ == "__main__":
    main(sys.argv[1:])
