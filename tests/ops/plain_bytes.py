# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Bytes that some nodes of an ONNX model read as numbers, and later ones dequantise."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto, helper

from tests.support.cases import Case, Const, onnx_nodes_case
from tests.support.data import whole
from tinyml.ir import Array

MOVED = helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1])
FLOAT = helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT)


def both(name: str, *nodes: NodeProto, dtype: str = "uint8", **constants: Array) -> Case:
    """``nodes`` compute y from plain bytes, before ``t`` is dequantised."""
    x = whole(1, 4, 6, low=0, high=100, dtype=dtype)
    operands: dict[str, Array | Const] = {
        "x": x,
        "scale": Const(np.float32(0.05)),
        "zero": Const(np.array(7, dtype)),
        **{key: Const(value) for key, value in constants.items()},
    }
    last = helper.make_node("DequantizeLinear", ["t", "scale", "zero"], ["d"])
    return onnx_nodes_case(f"{name}_{dtype}", [MOVED, *nodes, last], operands, ["y", "d"])


CASES: list[Case] = [
    *(both("cast", FLOAT, dtype=dtype) for dtype in ("uint8", "int8", "int16", "uint16")),
    both("cast_input", helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT32)),
    both("add", helper.make_node("Add", ["t", "t"], ["y"])),
    both("equal", helper.make_node("Equal", ["x", "five"], ["y"]), five=np.array(5, np.uint8)),
    both("largest", helper.make_node("ReduceMax", ["t", "axes"], ["y"]), axes=np.array([1])),
    both("largest", helper.make_node("ReduceMax", ["t", "axes"], ["y"]), axes=np.array([1]), dtype="int8"),
    both(
        "product",
        helper.make_node("MatMulInteger", ["x", "w"], ["y"]),
        w=whole(6, 3, low=-9, high=9, dtype="int8", seed=1),
    ),
    both(
        "moved_back",
        helper.make_node("Transpose", ["t"], ["u"], perm=[0, 2, 1]),
        helper.make_node("Cast", ["u"], ["y"], to=TensorProto.FLOAT),
    ),
]
