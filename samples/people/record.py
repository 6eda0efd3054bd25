# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Synthesise pictures of a place where several people pass by, and where they are.

    python record.py

writes pictures.npz (pictures, boxes), to train with, and replay.png, the pictures that the emulated camera
shows, side by side. Each picture has up to four people; a box is the middle, the width and the height in
pixels, and zeros where there are fewer people. People and things are drawn. Replace
pictures.npz by pictures of your own to train on real ones.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))

from drawing import HEIGHT, THINGS, WIDTH, Canvas, Random, background, exposed, person, place, png

COUNT = 6000
MOST = 4  # people in a picture
PLACES = ((None, None), (8, None), (18, 72), (28, 60), (50, 36), (62, 22), (74, 10), (None, None))
Boxes = npt.NDArray[np.float64]


def box_of(x: float, ground: float, size: float) -> tuple[float, float, float, float]:
    """The middle, the width and the height: hands and feet are about inside."""
    return x, ground - size / 2, 0.42 * size, size


def add_person(canvas: Canvas, x: float, ground: float, size: float, random: Random) -> Boxes:
    near = float(canvas.picture[int(ground - size / 2), int(np.clip(x, 0, WIDTH - 1))])
    away = random.uniform(0.25, 0.5)
    grey = near + away if near < 0.3 or (near < 0.7 and random.random() < 0.5) else near - away
    person(canvas, x, ground, size, float(np.clip(grey, 0, 1)), random)
    return np.array(box_of(x, ground, size))


def scene(random: Random) -> tuple[npt.NDArray[np.uint8], Boxes]:
    picture, horizon = background(random)
    canvas = Canvas(picture)
    for _ in range(random.integers(0, 3)):
        place(THINGS[random.integers(len(THINGS))], canvas, horizon, random)
    boxes = np.zeros((MOST, 4))
    places = random.permutation(np.arange(MOST)) * (WIDTH / MOST) + random.uniform(6, 14)
    for number in range(random.integers(0, MOST + 1)):
        size = random.uniform(0.4, 0.85) * HEIGHT
        ground = random.uniform(size + 2, HEIGHT - 1)
        boxes[number] = add_person(canvas, places[number] + random.uniform(-3, 3), ground, size, random)
    return exposed(canvas.picture, random), boxes


def walk(random: Random) -> npt.NDArray[np.uint8]:
    """Two people walk past each other, one nearer than the other; eight pictures."""
    picture, _ = background(random)
    empty = Canvas(picture)
    pictures = []
    for near, far in (
        (None, None),
        (8, None),
        (18, 72),
        (28, 60),
        (50, 36),
        (62, 22),
        (74, 10),
        (None, None),
    ):
        canvas = Canvas(empty.picture)
        if far is not None:
            person(canvas, far, 50, 34, 0.35, random)
        if near is not None:
            person(canvas, near, 61, 50, 0.12, random)
        pictures.append(exposed(canvas.picture, random))
    return np.stack(pictures)


def main() -> None:
    random = np.random.default_rng(5)
    scenes = [scene(random) for _ in range(COUNT)]
    pictures, boxes = (np.stack(parts) for parts in zip(*scenes, strict=True))
    np.savez_compressed(HERE / "pictures.npz", pictures=pictures, boxes=boxes)
    print(f"{COUNT} pictures -> pictures.npz")
    strip = walk(np.random.default_rng(13))
    (HERE / "replay.png").write_bytes(png(np.concatenate(list(strip), axis=1)))
    print(f"{len(strip)} pictures -> replay.png")


if __name__ == "__main__":
    main()
