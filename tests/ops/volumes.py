# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions with three spatial axes: float, and int8 between QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.support.cases import Case, Const, Stored, onnx_case, onnx_nodes_case, op_case
from tests.support.data import real, whole
from tinyml.ir import Array, Quant
from tinyml.ops.conv.depth_windows import DepthWindows

Shape = tuple[int, ...]

WINDOWS: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "plain": ((1, 3, 5, 6, 4), (4, 3, 3, 3, 3), {}),
    "one_channel": ((1, 1, 6, 5, 5), (3, 1, 3, 3, 3), {"pads": [1] * 6}),
    "strides": ((1, 2, 7, 7, 6), (5, 2, 3, 3, 2), {"strides": [2, 2, 1], "pads": [1, 1, 0, 2, 0, 1]}),
    "dilated": ((1, 2, 7, 6, 6), (4, 2, 2, 2, 3), {"dilations": [3, 2, 1], "pads": [2, 0, 1, 1, 1, 1]}),
    "batches": ((2, 2, 4, 4, 5), (4, 2, 2, 3, 3), {"pads": [1, 1, 1, 0, 1, 1]}),
    "groups": ((1, 6, 5, 4, 5), (4, 3, 3, 3, 3), {"group": 2, "pads": [1] * 6}),
    "depthwise": ((1, 5, 5, 4, 5), (5, 1, 3, 3, 3), {"group": 5, "pads": [1] * 6}),
    "depthwise_slices": ((1, 4, 3, 6, 5), (8, 1, 1, 3, 3), {"group": 4, "pads": [0, 1, 1, 0, 1, 1]}),
    "same": ((1, 2, 5, 6, 5), (4, 2, 2, 2, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 1, 2]}),
    "pointwise": ((1, 6, 3, 4, 5), (7, 6, 1, 1, 1), {}),
    "every_second_slice": ((1, 3, 5, 4, 5), (4, 3, 1, 1, 1), {"strides": [2, 1, 1]}),
    "whole_depth": ((1, 2, 4, 5, 5), (4, 2, 4, 3, 3), {"pads": [0, 1, 1, 0, 1, 1]}),
    "far_outside": ((1, 2, 2, 3, 3), (3, 2, 3, 2, 2), {"pads": [5, 0, 0, 4, 1, 1], "strides": [3, 1, 1]}),
}


def in_float(name: str, computed: bool = False) -> Case:
    x, w, window = WINDOWS[name]
    weights, bias = real(*w, seed=1), real(w[0], seed=2)
    operands: list[Array | Const | None] = [
        real(*x),
        *((weights, bias) if computed else (Const(weights), Const(bias))),
    ]
    kind = "computed" if computed else "float"
    return onnx_case(f"{kind}_{name}", "Conv", operands, rtol=1e-4, atol=1e-5, **window)


def in_bytes(name: str, dtype: str = "int8", zero: int = -9) -> Case:
    """Padding is the zero point of the input, which is not 0."""
    x, w, window = WINDOWS[name]
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    scale = np.sqrt(2.0 / np.prod(w[1:]))
    operands: dict[str, Array | Const] = {
        "x": whole(*x, low=int(low), high=int(high), dtype=dtype),
        "xs": Const(np.array(0.043, np.float32)),
        "xz": Const(np.array(zero, dtype)),
        "w": Const(whole(*w, low=-127, high=127, dtype="int8", seed=1)),
        "ws": Const(np.linspace(0.007, 0.013, w[0]).astype(np.float32)),
        "wz": Const(np.zeros(w[0], np.int8)),
        "b": Const(whole(w[0], low=-900, high=900, dtype="int32", seed=2)),
        "bs": Const(np.linspace(0.007, 0.013, w[0]).astype(np.float32) * np.float32(0.043)),
        "bz": Const(np.zeros(w[0], np.int32)),
        "ys": Const(np.array(0.0531 / scale, np.float32)),
        "yz": Const(np.array(zero + 5, dtype)),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["br"], axis=0),
        helper.make_node("Conv", ["xr", "wr", "br"], ["r"], **window),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]),
    ]
    return onnx_nodes_case(f"{dtype}_{name}", nodes, operands, ["y"])


def windows_of_bytes() -> Case:
    """Slices outside the input are the zero point."""
    x = np.arange(8, dtype=np.int8).reshape(1, 2, 1, 2, 2)
    expected = np.array(
        [[7, 7, 0, 1, 7, 7, 2, 3], [0, 1, 4, 5, 2, 3, 6, 7], [4, 5, 7, 7, 6, 7, 7, 7]], np.int8
    )
    stored = Stored(x, Quant.per_tensor(0.1, 7))
    op = DepthWindows(slices=2, pads=(1, 1))
    return op_case("windows_of_bytes", op, [stored], expected=[expected.reshape(3, 1, 2, 4)])


CASES: list[Case] = [
    *(in_float(name) for name in WINDOWS),
    *(in_float(name, computed=True) for name in ("groups", "strides")),
    *(in_bytes(name) for name in WINDOWS),
    in_bytes("strides", "uint8", 131),
    windows_of_bytes(),
]
