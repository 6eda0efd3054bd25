# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints for replay.csv, computed in Python: ``python expected.py``."""

from __future__ import annotations

import numpy as np
from train import FRONTEND, HERE, rows_of

import tinyml

AVERAGE, ON, OFF = 3, 0.5, 0.4


def main() -> None:
    path, rate, step = HERE / "replay.csv", FRONTEND["rate"], FRONTEND["step_samples"]
    scores = tinyml.run(HERE / "model.onnx", rows_of(path)[:, np.newaxis])["anomaly"].reshape(-1)
    print(f"vibration: {rate} samples a second, a run every {step}")
    active = False
    for run in range(len(scores)):
        average = scores[max(run - AVERAGE + 1, 0) : run + 1].sum() / AVERAGE
        if (average >= ON) if not active else (average < OFF):
            active = not active
            seconds = (FRONTEND["window_samples"] + run * step) * 100 // rate / 100
            print(f"{seconds:.2f} s: {'vibrates in another way' if active else 'as usual again'}")
    samples = len(np.loadtxt(path, delimiter=","))
    print(f"the sensor has stopped: {samples} samples, {len(scores)} runs, 0 lost")


if __name__ == "__main__":
    main()
