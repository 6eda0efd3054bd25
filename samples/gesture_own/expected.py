# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints for replay.csv, computed in Python: ``python expected.py``."""

from __future__ import annotations

import re

import numpy as np
from record import EXAMPLES, FIRST, HERE, LENGTH, PERIOD, TRAIN, compiled, windows

IN_A_ROW = 3
NAMES = (*TRAIN.CLASSES, "your gesture")
OWN, IDLE = len(NAMES) - 1, TRAIN.CLASSES.index("idle")


def main() -> None:
    samples = np.loadtxt(HERE / "replay.csv", delimiter=",", dtype=np.float32)
    inputs = windows(samples)
    ends = TRAIN.WINDOW + TRAIN.STRIDE * np.arange(len(inputs))
    adapted = compiled().adapt()
    content = re.findall(r"0x([0-9a-f]{2})", (HERE / "src" / "known.h").read_text())
    adapted.restore(bytes(int(byte, 16) for byte in content))
    print(f"gesture: {TRAIN.FRONTEND['rate']} samples a second, a run every {TRAIN.STRIDE}")
    learnt = 0
    for example in range(EXAMPLES):
        begin = FIRST + example * PERIOD
        print(f"example {example + 1}: move now")
        inside = (ends - TRAIN.WINDOW >= begin) & (ends <= begin + LENGTH)
        adapted.learn(inputs[inside], np.full(inside.sum(), OWN))
        learnt += int(inside.sum())
    print(f"learnt from {learnt} runs")
    later = ends > FIRST + EXAMPLES * PERIOD
    last, count, announced = -1, 0, IDLE
    for end, found in zip(ends[later], adapted.predict(inputs[later]), strict=True):
        last, count = int(found), count + 1 if found == last else 1
        if count >= IN_A_ROW and last != announced:
            announced = last
            if last != IDLE:
                print(f"{end * 2 // 100}.{end * 2 % 100:02d} s: {NAMES[last]}")
    print(f"the sensor has stopped: {len(samples)} samples, {len(inputs)} runs, 0 lost")


if __name__ == "__main__":
    main()
