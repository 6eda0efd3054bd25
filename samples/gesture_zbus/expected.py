# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints for the recording of ../gesture, computed in Python."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

import tinyml
from tinyml import features

HERE = Path(__file__).resolve().parent
GESTURE = HERE.parent / "gesture"
sys.path[:0] = [str(HERE.parent / "common"), str(GESTURE)]

from decision import decide
from train import CLASSES, FRONTEND, STRIDE, WINDOW

STILL_RUNS = int(re.findall(r"default (\d+)", (HERE / "Kconfig").read_text())[0])


def main() -> None:
    rate = FRONTEND["rate"]
    samples = np.loadtxt(GESTURE / "replay.csv", delimiter=",", dtype=np.float32)
    rows = features.compute(samples, **FRONTEND)
    starts = range(len(rows) - WINDOW + 1)
    inputs = np.stack([rows[start : start + WINDOW] for start in starts])[:, np.newaxis]
    scores = tinyml.run(GESTURE / "model.onnx", inputs)["scores"]
    idle = CLASSES.index("idle")
    print(f"gesture_zbus: blocks of {STRIDE} samples, {rate} a second")
    runs, rests, first = 0, 0, 0
    while first < len(scores):  # from one rest to the next
        own = scores[first::STRIDE]
        still = 0
        for count, is_idle in enumerate(own.argmax(axis=1) == idle, 1):
            still = still + 1 if is_idle else 0
            if still == STILL_RUNS:
                own = own[:count]
                break
        for found in decide(own, average=3, on=0.8, off=0.5, ignored=[idle]):
            end = first + found.run * STRIDE + WINDOW
            print(f"{end * 100 // rate / 100:.2f} s: {CLASSES[found.class_index]} ({found.percent} %)")
        runs += len(own)
        rests += still == STILL_RUNS
        first += (len(own) - 1) * STRIDE + WINDOW
    print(f"the sensor has stopped: {runs} runs, 0 lost, {rests} rests")


if __name__ == "__main__":
    main()
