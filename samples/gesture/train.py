# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Train the gesture model on recordings, and write ``model_float.onnx``.

    python train.py [FOLDER]

The folder (default: recordings, as record.py writes it) has a subfolder with CSV files for each gesture. A
small convolutional network over windows of 64 samples, trained in numpy, with relu after every convolution:

    window 1x64x3 -> conv 5x3, 8 -> conv 5x1 /2, 12 -> conv 5x1 /2, 16 -> dense 4 -> softmax

Every fifth recording is held back; it gives the accuracy.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # comes with scikit-learn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))

from network import Array, Conv, Dense, Flatten, Layer, Relu, cross_entropy, forward, to_onnx, train

from tinyml import features

CLASSES = ("circle", "idle", "shake", "wave")  # the order of the outputs; alphabetical, as `tinyml` expects
WINDOW = 64
STRIDE = 16  # samples between two runs
FRONTEND = {"kind": "normalize", "rate": 50, "axes": 3, "mean": "0,0,9.81", "std": 4, "stride": STRIDE}
SEED = 5


def windows(path: Path) -> Array:
    """The inputs that NAME_feed() gives the model for a recording."""
    rows = features.compute(np.loadtxt(path, delimiter=",", dtype=np.float32), **FRONTEND)
    starts = range(0, len(rows) - WINDOW + 1, STRIDE)
    return np.stack([rows[start : start + WINDOW] for start in starts])[:, np.newaxis]


def load(folder: Path) -> tuple[Array, Array, Array]:
    """Windows, their classes, and whether they are held back."""
    inputs, labels, held_back = [], [], []
    for label, gesture in enumerate(CLASSES):
        for number, path in enumerate(sorted((folder / gesture).glob("*.csv"))):
            found = windows(path)
            inputs.append(found)
            labels += [label] * len(found)
            held_back += [number % 5 == 0] * len(found)
    if not inputs:
        sys.exit(f"{folder} has no recordings: run record.py, or give the folder of your own")
    return np.concatenate(inputs), np.array(labels), np.array(held_back)


def network() -> list[Layer]:
    random = np.random.default_rng(SEED)
    return [
        Conv("conv1", (1, 8), (5, 3), random=random),
        Relu(),
        Conv("conv2", (8, 12), (5, 1), (2, 1), random=random),
        Relu(),
        Conv("conv3", (12, 16), (5, 1), (2, 1), random=random),
        Relu(),
        Flatten(),
        Dense("dense", 16 * 12, len(CLASSES), random=random),
    ]


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else HERE / "recordings"
    inputs, labels, held_back = load(folder)
    layers = network()
    with threadpool_limits(1):  # the order of sums stays the same
        train(layers, inputs[~held_back], labels[~held_back], cross_entropy, epochs=12, seed=SEED)
        right = forward(layers, inputs[held_back].astype(np.float64)).argmax(axis=1) == labels[held_back]
    written = " ".join(f"{key}={value}" for key, value in FRONTEND.items() if key != "stride")
    model = to_onnx(
        layers,
        "gesture",
        ([1, 1, WINDOW, 3], [1, len(CLASSES)]),
        "scores",
        last="Softmax",
        metadata={"tinyml.frontend": written},
    )
    (HERE / "model_float.onnx").write_bytes(model.SerializeToString(deterministic=True))
    print(f"model_float.onnx: {100 * right.mean():.2f} % of {held_back.sum()} held-back windows")


if __name__ == "__main__":
    main(sys.argv[1:])
