# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw people and things in front of a background, as a camera would see them.

People are drawn from a head, a trunk, two arms and two legs, in random sizes, poses and greys; trees, lamps,
boxes, balls, tables and dogs are not people.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

WIDTH, HEIGHT = 80, 64  # of the camera
Picture = npt.NDArray[np.float64]
Random = np.random.Generator
Point = tuple[float, float]

ACROSS, DOWN = np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5)


class Canvas:
    """A picture in greys from 0 to 1; shapes have soft edges, one pixel wide."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture.copy()

    def paint(self, outside: Picture, grey: float) -> None:
        """Paint where the distance to a shape is below zero."""
        cover = np.clip(0.5 - outside, 0.0, 1.0)
        self.picture += cover * (grey - self.picture)

    def stroke(self, start: Point, end: Point, radius: float, grey: float) -> None:
        """A line with round ends."""
        along = np.array(end) - np.array(start)
        length = float(along @ along)
        share = ((ACROSS - start[0]) * along[0] + (DOWN - start[1]) * along[1]) / max(length, 1e-9)
        share = np.clip(share, 0.0, 1.0)
        distance = np.hypot(ACROSS - start[0] - share * along[0], DOWN - start[1] - share * along[1])
        self.paint(distance - radius, grey)

    def ball(self, centre: Point, radius: float, grey: float) -> None:
        self.stroke(centre, centre, radius, grey)

    def box(self, left: float, top: float, right: float, bottom: float, grey: float) -> None:
        self.paint(np.maximum.reduce([left - ACROSS, ACROSS - right, top - DOWN, DOWN - bottom]), grey)


def person(canvas: Canvas, x: float, ground: float, size: float, grey: float, random: Random) -> None:
    """``size``: the height from foot to crown."""
    skin, trousers = (np.clip(grey + random.uniform(-0.15, 0.15), 0, 1) for _ in range(2))
    lean, swing = random.uniform(-0.04, 0.04), random.uniform(0.02, 0.16)
    hip, neck = (x, ground - 0.47 * size), (x + lean * size, ground - 0.82 * size)
    for side in (-1, 1):
        foot = (x + side * swing * size, ground)
        canvas.stroke(hip, foot, 0.055 * size, trousers)
        shoulder = (neck[0] + side * 0.09 * size, neck[1] + 0.04 * size)
        reach, angle = 0.36 * size, random.uniform(0.05, 1.2) if random.random() < 0.85 else 2.6
        hand = (shoulder[0] + side * reach * np.sin(angle), shoulder[1] + reach * np.cos(angle))
        canvas.stroke(shoulder, hand, 0.035 * size, grey)
    canvas.stroke(hip, (neck[0], neck[1] + 0.04 * size), random.uniform(0.085, 0.12) * size, grey)
    canvas.ball((neck[0] + lean * size, ground - 0.92 * size), random.uniform(0.07, 0.085) * size, skin)


def tree(canvas: Canvas, x: float, ground: float, size: float, grey: float, random: Random) -> None:
    canvas.stroke((x, ground), (x, ground - 0.5 * size), random.uniform(0.03, 0.07) * size, grey)
    for _ in range(random.integers(2, 5)):
        centre = (x + random.uniform(-0.15, 0.15) * size, ground - random.uniform(0.6, 0.8) * size)
        canvas.ball(centre, random.uniform(0.15, 0.25) * size, grey)


def lamp(canvas: Canvas, x: float, ground: float, size: float, grey: float, random: Random) -> None:
    canvas.stroke((x, ground), (x, ground - 0.9 * size), random.uniform(0.015, 0.04) * size, grey)
    if random.random() < 0.5:
        canvas.ball((x, ground - 0.92 * size), random.uniform(0.05, 0.1) * size, grey)
    else:
        arm = random.choice([-1, 1]) * random.uniform(0.15, 0.3) * size
        canvas.stroke((x, ground - 0.9 * size), (x + arm, ground - 0.93 * size), 0.03 * size, grey)


def box(canvas: Canvas, x: float, ground: float, size: float, grey: float, random: Random) -> None:
    wide, high = random.uniform(0.1, 0.5) * size, random.uniform(0.3, 1.0) * size
    canvas.box(x - wide / 2, ground - high, x + wide / 2, ground, grey)


def ball(canvas: Canvas, x: float, ground: float, size: float, grey: float, random: Random) -> None:
    radius = random.uniform(0.1, 0.3) * size
    canvas.ball((x, ground - radius), radius, grey)


def table(canvas: Canvas, x: float, ground: float, size: float, grey: float, random: Random) -> None:
    wide, high = random.uniform(0.2, 0.4) * size, random.uniform(0.3, 0.5) * size
    canvas.stroke((x - wide, ground - high), (x + wide, ground - high), 0.04 * size, grey)
    for side in (-0.9, 0.9):
        canvas.stroke((x + side * wide, ground), (x + side * wide, ground - high), 0.03 * size, grey)


def dog(canvas: Canvas, x: float, ground: float, size: float, grey: float, random: Random) -> None:
    size *= random.uniform(0.5, 0.8)
    ahead = random.choice([-1, 1])
    back, front = (x - ahead * 0.3 * size, ground - 0.4 * size), (x + ahead * 0.3 * size, ground - 0.4 * size)
    canvas.stroke(back, front, 0.1 * size, grey)
    canvas.ball((front[0] + ahead * 0.15 * size, front[1] - 0.15 * size), 0.11 * size, grey)
    canvas.stroke(back, (back[0] - ahead * 0.15 * size, back[1] - 0.15 * size), 0.03 * size, grey)
    for start in (back, front):
        for step in (-0.06, 0.06):
            canvas.stroke(start, (start[0] + step * size, ground), 0.035 * size, grey)


Thing = Callable[[Canvas, float, float, float, float, Random], None]
THINGS: tuple[Thing, ...] = (tree, lamp, box, ball, table, dog)


def background(random: Random) -> tuple[Picture, float]:
    """A wall or a sky above a floor, and where the floor begins."""
    horizon = random.uniform(0.45, 0.8) * HEIGHT
    light = random.uniform(0.2, 0.9)
    picture = np.full((HEIGHT, WIDTH), light) + random.uniform(-0.15, 0.15) * (ACROSS / WIDTH - 0.5)
    canvas = Canvas(picture)
    canvas.box(-9, horizon, WIDTH + 9, HEIGHT + 9, light + random.uniform(-0.25, 0.25))
    for _ in range(random.integers(0, 4)):  # windows, doors
        left, top = random.uniform(-5, WIDTH), random.uniform(-5, horizon - 10)
        high = min(random.uniform(8, 30), horizon - top)
        canvas.box(left, top, left + random.uniform(5, 30), top + high, light + random.uniform(-0.12, 0.12))
    return canvas.picture, horizon


def place(thing: Thing, canvas: Canvas, horizon: float, random: Random, x: float | None = None) -> None:
    """Somewhere in front of the background, in a grey that differs from it."""
    size = random.uniform(0.5, 0.85) * HEIGHT
    ground = random.uniform(max(horizon, size + 2), HEIGHT - 1)
    x = random.uniform(20, WIDTH - 20) if x is None else x
    near = float(canvas.picture[int(ground - size / 2), int(np.clip(x, 0, WIDTH - 1))])
    away = random.uniform(0.25, 0.5)
    grey = near + away if near < 0.3 or (near < 0.7 and random.random() < 0.5) else near - away
    thing(canvas, x, ground, size, float(np.clip(grey, 0, 1)), random)


def exposed(picture: Picture, random: Random) -> npt.NDArray[np.uint8]:
    """What the sensor gives: with noise, in 256 greys."""
    noisy = picture + random.normal(0, random.uniform(0.01, 0.04), picture.shape)
    return np.clip(np.rint(255 * noisy), 0, 255).astype(np.uint8)


def png(picture: npt.NDArray[np.uint8]) -> bytes:
    """A picture in 256 greys as a PNG file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = picture.shape
    lines = b"".join(b"\0" + line.tobytes() for line in picture)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    signature = b"\x89PNG\r\n\x1a\n"
    return signature + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
