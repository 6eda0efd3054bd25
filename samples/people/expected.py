# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints for replay.png, computed in Python: ``python expected.py``."""

from __future__ import annotations

import sys

import numpy as np
from train import COLUMNS, HERE, ROWS, Array, shrunk

import tinyml

sys.path.insert(0, str(HERE.parent / "common"))
sys.path.insert(0, str(HERE.parents[1] / "zephyr_module" / "scripts"))

from drawing import HEIGHT, WIDTH
from greys import read_png

RATE = 2  # pictures a second
GREYS = "#*=:. "


def drawn(pixels: Array, boxes: list[list[int]]) -> list[str]:
    """The picture as text, two rows in a line, with the outlines of boxes."""
    sums = pixels.reshape(ROWS // 2, 2, COLUMNS).sum(axis=1) + 256
    lines = [[GREYS[value * len(GREYS) // 511] for value in line] for line in sums.tolist()]
    for box in boxes:
        left, right = (min(max(box[i], 0), COLUMNS - 1) for i in (0, 2))
        top, bottom = (min(max(int(box[i] / 2), 0), ROWS // 2 - 1) for i in (1, 3))
        for x in range(left, right + 1):
            lines[top][x] = lines[bottom][x] = "-"
        for line in range(top, bottom + 1):
            lines[line][left] = lines[line][right] = "+" if line in (top, bottom) else "|"
    return ["  |" + "".join(line) + "|" for line in lines]


def main() -> None:
    values, width = read_png(HERE / "replay.png")
    strip = np.frombuffer(values, np.uint8).reshape(HEIGHT, width // WIDTH, WIDTH).swapaxes(0, 1)
    pixels = np.rint(shrunk(strip) * 255).astype(int) - 128  # as int8, which the model takes
    outputs = tinyml.run(HERE / "model.onnx", pixels.astype(np.int8))
    print(f"people: pictures of {WIDTH}x{HEIGHT}, {RATE} a second")
    before = 0
    for run in range(len(strip)):
        count = int(outputs["boxes_count"].reshape(-1)[run])
        found = outputs["boxes"].reshape(len(strip), -1, 4)[run, :count]
        scores = outputs["scores"].reshape(len(strip), -1)[run]
        print(f"{(run + 1) / RATE:.1f} s: {count} {'person' if count == 1 else 'people'}")
        boxes = []
        for (x, y, across, down), score in zip(found, scores, strict=False):
            half = across / np.float32(2), down / np.float32(2)
            boxes.append([int(x - half[0]), int(y - half[1]), int(x + half[0]), int(y + half[1])])
            left, top, right, bottom = boxes[-1]
            percent = int(score * np.float32(100))
            print(f"  columns {left} to {right}, rows {top} to {bottom} ({percent} %)")
        if count not in (0, before):
            print("\n".join(drawn(pixels[run, 0], boxes)))
        before = count
    print(f"the camera has stopped: {len(strip)} pictures, 0 lost")


if __name__ == "__main__":
    main()
