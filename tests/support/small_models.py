# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Small float models to be quantised, with one feature each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.ir import Array
from tinyml.quantize.engine import Quantized, quantize
from tinyml.settings.quantize_request import Request


def model_of(
    nodes: list[onnx.NodeProto], constants: dict[str, Array], shape: list[int | str], opset: int = 17
) -> onnx.ModelProto:
    """A float model from x to y."""
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def quantize_small(
    model: onnx.ModelProto,
    folder: Path,
    shape: tuple[int, ...],
    change: Callable[[Request], Request] = lambda r: r,
) -> Quantized:
    """Calibrated on noise; ``change`` holds the settings of the test."""
    onnx.save(model, folder / "small.onnx")
    np.save(folder / "calib.npy", np.random.default_rng(1).uniform(-1, 1, (32, *shape)).astype(np.float32))
    return quantize(folder / "small.onnx", change(Request(folder / "calib.npy", method="minmax")))


WEIGHTS = np.random.default_rng(2).normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32)
CONV = helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1])


def node(op_type: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(), [output], **attributes)


# by the operator of interest, on c
AFTER: dict[str, list[onnx.NodeProto]] = {
    "Sigmoid": [node("Sigmoid", "c", "y")],
    "Tanh": [node("Tanh", "c", "y")],
    "HardSwish": [node("HardSwish", "c", "y")],
    "LeakyRelu": [node("LeakyRelu", "c", "y", alpha=0.1)],
    "Clip": [node("Clip", "c zero one", "y")],
    "Add": [node("Relu", "c", "r"), node("Add", "c r", "y")],
    "Mul": [node("Sigmoid", "c", "r"), node("Mul", "c r", "y")],
    "Concat": [node("Sigmoid", "c", "r"), node("Concat", "c r", "y", axis=1)],
    "MaxPool": [node("MaxPool", "c", "p", kernel_shape=[2, 2]), node("Relu", "p", "y")],
    "AveragePool": [node("AveragePool", "c", "y", kernel_shape=[2, 2])],
    "GlobalAveragePool": [node("GlobalAveragePool", "c", "y")],
    "ConvTranspose": [
        node("ConvTranspose", "c spread", "y", strides=[2, 2], pads=[1, 0, 0, 1], output_padding=[1, 0])
    ],
    "Pad": [node("Pad", "c pads", "y")],
    "Slice": [node("Slice", "c starts ends", "y")],
    "Softmax": [node("Flatten", "c", "f"), node("Softmax", "f", "y")],
    "MatMul": [node("Flatten", "c", "f"), node("MatMul", "f matrix", "y")],
}
OPERANDS: dict[str, Array] = {
    "zero": np.asarray(0, np.float32),
    "one": np.asarray(1, np.float32),
    "spread": np.random.default_rng(6).normal(0, 0.3, (4, 3, 3, 2)).astype(np.float32),
    "pads": np.asarray([0, 0, 1, 1, 0, 0, 1, 1]),
    "starts": np.asarray([0, 0, 1, 1]),
    "ends": np.asarray([1, 2, 3, 3]),
    "matrix": np.random.default_rng(4).normal(0, 0.2, (100, 3)).astype(np.float32),
}


def after_conv(name: str) -> onnx.ModelProto:
    """A convolution, followed by the nodes of that name in ``AFTER``."""
    used = {word for item in AFTER[name] for word in item.input}
    constants = {"w": WEIGHTS, **{word: value for word, value in OPERANDS.items() if word in used}}
    return model_of([CONV, *AFTER[name]], constants, [1, 3, 5, 5])
