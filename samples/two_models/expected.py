# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints for ../gesture/replay.csv, computed in Python: ``python expected.py``."""

from __future__ import annotations

import numpy as np
from train import FRONTEND, GESTURE, HERE, WINDOW, windows

import tinyml
from tinyml import features

NAMES = ("circle", "idle", "shake", "wave")
LONG = 64  # samples of the classifier
MOVES, SURE = 0.5, 0.8


def main() -> None:
    path, rate = GESTURE / "replay.csv", FRONTEND["rate"]
    samples = np.loadtxt(path, delimiter=",", dtype=np.float32)
    rows = features.compute(samples, **FRONTEND)
    moves = tinyml.run(HERE / "trigger.onnx", windows(path))["scores"][:, 1] >= MOVES
    ends = (np.arange(len(moves)) + 1) * WINDOW
    asked = [end for end, moving in zip(ends, moves, strict=True) if moving and end >= LONG]
    inputs = np.stack([rows[end - LONG : end] for end in asked])[:, np.newaxis]
    scores = dict(zip(asked, tinyml.run(GESTURE / "model.onnx", inputs)["scores"], strict=True))
    print(f"two_models: the trigger takes {WINDOW} samples, the classifier {LONG}")
    reported = previous = "idle"
    for end, moving in zip(ends, moves, strict=True):
        best = int(scores[end].argmax()) if end in scores else NAMES.index("idle")
        name = NAMES[best]
        if not moving:
            reported = previous = "idle"
            continue
        name = name if end in scores and scores[end][best] >= SURE else "idle"
        if name not in ("idle", reported) and name == previous:
            reported = name
            percent = int(scores[end][best] * np.float32(100))
            print(f"{end * 100 // rate / 100:.2f} s: {name} ({percent} %)")
        previous = name
    print(f"the sensor has stopped: {len(samples)} samples, 0 lost")
    print(f"trigger: {len(moves)} runs; classifier: {len(asked)} runs, 0 skipped")


if __name__ == "__main__":
    main()
