# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints for replay.csv, computed in Python: ``python expected.py``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from record import HERE, LEARN_SECONDS, RATE

import tinyml
from tinyml import features

FRONTEND = {
    "kind": "spectral",
    "rate": RATE,
    "axes": 3,
    "window_samples": 128,
    "step_samples": 64,
    "statistics": "std,kurtosis",
    "bands": "10,20,32,64,96,128,200",
    "log": True,
}
WINDOW, STEP = 128, 64
ADAPT = {"kind": "threshold", "sigmas": 4, "least": 16}
MODEL: Path = HERE.parent / "vibration" / "model.onnx"
IN_A_ROW = 2


def main() -> None:
    samples = np.loadtxt(HERE / "replay.csv", delimiter=",", dtype=np.float32)
    rows = features.compute(samples, **FRONTEND)
    ends = WINDOW + STEP * np.arange(len(rows))
    learns = ends <= LEARN_SECONDS * RATE
    compiled = tinyml.compile(MODEL, target="host", name="vibration", adapt=ADAPT)
    adapted = compiled.adapt(rows[learns])
    scores = adapted.run(rows)["anomaly"].reshape(-1)
    print(f"vibration: {RATE} samples a second, a run every {STEP}")
    print(
        f"learnt from {learns.sum()} runs of this motor; the threshold of the training calls "
        f"{(scores[learns] > 0.5).sum()} of them unusual"
    )
    unusual, count = False, 0
    for end, found in zip(ends[~learns], adapted.predict(rows[~learns]), strict=True):
        count = count + 1 if bool(found) != unusual else 0
        if count == IN_A_ROW:
            unusual, count = not unusual, 0
            words = "vibrates in another way" if unusual else "as usual again"
            print(f"{end // RATE}.{end % RATE * 100 // RATE:02d} s: {words}")
    print(f"the sensor has stopped: {len(samples)} samples, {len(rows)} runs, 0 lost")


if __name__ == "__main__":
    main()
