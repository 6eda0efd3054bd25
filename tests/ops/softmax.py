# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Softmax, log-softmax and hardmax: along one axis, or over all that follow (before opset 13)."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.support.cases import Case, Const, onnx_case, onnx_nodes_case
from tests.support.data import real, whole
from tinyml.ir import Array

NAMES = ("Softmax", "LogSoftmax", "Hardmax")
LARGE = np.array([[0, 1, 2, 3], [10000, 10001, 10002, 10003]], np.float32)


def quantised(name: str, x: Array, scale: float, y_scale: float, y_zero: int, axis: int) -> Case:
    """Dequantise, softmax, quantise; onnxruntime computes it in floats."""
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "x_scale", "x_zero"], ["real"]),
        helper.make_node("Softmax", ["real"], ["soft"], axis=axis),
        helper.make_node("QuantizeLinear", ["soft", "y_scale", "y_zero"], ["y"]),
    ]
    operands: dict[str, Array | Const] = {
        "x": x,
        "x_scale": Const(np.array(scale, np.float32)),
        "x_zero": Const(np.array(3, x.dtype)),
        "y_scale": Const(np.array(y_scale, np.float32)),
        "y_zero": Const(np.array(y_zero, x.dtype)),
    }
    return onnx_nodes_case(name, nodes, operands, ["y"], lsb=1)


CASES: list[Case] = [
    quantised("int8", whole(20, 10, low=-128, high=127, dtype="int8"), 0.05, 1 / 256, -128, -1),
    quantised("int8_steep", whole(20, 10, low=-128, high=127, dtype="int8"), 0.9, 1 / 255, -128, -1),
    quantised("int8_flat", whole(4, 300, low=-128, high=127, dtype="int8"), 0.001, 1e-4, -100, -1),
    quantised("int8_axis", whole(4, 5, 6, low=-128, high=127, dtype="int8"), 0.1, 1 / 256, -128, 1),
    quantised("uint8", whole(20, 10, high=255, dtype="uint8"), 0.05, 1 / 256, 0, -1),
    quantised("int8_one_element", whole(7, 1, low=-128, high=127, dtype="int8"), 0.5, 1 / 256, -128, -1),
    quantised("int8_saturates", whole(9, 3, low=-128, high=127, dtype="int8"), 0.5, 1 / 512, -128, -1),
    *(onnx_case(f"{op}_axis_{a}", op, [real(2, 3, 4)], axis=a) for op in NAMES for a in (0, 1, 2, -1)),
    *(onnx_case(f"{op}_default", op, [real(2, 3, 4)]) for op in NAMES),
    *(onnx_case(f"{op}_large", op, [LARGE]) for op in NAMES),
    *(onnx_case(f"{op}_old_{a}", op, [real(2, 3, 4)], opset=11, axis=a) for op in NAMES for a in (0, 1, 2)),
    *(onnx_case(f"{op}_old_default", op, [real(2, 3, 4)], opset=9) for op in NAMES),
    *(onnx_case(f"{op}_double", op, [real(2, 3, dtype="float64")]) for op in ("Softmax", "LogSoftmax")),
    onnx_case("ties", "Hardmax", [np.array([[1, 2, 2], [3, 3, 0]], np.float32)]),
    onnx_case("one", "Softmax", [real(5)]),
    onnx_case("alone", "Softmax", [real(3, 1, 4)], axis=1),
]
