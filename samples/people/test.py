# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Precision and recall of a model on test.npz: ``python test.py [model.onnx]``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from train import HERE, matches

import tinyml


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "model.onnx"
    with np.load(HERE / "test.npz") as data:
        inputs, boxes = data["input"], data["boxes"]
    outputs = tinyml.run(path, inputs)
    hits = found = people = 0
    for row, there in enumerate(boxes):
        count = int(outputs["boxes_count"].reshape(-1)[row])
        right = there[there[:, 3] > 0]
        hits += matches(outputs["boxes"].reshape(len(boxes), -1, 4)[row, :count], right)
        found += count
        people += len(right)
    print(f"{path.name}: {people} people, {found} boxes, {hits} of them right")
    print(f"precision {100 * hits / found:.1f} %, recall {100 * hits / people:.1f} %")


if __name__ == "__main__":
    main()
