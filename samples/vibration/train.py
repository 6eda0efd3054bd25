# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Train an autoencoder on recordings of a healthy motor, and write ``model.onnx``.

    python train.py [FOLDER]

The folder (default: recordings, as record.py writes it) has the subfolder normal; other subfolders are only
used to count how many of their windows are found. The model learns to reproduce the features of healthy
windows through three numbers. What it cannot reproduce, it has not seen:

    features 24 -> dense 12 -> relu -> dense 3 -> relu -> dense 12 -> relu -> dense 24 -> squared error

The threshold is the error that 99.5 % of the windows of held-back healthy recordings do not reach. The output
of the model is the error in relation to it: 0.5 is the threshold, 1 is twice the threshold or more.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from threadpoolctl import threadpool_limits  # comes with scikit-learn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))

from network import Array, Dense, Layer, Relu, constants, finished, forward, squared_error, train

from tinyml import features

FRONTEND = {
    "kind": "spectral",
    "rate": 400,
    "axes": 3,
    "window_samples": 128,
    "step_samples": 64,
    "statistics": "std,kurtosis",
    "bands": "10,20,32,64,96,128,200",
    "log": True,
}
SEED = 6
SHARE = 0.995  # of healthy windows below the threshold


def rows_of(path: Path) -> Array:
    return features.compute(np.loadtxt(path, delimiter=",", dtype=np.float32), **FRONTEND)


def network(width: int) -> list[Layer]:
    random = np.random.default_rng(SEED)
    sizes = (width, 12, 3, 12, width)
    layers: list[Layer] = []
    for number, (before, after) in enumerate(itertools.pairwise(sizes), 1):
        layers += [Dense(f"dense{number}", before, after, random=random), Relu()]
    return layers[:-1]


def to_onnx(layers: list[Layer], mean: Array, spread: Array, threshold: float) -> onnx.ModelProto:
    """Normalise, reproduce, and compare."""
    nodes = [
        helper.make_node("Sub", ["features", "mean"], ["centred"], "centred"),
        helper.make_node("Mul", ["centred", "factor"], ["normal"], "normal"),
    ]
    at = "normal"
    for index, layer in enumerate(layers):
        target = layer.name or f"relu{index}"
        nodes.append(layer.node(at, target))
        at = target
    nodes += [
        helper.make_node("Sub", [at, "normal"], ["difference"], "difference"),
        helper.make_node("Mul", ["difference", "difference"], ["squares"], "squares"),
        helper.make_node("ReduceMean", ["squares"], ["error"], "error", axes=[1], keepdims=1),
        helper.make_node("Mul", ["error", "scale"], ["scaled"], "scaled"),
        helper.make_node("Clip", ["scaled", "", "one"], ["anomaly"], "anomaly"),
    ]
    width = len(mean)
    values = {
        "mean": mean[np.newaxis],
        "factor": 1 / spread[np.newaxis],
        "scale": np.array([[0.5 / threshold]]),
        "one": np.array(1.0),
    }
    graph = helper.make_graph(
        nodes,
        "vibration",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [1, width])],
        [helper.make_tensor_value_info("anomaly", TensorProto.FLOAT, [1, 1])],
        [
            *constants(layers),
            *(numpy_helper.from_array(value.astype(np.float32), name) for name, value in values.items()),
        ],
    )
    written = " ".join(f"{key}={str(value).lower()}" for key, value in FRONTEND.items())
    return finished(graph, {"tinyml.frontend": written})


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else HERE / "recordings"
    files = sorted((folder / "normal").glob("*.csv"))
    if not files:
        sys.exit(f"{folder} has no recordings: run record.py, or give the folder of your own")
    healthy = [rows_of(path) for path in files]
    training = np.concatenate([rows for at, rows in enumerate(healthy) if at % 5])
    held_back = np.concatenate([rows for at, rows in enumerate(healthy) if at % 5 == 0])
    mean, spread = training.mean(axis=0), training.std(axis=0)
    layers = network(training.shape[1])

    def errors(rows: Array) -> Array:
        normal = (rows - mean) / spread
        return ((forward(layers, normal.astype(np.float64)) - normal) ** 2).mean(axis=1)

    with threadpool_limits(1):  # the order of sums stays the same
        normal = (training - mean) / spread
        train(layers, normal, normal, squared_error, epochs=60, seed=SEED)
        threshold = float(np.quantile(errors(held_back), SHARE))
    model = to_onnx(layers, mean, spread, threshold)
    (HERE / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    print(f"model.onnx: threshold {threshold:.3f}, learned from {len(held_back)} healthy windows")
    for state in sorted(path.name for path in folder.iterdir() if path.is_dir()):
        rows = np.concatenate([rows_of(path) for path in sorted((folder / state).glob("*.csv"))])
        print(f"{state}: {100 * (errors(rows) > threshold).mean():.1f} % of {len(rows)} windows above it")


if __name__ == "__main__":
    main(sys.argv[1:])
