# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose weights are data, and quantised layers that share operands."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.support.cases import Case, Const, onnx_case, onnx_nodes_case
from tests.support.data import real, whole
from tinyml.ir import Array


def computed_weights(
    kernel: tuple[int, int], pads: list[int], group: int, strides: tuple[int, int] = (1, 1)
) -> Case:
    """Weights that are an input of the model, so that the loops are generated."""
    channels = 4
    outputs = channels if group == channels else 6
    x, w = real(1, channels, 5, 6), real(outputs, channels // group, *kernel, seed=1)
    name = f"computed_{kernel}_{pads}_{group}_{strides}"
    return onnx_case(
        name, "Conv", [x, w, real(outputs, seed=2)], pads=pads, group=group, strides=strides, rtol=1e-4
    )


def shared_bias() -> Case:
    """Two dense layers with one bias and different scales: each needs it on the scale of its own sums."""
    operands: dict[str, Array | Const] = {
        "x": whole(3, 16, low=-128, high=127, dtype="int8"),
        "z": Const(np.array(0, np.int8)),
        "b": Const(np.linspace(-3, 3, 5).astype(np.float32)),
    }
    nodes = []
    for side, (x_scale, w_scale) in {"l": (0.02, 0.011), "r": (0.02, 0.0031)}.items():
        operands[f"xs_{side}"] = Const(np.array(x_scale, np.float32))
        operands[f"w_{side}"] = Const(whole(16, 5, low=-127, high=127, dtype="int8", seed=ord(side)))
        operands[f"ws_{side}"] = Const(np.array(w_scale, np.float32))
        operands[f"ys_{side}"] = Const(np.array(0.0517, np.float32))
        nodes += [
            helper.make_node("DequantizeLinear", ["x", f"xs_{side}", "z"], [f"xr_{side}"]),
            helper.make_node("DequantizeLinear", [f"w_{side}", f"ws_{side}", "z"], [f"wr_{side}"]),
            helper.make_node("Gemm", [f"xr_{side}", f"wr_{side}", "b"], [f"g_{side}"]),
            helper.make_node("QuantizeLinear", [f"g_{side}", f"ys_{side}", "z"], [f"y_{side}"]),
        ]
    return onnx_nodes_case("shared_bias", nodes, operands, ["y_l", "y_r"])


def moved_input() -> Case:
    """An int8 input that is reshaped and transposed before its DequantizeLinear."""
    operands: dict[str, Array | Const] = {
        "x": whole(1, 5, 6, low=-128, high=127, dtype="int8"),
        "axes": Const(np.array([3], np.int64)),
        "xs": Const(np.array(0.05, np.float32)),
        "xz": Const(np.array(3, np.int8)),
        "w": Const(whole(4, 1, 3, 3, low=-127, high=127, dtype="int8", seed=1)),
        "ws": Const(np.array(0.011, np.float32)),
        "wz": Const(np.array(0, np.int8)),
        "ys": Const(np.array(0.0917, np.float32)),
        "yz": Const(np.array(-4, np.int8)),
    }
    nodes = [
        helper.make_node("Unsqueeze", ["x", "axes"], ["u"]),
        helper.make_node("Transpose", ["u"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("DequantizeLinear", ["t", "xs", "xz"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"]),
        helper.make_node("Conv", ["xr", "wr"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]),
    ]
    return onnx_nodes_case("moved_input", nodes, operands, ["y"])


def moved_bytes(read_twice: bool) -> Case:
    """uint8 whose meaning the file tells only after a MaxPool and a Transpose; the input may be an output."""
    operands: dict[str, Array | Const] = {
        "x": whole(1, 3, 4, 6, low=0, high=255, dtype="uint8"),
        "s": Const(np.array(0.031, np.float32)),
        "z": Const(np.array(118, np.uint8)),
        "ys": Const(np.array(0.0517, np.float32)),
        "yz": Const(np.array(7, np.uint8)),
    }
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2], pads=[1, 0, 0, 0]),
        helper.make_node("Transpose", ["p"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("DequantizeLinear", ["t", "s", "z"], ["r"]),
        helper.make_node("Sigmoid", ["r"], ["g"]),
        helper.make_node("QuantizeLinear", ["g", "ys", "yz"], ["y"]),
    ]
    return onnx_nodes_case(f"moved_bytes_{read_twice}", nodes, operands, ["y", "t"] if read_twice else ["y"])


CASES: list[Case] = [
    moved_bytes(read_twice=False),
    moved_bytes(read_twice=True),
    *(
        computed_weights(kernel, pads, group)
        for kernel, pads in (
            ((1, 3), [1, 1, 1, 1]),
            ((3, 1), [1, 1, 0, 2]),
            ((1, 1), [1, 0, 2, 1]),
            ((3, 3), [1, 0, 2, 1]),
            ((2, 2), [0, 1, 1, 0]),
        )
        for group in (1, 2, 4)
    ),
    computed_weights((1, 3), [2, 1, 2, 1], 1, (2, 2)),
    shared_bias(),
    moved_input(),
]
