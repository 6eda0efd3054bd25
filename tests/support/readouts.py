# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Small float models of real data, quick to train: fixed random features, a readout by least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

from tinyml.reference.session import Session

Array = npt.NDArray[Any]
CLASSES = 10
HIDDEN = 48
OPSET = 17


@dataclass(frozen=True)
class Trained:
    """A float model, and the images it was not trained on."""

    model: onnx.ModelProto
    training: Array
    held_back: Array
    labels: Array


def rows_of_digits() -> tuple[Array, Array, Array]:
    """Each image as a sequence of eight rows of eight pixels in 0..1; labels; which are held back."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)
    return images, digits.target.astype(np.int64), np.arange(len(images)) % 5 == 0


def convolution() -> Trained:
    """Conv (1-D, over the rows) → relu → average pool → flatten → dense."""
    random = np.random.default_rng(3)
    constants = {
        "w": random.normal(0, 0.35, (HIDDEN, 8, 3)).astype(np.float32),
        "b": random.normal(0, 0.2, HIDDEN).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["conv"], "conv", kernel_shape=[3], pads=[1, 1]),
        helper.make_node("Relu", ["conv"], ["relu"], "relu"),
        helper.make_node("AveragePool", ["relu"], ["pool"], "pool", kernel_shape=[2], strides=[2]),
        helper.make_node("Flatten", ["pool"], ["features"], "flat"),
    ]
    return _with_readout(nodes, constants, [1, 8, 8], HIDDEN * 4)


def recurrent() -> Trained:
    """GRU over the rows → all of its states → dense; the batch is left open, as exporters do."""
    random = np.random.default_rng(5)
    constants = {
        "w": random.normal(0, 0.5, (1, 3 * HIDDEN, 8)).astype(np.float32),
        "r": random.normal(0, 0.12, (1, 3 * HIDDEN, HIDDEN)).astype(np.float32),
        "shape": np.asarray([1, 8 * HIDDEN]),
    }
    nodes = [
        helper.make_node("Transpose", ["x"], ["rows"], "time_first", perm=[1, 0, 2]),
        helper.make_node("GRU", ["rows", "w", "r"], ["states"], "gru", hidden_size=HIDDEN),
        helper.make_node("Reshape", ["states", "shape"], ["features"], "flat"),
    ]
    return _with_readout(nodes, constants, ["batch", 8, 8], 8 * HIDDEN)


def _with_readout(
    nodes: list[onnx.NodeProto], constants: dict[str, Array], shape: list[int | str], features: int
) -> Trained:
    """Add a dense layer, trained on the features that the nodes give."""
    images, labels, held_back = rows_of_digits()
    body = _model(nodes, constants, shape, "features", features)
    session = Session(body)
    seen = np.concatenate([session.run({"x": image[np.newaxis]})["features"] for image in images[~held_back]])
    wide = np.concatenate([seen, np.ones((len(seen), 1))], axis=1).astype(np.float64)
    wanted = np.eye(CLASSES)[labels[~held_back]]
    solved = np.linalg.solve(wide.T @ wide + 1e-1 * np.eye(wide.shape[1]), wide.T @ wanted)
    dense = {"dense.w": solved[:-1].astype(np.float32), "dense.b": solved[-1].astype(np.float32)}
    readout = helper.make_node("Gemm", ["features", "dense.w", "dense.b"], ["y"], "dense")
    model = _model([*nodes, readout], {**constants, **dense}, shape, "y", CLASSES)
    return Trained(model, images[~held_back], images[held_back], labels[held_back])


def _model(
    nodes: list[onnx.NodeProto], constants: dict[str, Array], shape: list[int | str], output: str, width: int
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "readout",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [1, width])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
