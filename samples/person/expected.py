# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints for replay.png, computed in Python: ``python expected.py``."""

from __future__ import annotations

import sys

import numpy as np
from train import CLASSES, HERE, shrunk

import tinyml

sys.path.insert(0, str(HERE.parent / "common"))
sys.path.insert(0, str(HERE.parents[1] / "zephyr_module" / "scripts"))

from decision import FULL
from drawing import HEIGHT, WIDTH
from greys import read_png

RATE = 5  # pictures a second
AVERAGE, ON, OFF = 2, 0.8, 0.5


def main() -> None:
    values, width = read_png(HERE / "replay.png")
    strip = np.frombuffer(values, np.uint8).reshape(HEIGHT, width // WIDTH, WIDTH).swapaxes(0, 1)
    pixels = np.rint(shrunk(strip) * 255).astype(int) - 128  # as int8, which the model takes
    scores = (tinyml.run(HERE / "model.onnx", pixels.astype(np.int8))["scores"] + 128.0) / 256
    print(f"person: pictures of {WIDTH}x{HEIGHT}, {RATE} a second")
    there = False
    counted = np.trunc(scores[:, CLASSES.index("person")].astype(np.float32) * FULL).astype(int)
    for run in range(len(counted)):
        average = counted[max(run - AVERAGE + 1, 0) : run + 1].sum() // AVERAGE
        if (average < int(OFF * FULL)) if there else (average >= int(ON * FULL)):
            there = not there
            who = "somebody" if there else "nobody"
            print(f"{(run + 1) / RATE:.1f} s: {who} is there ({average * 100 // FULL} %)")
    print(f"the camera has stopped: {len(strip)} pictures, 0 lost")


if __name__ == "__main__":
    main()
