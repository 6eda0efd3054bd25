# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Train the model on pictures.npz, as record.py writes it, and write ``model_float.onnx``.

    python train.py

A small convolutional network on pictures of 32x32 greys, trained in numpy, with relu after every convolution:

    1x32x32 -> conv 3x3 /2, 8 -> conv 3x3 /2, 16 -> conv 3x3 /2, 24 -> dense 2 -> softmax

Every tenth picture is held back; it gives the accuracy. calibration.npz has 200 of the others.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # comes with scikit-learn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))

from network import Array, Conv, Dense, Flatten, Layer, Relu, cross_entropy, forward, to_onnx, train

CLASSES = ("nobody", "person")  # the order of the outputs
SIDE = 32
SEED = 4


def shrunk(pictures: Array) -> Array:
    """The input of the model, from 0 to 1: samples/common/shrink.c computes the same."""
    _, height, width = pictures.shape
    factor = min(height, width) // SIDE
    top, left = (height - factor * SIDE) // 2, (width - factor * SIDE) // 2
    middle = pictures[:, top : top + factor * SIDE, left : left + factor * SIDE].astype(int)
    tiles = middle.reshape(len(pictures), SIDE, factor, SIDE, factor)
    return (tiles.sum(axis=(2, 4)) // factor**2 / 255).astype(np.float32)[:, np.newaxis]


def network() -> list[Layer]:
    random = np.random.default_rng(SEED)
    return [
        Conv("conv1", (1, 8), (3, 3), (2, 2), random=random),
        Relu(),
        Conv("conv2", (8, 16), (3, 3), (2, 2), random=random),
        Relu(),
        Conv("conv3", (16, 24), (3, 3), (2, 2), random=random),
        Relu(),
        Flatten(),
        Dense("dense", 24 * 3 * 3, len(CLASSES), random=random),
    ]


def main() -> None:
    path = HERE / "pictures.npz"
    if not path.is_file():
        sys.exit("no pictures.npz: run record.py, or bring your own")
    with np.load(path) as data:
        inputs, labels = shrunk(data["pictures"]), data["labels"]
    held_back = np.arange(len(labels)) % 10 == 0
    layers = network()
    with threadpool_limits(1):
        train(layers, inputs[~held_back], labels[~held_back], cross_entropy, epochs=20, seed=SEED)
        found = forward(layers, inputs[held_back].astype(np.float64)).argmax(axis=1)
    accuracy = (found == labels[held_back]).mean()
    model = to_onnx(layers, "person", ((1, 1, SIDE, SIDE), (1, len(CLASSES))), "scores", last="Softmax")
    (HERE / "model_float.onnx").write_bytes(model.SerializeToString())
    np.savez(HERE / "calibration.npz", input=inputs[~held_back][:200])
    count = sum(value.size for layer in layers for value in layer.weights.values())
    print(f"{len(inputs)} pictures, {count} parameters")
    print(f"held back: {100 * accuracy:.1f} % right -> model_float.onnx")


if __name__ == "__main__":
    main()
