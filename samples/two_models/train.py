# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Train the trigger, which only knows whether something moves.

    python ../gesture/record.py
    python train.py [FOLDER]

writes ``model_float.onnx`` and, to quantise it, ``calibration.npz``. The trigger takes
16 samples at a time; the recordings are those of ../gesture, whose model is the expensive one.

    samples 16x3 -> dense 4 -> relu -> dense 2 -> softmax
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # comes with scikit-learn

HERE = Path(__file__).resolve().parent
GESTURE = HERE.parent / "gesture"
sys.path.insert(0, str(HERE.parent / "common"))

from network import Array, Dense, Flatten, Relu, cross_entropy, forward, to_onnx, train

from tinyml import features

WINDOW = 16
FRONTEND = {"kind": "normalize", "rate": 50, "axes": 3, "mean": "0,0,9.81", "std": 4}
SEED = 8


def windows(path: Path) -> Array:
    """Windows that do not overlap, as the trigger takes them."""
    rows = features.compute(np.loadtxt(path, delimiter=",", dtype=np.float32), **FRONTEND)
    return rows[: len(rows) // WINDOW * WINDOW].reshape(-1, 1, WINDOW, 3)


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else GESTURE / "recordings"
    parts, labels, held_back = [], [], []
    for gesture in sorted(path.name for path in folder.glob("*")):
        for number, path in enumerate(sorted((folder / gesture).glob("*.csv"))):
            found = windows(path)
            parts.append(found)
            labels += [int(gesture != "idle")] * len(found)
            held_back += [number % 5 == 0] * len(found)
    if not parts:
        sys.exit(f"{folder} has no recordings: run ../gesture/record.py, or give the folder of your own")
    inputs, moves, rest = np.concatenate(parts), np.array(labels), np.array(held_back)
    random = np.random.default_rng(SEED)
    layers = [
        Flatten(),
        Dense("dense1", WINDOW * 3, 4, random=random),
        Relu(),
        Dense("dense2", 4, 2, random=random),
    ]
    with threadpool_limits(1):  # the order of sums stays the same
        train(layers, inputs[~rest], moves[~rest], cross_entropy, epochs=20, seed=SEED)
        right = forward(layers, inputs[rest].astype(np.float64)).argmax(axis=1) == moves[rest]
    written = " ".join(f"{key}={value}" for key, value in FRONTEND.items())
    model = to_onnx(
        layers,
        "trigger",
        ([1, 1, WINDOW, 3], [1, 2]),
        "scores",
        last="Softmax",
        metadata={"tinyml.frontend": written},
    )
    np.savez(HERE / "calibration.npz", input=inputs[~rest][::4], labels=moves[~rest][::4])
    (HERE / "model_float.onnx").write_bytes(model.SerializeToString(deterministic=True))
    print(f"model_float.onnx: {100 * right.mean():.2f} % of {rest.sum()} held-back windows")


if __name__ == "__main__":
    main(sys.argv[1:])
