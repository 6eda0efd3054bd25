# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Looks for small networks that read digits: as accurate and as fast as possible, within a budget.

    python samples/digits/search.py --trials 40 --storage digits.journal --plot digits.svg

Started several times with the same storage, the processes share the work.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits  # comes with scikit-learn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "common"))

from searching import arguments, search

PIXELS, CLASSES = 64, 10

digits = load_digits()
images = (digits.data / 16).astype(np.float32)
held_back = np.arange(len(images)) % 5 == 0


def network(weights: list[np.ndarray], biases: list[np.ndarray]) -> onnx.ModelProto:
    """Dense layers with Relu between them, as ONNX."""
    nodes, constants, x = [], [], "image"
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        constants += [numpy_helper.from_array(weight.astype(np.float32), f"w{i}")]
        constants += [numpy_helper.from_array(bias.astype(np.float32), f"b{i}")]
        is_last = i == len(weights) - 1
        nodes += [helper.make_node("Gemm", [x, f"w{i}", f"b{i}"], ["scores" if is_last else f"h{i}"])]
        x = f"h{i}"
        if not is_last:
            nodes += [helper.make_node("Relu", [x], [f"r{i}"])]
            x = f"r{i}"
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, PIXELS])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, CLASSES])
    graph = helper.make_graph(nodes, "digits", [image], [scores], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def hidden_sizes(trial) -> list[int]:
    layers = trial.suggest_int("layers", 1, 2)
    return [trial.suggest_int(f"width{i}", 4, 96, log=True) for i in range(layers)]


def build(trial) -> onnx.ModelProto:
    """A network of the right sizes, with any weights: its cost is that of the trained one."""
    sizes = [PIXELS, *hidden_sizes(trial), CLASSES]
    random = np.random.default_rng(0)
    weights = [random.standard_normal(shape) for shape in itertools.pairwise(sizes)]
    return network(weights, [np.zeros(size) for size in sizes[1:]])


def train(trial, _: onnx.ModelProto) -> tuple[float, onnx.ModelProto]:
    """The accuracy on images that were held back, and the trained network."""
    rate = trial.suggest_float("rate", 1e-3, 3e-2, log=True)
    fitted = MLPClassifier(hidden_sizes(trial), learning_rate_init=rate, max_iter=60, random_state=0)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # more iterations would help a little
        fitted.fit(images[~held_back], digits.target[~held_back])
    score = fitted.score(images[held_back], digits.target[held_back])
    return score, network(fitted.coefs_, fitted.intercepts_)


def main() -> None:
    args = arguments(__doc__).parse_args()
    search(args, build, train, {"ram": "2K", "flash": "16K", "milliseconds": 0.25}, mhz=80)


if __name__ == "__main__":
    main()
