# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints for the recording of ../gesture, computed in Python."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import tinyml

HERE = Path(__file__).resolve().parent
GESTURE = HERE.parent / "gesture"
sys.path[:0] = [str(HERE.parent / "common"), str(GESTURE)]

from decision import decide
from train import CLASSES, FRONTEND, STRIDE, WINDOW, windows


def main() -> None:
    path, rate = GESTURE / "replay.csv", FRONTEND["rate"]
    samples = len(np.loadtxt(path, delimiter=","))
    inputs = windows(path)
    scores = tinyml.run(HERE / "model.onnx", inputs)["scores"]
    print(f"gesture: {rate} samples a second, a run every {STRIDE}")
    for found in decide(scores, average=3, on=0.8, off=0.5, ignored=[CLASSES.index("idle")]):
        seconds = (WINDOW + found.run * STRIDE) * 100 // rate / 100
        print(f"{seconds:.2f} s: {CLASSES[found.class_index]} ({found.percent} %)")
    print(f"the sensor has stopped: {samples} samples, {len(inputs)} runs, 0 lost")


if __name__ == "__main__":
    main()
