# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Quantised operators at the ends of their arithmetic: huge factors, biases and sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.ops.quantised import between
from tests.support.cases import Case, Const, Stored, onnx_nodes_case, op_case
from tests.support.data import whole
from tinyml.ir import Array, DType, Quant, TensorType
from tinyml.ops.softmax.softmax import Softmax

FINEST = 1e-10
"""Scale of an output that is 0 wherever it was calibrated: everything else is out of its range."""

X = whole(1, 4, 5, 5, low=-128, high=127, dtype="int8")
WEIGHTS = whole(3, 4, 3, 3, low=-127, high=127, dtype="int8", seed=1)
SPREAD = whole(4, 3, 3, 3, low=-127, high=127, dtype="int8", seed=1)  # of a transposed convolution


def layer(
    name: str,
    op_type: str,
    weights: Array,
    scales: list[float],
    y_scale: float,
    *,
    zeros: list[int] | None = None,
    bias: Array | None = None,
    bias_scale: float = 1.0,
    **more: Any,
) -> Case:
    """A layer with weights between Dequantize and Quantize; a float bias is not dequantised."""
    operands: dict[str, Array | Const] = {
        "x": X,
        "xs": Const(np.array(0.003, np.float32)),
        "xz": Const(np.array(3, np.int8)),
        "w": Const(weights),
        "ws": Const(np.array(scales, np.float32)),
        "wz": Const(np.array(zeros or [0] * len(scales), np.int8)),
        "ys": Const(np.array(y_scale, np.float32)),
        "yz": Const(np.array(-4, np.int8)),
    }
    axis = 1 if op_type == "ConvTranspose" else 0
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"], axis=axis),
    ]
    names = ["xr", "wr"]
    if bias is not None:
        operands["b"] = Const(bias)
        names.append("b" if bias.dtype == np.float32 else "br")
    if names[-1] == "br":
        operands["bs"] = Const(np.array(bias_scale, np.float32))
        nodes.append(helper.make_node("DequantizeLinear", ["b", "bs"], ["br"]))
    nodes.append(helper.make_node(op_type, names, ["r"], **more))
    nodes.append(helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]))
    return onnx_nodes_case(name, nodes, operands, ["y"], lsb=1)


def mean(name: str, op_type: str) -> Case:
    """Of so many of the least int16 that 32 bits do not hold their sum; floats do, as powers of two."""
    operands: dict[str, Array | Const] = {
        "x": np.full((1, 1, 257, 256), -32768, np.int16),
        "s": Const(np.array(2.0**-15, np.float32)),
        "z": Const(np.array(0, np.int16)),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["r"]),
        helper.make_node(op_type, ["r"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["y"]),
    ]
    return onnx_nodes_case(name, nodes, operands, ["y"])


def matmul(dtype: str) -> Case:
    most = int(np.iinfo(dtype).max)
    operands: dict[str, Array | Const] = {
        "a": whole(5, 6, low=-most, high=most, dtype=dtype),
        "b": whole(6, 7, low=-most, high=most, dtype=dtype, seed=1),
        "s": Const(np.array(0.1, np.float32)),
        "z": Const(np.array(0, dtype)),
        "ys": Const(np.array(FINEST, np.float32)),
    }
    nodes = [
        *(helper.make_node("DequantizeLinear", [name, "s", "z"], [f"{name}r"]) for name in "ab"),
        helper.make_node("MatMul", ["ar", "br"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "z"], ["y"]),
    ]
    return onnx_nodes_case(f"fine_MatMul_{dtype}", nodes, operands, ["y"])


def equal_elements(count: int) -> Case:
    """TensorFlow Lite's softmax shifts by 32 and more here; none of the results is as much as one step."""
    probability = TensorType((1, count), DType.INT8, Quant.per_tensor(1 / 256, -128))
    x = Stored(np.full((1, count), 9, np.int8), Quant.per_tensor(0.1, 0))
    expected = np.full((1, count), -128, np.int8)
    return op_case(f"softmax_{count}", Softmax(), [x], outputs=[probability], expected=[expected])


CASES: list[Case] = [
    layer("fine_Conv", "Conv", WEIGHTS, [0.002] * 3, FINEST),
    layer("fine_ConvTranspose", "ConvTranspose", SPREAD, [0.002] * 3, FINEST),
    *(
        between(f"fine_{op}_{dtype}", op, [0.1, 0.07][:operands], FINEST, dtype=dtype)
        for op, operands in (("Add", 2), ("Mul", 2), ("Relu", 1), ("ReduceSum", 1))
        for dtype in ("int8", "int16")
    ),
    between("finest_HardSigmoid_int16", "HardSigmoid", [0.0003], 1e-12, dtype="int16"),
    matmul("int8"),
    matmul("int16"),
    # both scales of the sums are below 1e-8, so an absolute tolerance would take them for the same
    layer(
        "bias_of_another_scale",
        "Conv",
        WEIGHTS,
        [1e-6] * 3,
        1e-3,
        bias=np.array([10_000_000, -5_000_000, 30_000], np.int32),
        bias_scale=9e-9,
    ),
    layer(
        "bias_of_a_tiny_filter",
        "Conv",
        WEIGHTS,
        [1e-3, 1e-12, 1e-3],
        0.01,
        bias=np.array([0.1, 0.2, -0.3], np.float32),
    ),
    layer("huge_bias", "Conv", WEIGHTS, [1e-3] * 3, 0.01, bias=np.array([1e9, -1e9, 0.1], np.float32)),
    *(
        layer(f"{op}_weight_zeros", op, weights, [0.002, 0.001, 0.002], 0.01, zeros=[0, 9, -5])
        for op, weights in (("Conv", WEIGHTS), ("ConvTranspose", SPREAD))
    ),
    mean("pool_of_many", "GlobalAveragePool"),
    mean("mean_of_many", "ReduceMean"),
    equal_elements(600),
    equal_elements(4000),
]
