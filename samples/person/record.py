# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Synthesise pictures of a camera that watches a place where people pass by.

    python record.py

writes pictures.npz (pictures, labels), to train with, and replay.png, the pictures that the emulated camera
shows, side by side. Replace pictures.npz by pictures of your own to train on real ones.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))

from drawing import THINGS, Canvas, Random, background, exposed, person, place, png, tree

COUNT = 7000


def scene(label: int, random: Random) -> npt.NDArray[np.uint8]:
    picture, horizon = background(random)
    canvas = Canvas(picture)
    for _ in range(random.integers(0 if label else 1, 3)):
        place(THINGS[random.integers(len(THINGS))], canvas, horizon, random)
    if label:
        place(person, canvas, horizon, random)
    return exposed(canvas.picture, random)


def walk(random: Random) -> npt.NDArray[np.uint8]:
    """Somebody walks past a tree, twelve pictures."""
    picture, _ = background(random)
    empty = Canvas(picture)
    tree(empty, 62, 52, 40, 0.25, random)
    pictures = []
    for x in (None, None, None, 22, 30, 38, 46, 54, None, None, None, None):
        canvas = Canvas(empty.picture)
        if x is not None:
            person(canvas, x, 60, 46, 0.12, random)
        pictures.append(exposed(canvas.picture, random))
    return np.stack(pictures)


def main() -> None:
    random = np.random.default_rng(3)
    labels = random.integers(0, 2, COUNT)
    pictures = np.stack([scene(int(label), random) for label in labels])
    np.savez_compressed(HERE / "pictures.npz", pictures=pictures, labels=labels)
    print(f"{COUNT} pictures -> pictures.npz")
    strip = walk(np.random.default_rng(8))
    (HERE / "replay.png").write_bytes(png(np.concatenate(list(strip), axis=1)))
    print(f"{len(strip)} pictures -> replay.png")


if __name__ == "__main__":
    main()
