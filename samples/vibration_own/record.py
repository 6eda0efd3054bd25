# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Synthesise another motor than those of the training: larger, so that its healthy vibration is stronger.

    python record.py

writes replay.csv, which the emulated sensor plays: a healthy motor, which the device learns from and then
watches, with an imbalance and a damaged bearing in between. It is one motor: speed and size stay the same.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
RATE, GRAVITY = 400, 9.81
TURNS, SIZE, NOISE = 26.4, 1.8, 0.2
LEARN_SECONDS = 4
SCRIPT = (
    ("normal", LEARN_SECONDS),
    ("normal", 2),
    ("imbalance", 1.5),
    ("normal", 1.5),
    ("bearing", 1.5),
    ("normal", 1.5),
)
SEED = 3


def recording(state: str, seconds: float, start: float, random: np.random.Generator) -> np.ndarray:
    """As samples/vibration has it, from a time on."""
    time = start + np.arange(int(seconds * RATE)) / RATE
    angle = 2 * np.pi * TURNS * time
    size = SIZE * (3.0 if state == "imbalance" else 1.0)
    out = random.normal(0, NOISE, (len(time), 3))
    out[:, 0] += size * np.cos(angle)
    out[:, 1] += size * np.sin(angle)
    for harmonic, share in ((2, 0.4), (4, 0.25)):
        out += share * np.sin(harmonic * angle + harmonic)[:, np.newaxis]
    if state == "bearing":  # a damaged ball hits the ring 3.6 times in a turn, and the housing rings
        phase = (3.6 * TURNS * time) % 1 / (3.6 * TURNS)
        ring = 4 * np.exp(-phase / 0.004) * np.sin(2 * np.pi * 150 * phase)
        out += ring[:, np.newaxis] * [0.7, 0.7, 1.0]
    out[:, 2] += GRAVITY
    return np.clip(out, -32.0, 32.0)


def main() -> None:
    random, parts, start = np.random.default_rng(SEED), [], 0.0
    for state, seconds in SCRIPT:
        parts.append(recording(state, seconds, start, random))
        start += seconds
    samples = np.concatenate(parts)
    np.savetxt(HERE / "replay.csv", samples, fmt="%.2f", delimiter=",")
    print(f"{len(samples) / RATE:g} seconds -> replay.csv")


if __name__ == "__main__":
    main()
