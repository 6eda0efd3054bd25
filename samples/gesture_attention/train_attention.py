# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Train a transformer on the recordings of ../gesture, and write ``model_float.onnx``.

    python train_attention.py [FOLDER]

The folder (default: ../gesture/recordings, as ../gesture/record.py writes it) has a subfolder with CSV files
for each gesture. Every fifth recording is held back; it gives the accuracy. Recordings have one gesture each;
windows in which one gesture follows another are joined from two.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # comes with scikit-learn

HERE = Path(__file__).resolve().parent
GESTURE = HERE.parent / "gesture"
sys.path[:0] = [str(HERE.parent / "common"), str(GESTURE)]

from network import Array, cross_entropy, forward, train
from train import CLASSES, FRONTEND, WINDOW, load
from transformer import Transformer, to_onnx

EPOCHS = 10
SEED = 39


def with_changes(inputs: Array, labels: Array, random: np.random.Generator) -> tuple[Array, Array]:
    """As many windows again: the first rows of one, the last of another; the longer part counts."""
    others = random.permutation(len(inputs))
    cuts = random.integers(1, WINDOW, len(inputs))
    first = np.arange(WINDOW)[None, :] < cuts[:, None]
    joined = np.where(first[:, None, :, None], inputs, inputs[others])
    wanted = np.where(cuts * 2 > WINDOW, labels, labels[others])
    return np.concatenate([inputs, joined]), np.concatenate([labels, wanted])


def main(arguments: list[str]) -> None:
    inputs, labels, held_back = load(Path(arguments[0]) if arguments else GESTURE / "recordings")
    random = np.random.default_rng(SEED)
    network = Transformer(len(CLASSES), random)
    with threadpool_limits(1):  # the order of sums stays the same
        learnt = with_changes(inputs[~held_back], labels[~held_back], random)
        train([network], *learnt, cross_entropy, epochs=EPOCHS, seed=SEED)
        right = forward([network], inputs[held_back].astype(np.float64)).argmax(axis=1) == labels[held_back]
    written = " ".join(f"{key}={value}" for key, value in FRONTEND.items() if key != "stride")
    model = to_onnx(network, WINDOW, FRONTEND["axes"], {"tinyml.frontend": written})
    (HERE / "model_float.onnx").write_bytes(model.SerializeToString(deterministic=True))
    print(f"model_float.onnx: {100 * right.mean():.2f} % of {held_back.sum()} held-back windows")


if __name__ == "__main__":
    main(sys.argv[1:])
