# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators between Dequantize and Quantize: integer code against onnxruntime in floats."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.support.cases import Case, Const, onnx_nodes_case
from tests.support.data import whole
from tinyml.ir import Array
from tinyml.ops.elementwise.int16_table import LARGEST_ERROR


def between(
    name: str,
    op_type: str,
    scales: list[float],
    y_scale: float,
    y_zero: int = 0,
    dtype: str = "int8",
    lsb: int = 1,
    **more: Any,
) -> Case:
    """``op_type`` on quantised operands, one for each scale; a step of rounding may differ."""
    operands: dict[str, Array | Const] = {}
    nodes = []
    for index, scale in enumerate(scales):
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        operands[f"x{index}"] = whole(4, 65, low=low, high=high, dtype=dtype, seed=index)
        operands[f"s{index}"] = Const(np.array(scale, np.float32))
        operands[f"z{index}"] = Const(np.array(0 if dtype == "int16" else index, dtype))
        nodes.append(
            helper.make_node("DequantizeLinear", [f"x{index}", f"s{index}", f"z{index}"], [f"r{index}"])
        )
    names = [f"r{index}" for index in range(len(scales))]
    operands["ys"], operands["yz"] = Const(np.array(y_scale, np.float32)), Const(np.array(y_zero, dtype))
    nodes.append(helper.make_node(op_type, names, ["r"], **more))
    nodes.append(helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]))
    return onnx_nodes_case(name, nodes, operands, ["y"], lsb=lsb)


def int16_mean_of_two() -> Case:
    """Half of the results lie halfway between two steps, and go to the even one.

    onnxruntime computes them in float32, whose error moves some of them off the middle: no oracle here.
    """
    x = whole(9, 40, 2, low=-32768, high=32767, dtype="int16")
    scale, zero = (Const(np.array(2.4821928e-05, np.float32)), Const(np.array(0, np.int16)))
    operands: dict[str, Array | Const] = {"x": x, "s": scale, "z": zero, "axes": Const(np.array([2]))}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["r"]),
        helper.make_node("ReduceMean", ["r", "axes"], ["mean"], keepdims=1),
        helper.make_node("QuantizeLinear", ["mean", "s", "z"], ["y"]),
    ]
    even = np.rint(x.sum(axis=2, keepdims=True, dtype=np.int64) / 2).astype(np.int16)
    return onnx_nodes_case("int16_mean_of_two", nodes, operands, ["y"], expected=[even])


def one_sided(op_type: str, zero: int, y_zero: int, **attributes: Any) -> Case:
    """Operands of one sign: the results reach one limit of int8 at most, and must be right at the other."""
    names = ["a", "b"] if op_type == "Add" else ["a"]
    operands: dict[str, Array | Const] = {"ys": Const(np.array(0.5, np.float32))}
    operands |= {"yz": Const(np.array(y_zero, np.int8)), "z": Const(np.array(zero, np.int8))}
    nodes = []
    for name, scale in zip(names, (0.0625, 0.03125), strict=False):
        operands[name] = whole(1, 8, 6, 6, low=-128, high=127, dtype="int8")
        operands[f"{name}_scale"] = Const(np.array(scale, np.float32))
        nodes.append(helper.make_node("DequantizeLinear", [name, f"{name}_scale", "z"], [f"{name}_real"]))
    nodes.append(helper.make_node(op_type, [f"{name}_real" for name in names], ["r"], **attributes))
    nodes.append(helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]))
    return onnx_nodes_case(f"{op_type}_one_sided_{zero}_{y_zero}", nodes, operands, ["y"])


def axis_of_one_scale() -> Case:
    """A single scale has no axis: whatever the attribute says is ignored, as by onnxruntime and onnx."""
    operands: dict[str, Array | Const] = {
        "x": whole(3, 4, low=-128, high=127, dtype="int8"),
        "xs": Const(np.array(0.5, np.float32)),
        "ys": Const(np.array([0.25], np.float32)),
        "xz": Const(np.array(3, np.int8)),
        "yz": Const(np.array([-7], np.int8)),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["r"], axis=5),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"], axis=-9),
    ]
    return onnx_nodes_case("axis_of_one_scale", nodes, operands, ["y"])


def unsigned_matmul() -> Case:
    """A dense layer whose uint8 output is the model's: integer inside, converted at the end."""
    operands: dict[str, Array | Const] = {
        "x": whole(3, 16, high=255, dtype="uint8"),
        "xs": Const(np.array(0.02, np.float32)),
        "xz": Const(np.array(120, np.uint8)),
        "w": Const(whole(16, 5, low=-127, high=127, dtype="int8")),
        "ws": Const(np.array(0.01, np.float32)),
        "wz": Const(np.array(0, np.int8)),
        "ys": Const(np.array(0.05, np.float32)),
        "yz": Const(np.array(100, np.uint8)),
    }
    node = helper.make_node("QLinearMatMul", list(operands), ["y"])
    return onnx_nodes_case("uint8_dense_output", [node], operands, ["y"], lsb=1)


def transposed_convolution(dtype: str, lsb: int) -> Case:
    """Rounded once, like everything that ONNX computes in real numbers: rounded twice, bytes would differ."""
    most = int(np.iinfo(dtype).max)
    zero = 3 if dtype == "int8" else 0
    x_scale, w_scale = 6 / most, 0.0123
    operands: dict[str, Array | Const] = {
        "x": whole(1, 6, 16, 16, low=-most, high=most, dtype=dtype),
        "xs": Const(np.array(x_scale, np.float32)),
        "xz": Const(np.array(zero, dtype)),
        "w": Const(whole(6, 5, 3, 3, low=-127, high=127, dtype="int8", seed=1)),
        "ws": Const(np.array(w_scale, np.float32)),
        "wz": Const(np.array(0, np.int8)),
        "b": Const(whole(5, low=-3000, high=3000, dtype="int32", seed=2)),
        "bs": Const(np.array(x_scale * w_scale, np.float32)),
        "ys": Const(np.array(27 / most, np.float32)),
        "yz": Const(np.array(-2 * zero, dtype)),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"]),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["br"]),
        helper.make_node("ConvTranspose", ["xr", "wr", "br"], ["r"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]),
    ]
    return onnx_nodes_case(f"ConvTranspose_{dtype}", nodes, operands, ["y"], lsb=lsb)


def pool(
    name: str, op_type: str, kernel: tuple[int, int], dtype: str, y_scale: float = 0.0625, **more: Any
) -> Case:
    """The mean of windows. Scales are powers of two, so that onnxruntime's float sums are exact, too."""
    zero = np.array(100 if dtype == "uint8" else -3, dtype)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    operands: dict[str, Array | Const] = {
        "x": whole(1, 8, 6, 6, low=low, high=high, dtype=dtype),
        "xs": Const(np.array(0.0625, np.float32)),
        "z": Const(zero),
        "ys": Const(np.array(y_scale, np.float32)),
    }
    attributes = {"kernel_shape": kernel, "strides": [1, 1], **more} if op_type == "AveragePool" else {}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "z"], ["r"]),
        helper.make_node(op_type, ["r"], ["m"], **attributes),
        helper.make_node("QuantizeLinear", ["m", "ys", "z"], ["y"]),
    ]
    return onnx_nodes_case(name, nodes, operands, ["y"])


def reduction(op_type: str, rows: int, y_scale: float) -> Case:
    operands: dict[str, Array | Const] = {
        "x": whole(rows, 65, low=-128, high=127, dtype="int8"),
        "xs": Const(np.array(0.0625, np.float32)),
        "xz": Const(np.array(-5, np.int8)),
        "axes": Const(np.array([0], np.int64)),
        "ys": Const(np.array(y_scale, np.float32)),
        "yz": Const(np.array(3, np.int8)),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["r"]),
        helper.make_node(op_type, ["r", "axes"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "ys", "yz"], ["y"]),
    ]
    return onnx_nodes_case(f"{op_type}_{rows}_{y_scale}", nodes, operands, ["y"])


HALVES = (((0.0625, 0.0625), 0.125), ((0.0625, 0.125), 0.25), ((0.0625, 0.0625), 0.375), ((0.5, 1.0), 1.5))
"""Scales of two operands and an output for which many results lie halfway between two integers.

onnxruntime computes them in float32. Powers of two keep its products and sums exact, so that a half is one.
"""


CASES: list[Case] = [
    unsigned_matmul(),
    transposed_convolution("int8", 0),
    transposed_convolution("int16", 1),
    *(
        between(f"{op}_{dtype}", op, [0.05], 0.02, 5, dtype)
        for op in (
            "Sigmoid",
            "Tanh",
            "LeakyRelu",
            "HardSigmoid",
            "HardSwish",
            "Elu",
            "Gelu",
            "Exp",
            "Softplus",
            "Abs",
        )
        for dtype in ("int8", "uint8")
    ),
    between("saturated", "Sigmoid", [3.0], 1 / 256, -128),
    *(
        between(f"{op}_{dtype}_{scales}_{y_scale}", op, list(scales), y_scale, 7, dtype, lsb=0)
        for op in ("Add", "Sub")
        for dtype in ("int8", "uint8")
        for scales, y_scale in (((0.0513, 0.0307), 0.0411), *HALVES)
    ),
    *(
        between(f"Mul_{dtype}_{y_scale}", "Mul", [0.25, 0.0625], y_scale, 7, dtype, lsb=0)
        for dtype in ("int8", "uint8")
        for y_scale in (0.1017, 0.125, 0.25, 0.375)
    ),
    between("PRelu_halves", "PRelu", [0.0625, 0.5], 0.125, -3, lsb=0),
    *(
        reduction(op, rows, y_scale)
        for op in ("ReduceMean", "ReduceSum")
        for rows in (2, 6, 8)
        for y_scale in (0.0625, 0.125, 0.375)
    ),
    *(
        pool(f"{op}_{dtype}_{kernel}", op, kernel, dtype)
        for op in ("AveragePool", "GlobalAveragePool")
        for dtype in ("int8", "uint8")
        for kernel in ((2, 2), (2, 3), (3, 3))
    ),
    pool("AveragePool_padded", "AveragePool", (3, 3), "int8", pads=[1, 1, 1, 1]),
    pool("AveragePool_rescaled", "AveragePool", (2, 2), "int8", y_scale=0.125),
    *(between(f"{op}_scales", op, [0.05, 0.03], 0.05, 7) for op in ("Min", "Max")),
    *(between(op, op, [0.05], 0.05, 0, keepdims=1) for op in ("ReduceMean", "ReduceMax", "ReduceSum")),
    *(between(f"{op}_unit", op, [2.0**-12], 2.0**-15, dtype="int16", lsb=3) for op in ("Sigmoid", "Tanh")),
    *(
        between(f"{op}_int16", op, [0.0003], scale, dtype="int16", lsb=LARGEST_ERROR)
        for op, scale in (
            ("Sigmoid", 0.00003),
            ("Tanh", 0.00003),
            ("Gelu", 0.0003),
            ("Elu", 0.0003),
            ("Erf", 0.00003),
            ("Softplus", 0.0003),
            ("Softsign", 0.00004),
        )
    ),
    between("LeakyRelu_int16", "LeakyRelu", [0.0003], 0.0002, dtype="int16", alpha=0.3),
    between("HardSigmoid_int16", "HardSigmoid", [0.0003], 0.00003, dtype="int16"),
    between("Relu_int16", "Relu", [0.0003], 0.0003, dtype="int16"),
    between("Relu_int16_rescaled", "Relu", [0.0003], 0.0001, dtype="int16"),
    *(
        between(f"{op}_int16_halves", op, [2.0**-10], 2.0**-8, dtype="int16", lsb=0)
        for op in ("Relu", "Abs", "Neg", "Identity")
    ),
    between("LeakyRelu_int16_halves", "LeakyRelu", [2.0**-10], 2.0**-8, dtype="int16", lsb=0, alpha=0.25),
    between("clip", "Relu", [0.05], 0.05),
    int16_mean_of_two(),
    *(
        one_sided(op, zero, y_zero, **attributes)
        for op, attributes in (("Add", {}), ("AveragePool", {"kernel_shape": [2, 2]}))
        for zero, y_zero in ((127, -128), (127, 0), (-128, 127), (-128, -128))
    ),
    axis_of_one_scale(),
    between("clip_rescaled", "Relu", [0.05], 0.03, -128),
]
