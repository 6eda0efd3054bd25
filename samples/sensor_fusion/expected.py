# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints, computed by onnxruntime: ``python expected.py``."""

from __future__ import annotations

import numpy as np
from train import HERE, shown

from tinyml.reference.session import Session


def main() -> None:
    session = Session(HERE / "models" / "wine.onnx")
    right = 0
    for number, (row, label) in enumerate(zip(*shown(), strict=True)):
        found = session.run({"X": row[np.newaxis]})
        cultivar = int(found["label"][0])
        tenths = int(found["probabilities"][0, cultivar] * np.float32(1000) + np.float32(0.5))
        end = "" if cultivar == label else ", wrong"
        print(f"wine {number}: cultivar {cultivar} ({tenths / 10:.1f} %){end}")
        right += cultivar == label
    print(f"sensor_fusion: {right} of {number + 1} right")


if __name__ == "__main__":
    main()
