# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Looks for small networks that recognise gestures: as accurate and as fast as possible, within a budget.

    python samples/gesture/record.py
    python samples/gesture/search.py --trials 40 --storage gesture.journal --plot gesture.svg

Started several times with the same storage, the processes share the work.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from threadpoolctl import threadpool_limits  # comes with scikit-learn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))

from network import Conv, Dense, Flatten, Layer, Relu, cross_entropy, forward, to_onnx, train
from searching import arguments, search
from train import CLASSES, SEED, WINDOW, load

LAYERS = 3


def network(trial) -> list[Layer]:
    """Convolutions over time, the first one over the three axes too; each but the first halves the length."""
    random = np.random.default_rng(SEED)
    taps = trial.suggest_int("taps", 3, 7, step=2)
    layers: list[Layer] = []
    before, length = 1, WINDOW
    for i in range(LAYERS):
        width = trial.suggest_int(f"width{i}", 2, 24, log=True)
        stride = 1 if i == 0 else 2
        kernel = (taps, 3 if i == 0 else 1)
        layers += [Conv(f"conv{i}", (before, width), kernel, (stride, 1), random=random), Relu()]
        before, length = width, (length - taps) // stride + 1
    return [*layers, Flatten(), Dense("dense", before * length, len(CLASSES), random=random)]


def as_model(layers: list[Layer]) -> onnx.ModelProto:
    return to_onnx(layers, "gesture", ([1, 1, WINDOW, 3], [1, len(CLASSES)]), "scores", last="Softmax")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--recordings", type=Path, default=HERE / "recordings", metavar="FOLDER")
    parser.add_argument("--epochs", type=int, default=6, help="of training (default: 6)")
    args = parser.parse_args()
    inputs, labels, held_back = load(args.recordings)

    def trained(trial, _: onnx.ModelProto) -> tuple[float, onnx.ModelProto]:
        """The accuracy on windows of recordings that were held back, and the trained network."""
        layers = network(trial)
        rate = trial.suggest_float("rate", 1e-3, 1e-2, log=True)
        with threadpool_limits(1):
            chosen = ~held_back
            train(layers, inputs[chosen], labels[chosen], cross_entropy, epochs=args.epochs, rate=rate)
            scores = forward(layers, inputs[held_back].astype(np.float64))
        return float(np.mean(scores.argmax(axis=1) == labels[held_back])), as_model(layers)

    budget = {"ram": "8K", "flash": "24K", "milliseconds": 3}
    search(args, lambda trial: as_model(network(trial)), trained, budget, mhz=64)


if __name__ == "__main__":
    main()
