# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Train version 1 of the model: the network of the digits sample after three passes over 400 images.

    python train.py

Version 2 is the digits sample's own model, which has seen all of them thirty times.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "digits"))

import train as digits  # the script of the other sample

IMAGES = 400


def main() -> None:
    logging.getLogger().setLevel(logging.ERROR)
    training, held_back = digits.load()
    few = digits.Split(training.images[:IMAGES], training.labels[:IMAGES])
    digits.EPOCHS = 3
    with threadpool_limits(1):
        model = digits.quantize(digits.to_onnx(digits.train(few)), few)
    path = HERE / "model_v1.onnx"
    path.write_bytes(model.SerializeToString(deterministic=True))
    print(f"{path.name}: {100 * digits.accuracy(path, held_back):.2f} % of the held-back images")


if __name__ == "__main__":
    main()
