# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model for which int8 is too coarse: faint signals with rare spikes a hundred times as large.

The first layer amplifies and limits, so that only its input, and nothing after it, has the wide range. In
int8 the spikes take all the range of the input, and the signal is less than one step.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.ir import Array
from tinyml.settings.quantize_request import Request

WEAK = "gain"


def model() -> onnx.ModelProto:
    """Conv and clip (the weak layer) → max-pool → conv → relu → depthwise conv → relu → dense."""
    random = np.random.default_rng(3)

    def normal(*shape: int) -> Array:
        return random.normal(0, 0.3, shape).astype(np.float32)

    constants: dict[str, Array] = {
        "w1": normal(4, 1, 1, 1) * 150,
        "b1": normal(4),
        "low": np.asarray(-1, np.float32),
        "high": np.asarray(1, np.float32),
        "w2": normal(6, 4, 3, 3),
        "b2": normal(6),
        "w3": normal(6, 1, 3, 3),
        "w4": normal(5, 96),
        "b4": normal(5),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], WEAK),
        helper.make_node("Clip", ["c1", "low", "high"], ["k1"], "limit"),
        helper.make_node("MaxPool", ["k1"], ["m1"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["m1", "w2", "b2"], ["c2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("Conv", ["r2", "w3"], ["c3"], "conv3", pads=[1, 1, 1, 1], group=6),
        helper.make_node("Relu", ["c3"], ["r3"], "relu3"),
        helper.make_node("Flatten", ["r3"], ["f"], "flat"),
        helper.make_node("Gemm", ["f", "w4", "b4"], ["y"], "dense", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "spikes",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def inputs(count: int = 64) -> Array:
    random = np.random.default_rng(4)
    x = random.normal(0, 0.004, (count, 1, 8, 8)).astype(np.float32)
    x[random.random(x.shape) < 0.01] = 1
    return x


def write(folder: Path) -> tuple[Path, Request]:
    """The model as a file, and how to quantise it."""
    onnx.save(model(), folder / "spikes.onnx")
    np.save(folder / "spikes.npy", inputs())
    return folder / "spikes.onnx", Request(folder / "spikes.npy", method="minmax")
