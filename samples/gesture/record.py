# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Synthesise recordings of a hand that holds an accelerometer.

    python record.py [FOLDER]

writes FOLDER/<gesture>/<number>.csv (default: recordings), to train with, and replay.csv, which the emulated
sensor plays. A line is one sample of x, y and z in m/s², 50 of them a second. Replace the folder by
recordings of your own to train on real movements.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
RATE = 50
GRAVITY = 9.81
SECONDS = 4
COUNT = 60  # recordings of each gesture
SCRIPT = ("idle", "wave", "idle", "circle", "idle", "shake", "idle", "wave", "idle")  # of replay.csv
Samples = npt.NDArray[np.float64]


def movement(gesture: str, count: int, random: np.random.Generator) -> Samples:
    """The acceleration of the hand itself, in its own axes."""
    time = np.arange(count) / RATE
    phase = random.uniform(0, 2 * np.pi)
    out = np.zeros((count, 3))
    if gesture == "wave":  # from side to side
        turn = 2 * np.pi * random.uniform(1.6, 2.6) * time + phase
        out[:, 0] = random.uniform(5, 9) * np.sin(turn)
        out[:, 1] = random.uniform(0.5, 1.5) * np.cos(2 * turn)  # the hand swings on an arc
    elif gesture == "circle":
        turn = random.choice([-1, 1]) * 2 * np.pi * random.uniform(0.9, 1.5) * time + phase
        size = random.uniform(3, 6)
        out[:, 0] = size * np.cos(turn)
        out[:, 1] = size * random.uniform(0.8, 1.2) * np.sin(turn)
    elif gesture == "shake":  # up and down, fast
        turn = 2 * np.pi * random.uniform(4.0, 6.0) * time + phase
        out[:, 2] = random.uniform(7, 13) * np.sin(turn)
        out[:, 0] = random.uniform(0, 2) * np.sin(turn + 1)
    else:  # a hand that rests, or drifts slowly
        out += (
            random.uniform(0, 0.8, 3) * np.sin(2 * np.pi * random.uniform(0.1, 0.5) * time + phase)[:, None]
        )
    return out


def recording(gesture: str, count: int, random: np.random.Generator) -> Samples:
    """What the sensor measures: the movement, gravity on a hand that is not quite level, and noise."""
    roll, pitch = random.normal(0, 0.2, 2)
    down = GRAVITY * np.array([np.sin(pitch), -np.cos(pitch) * np.sin(roll), np.cos(pitch) * np.cos(roll)])
    noise = random.normal(0, random.uniform(0.05, 0.3), (count, 3))
    return np.clip(movement(gesture, count, random) + down + noise, -32.0, 32.0)


def save(path: Path, samples: Samples) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, samples, fmt="%.3f", delimiter=",")


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else HERE / "recordings"
    random = np.random.default_rng(11)
    for gesture in dict.fromkeys(SCRIPT):
        for number in range(COUNT):
            save(folder / gesture / f"{number:02}.csv", recording(gesture, SECONDS * RATE, random))
    print(f"{len(set(SCRIPT)) * COUNT} recordings -> {folder}")
    random = np.random.default_rng(99)
    replay = np.concatenate([recording(gesture, 3 * RATE, random) for gesture in SCRIPT])
    save(HERE / "replay.csv", replay)
    print(f"{len(replay) / RATE:g} seconds -> replay.csv")


if __name__ == "__main__":
    main(sys.argv[1:])
