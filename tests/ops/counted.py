# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators whose number of results depends on data, and what may follow them."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.support.cases import Case, Const, onnx_case, onnx_nodes_case
from tests.support.data import real, whole
from tinyml.ir import Array

node = helper.make_node


def some(*shape: int, dtype: str = "float32") -> Array:
    """A third of the elements are not zero."""
    rng = np.random.default_rng(len(shape) + sum(shape))
    return (rng.integers(1, 9, shape) * (rng.integers(0, 3, shape) == 0)).astype(dtype)


def truth(count: int) -> Array:
    return np.random.default_rng(count).integers(0, 2, count).astype(bool)


def number(value: int) -> Array:
    return np.array([value], np.int64)


CHOSEN = [
    node("NonZero", ["m"], ["at"]),
    node("Transpose", ["at"], ["rows"], perm=[1, 0]),
    node("Squeeze", ["rows", "one"], ["places"]),
    node("Gather", ["x", "places"], ["kept"]),
]
"""The rows of x where m is not zero, as exporters write a mask."""
TABLE: dict[str, Array | Const] = {"m": some(9, dtype="int64"), "x": real(9, 4), "one": Const(number(1))}


def after(name: str, nodes: list[object], output: str, **more: Array | Const) -> Case:
    return onnx_nodes_case(name, [*CHOSEN, *nodes], {**TABLE, **more}, [output], opset=18)  # type: ignore[list-item]


CASES: list[Case] = [
    onnx_case("non_zero", "NonZero", [some(4, 5)]),
    onnx_case("non_zero_3d", "NonZero", [some(2, 3, 4, dtype="int8")], oracle="reference"),
    onnx_case("non_zero_all", "NonZero", [np.ones(5, np.int32)]),
    onnx_case("non_zero_none", "NonZero", [np.zeros((2, 2), np.float32)]),
    onnx_case("non_zero_bool", "NonZero", [truth(11)]),
    onnx_case("compress", "Compress", [real(4, 5, 3), truth(5)], axis=1),
    onnx_case("compress_short", "Compress", [real(6, 3), truth(4)], axis=0),
    onnx_case("compress_flat", "Compress", [real(3, 4), truth(12)]),
    onnx_case(
        "compress_bytes", "Compress", [whole(5, 7, dtype="int8"), truth(7)], axis=-1, oracle="reference"
    ),
    onnx_case("unique", "Unique", [whole(20, low=-3, high=4, dtype="int64")], outputs=4),
    onnx_case("unique_in_order", "Unique", [whole(20, low=-3, high=4, dtype="int64")], outputs=4, sorted=0),
    onnx_case("unique_rows", "Unique", [some(8, 2)], outputs=4, axis=0),
    onnx_case("unique_columns", "Unique", [some(2, 7)], outputs=4, axis=1),
    onnx_case("unique_bytes", "Unique", [whole(30, low=-2, high=3, dtype="int8")], outputs=4),
    onnx_case("unique_one", "Unique", [np.zeros((3, 3), np.float32)], outputs=4),
    onnx_case("top", "TopK", [real(3, 7), number(4)], outputs=2),
    onnx_case("top_all", "TopK", [real(6, 2), number(6)], outputs=2, axis=0, largest=0),
    onnx_case("top_none", "TopK", [real(5), number(0)], outputs=2),
    onnx_case("top_equal", "TopK", [some(2, 9, 2), number(5)], outputs=2, axis=1),
    after("kept", [], "kept"),
    after("arithmetic", [node("Relu", ["kept"], ["r"]), node("Mul", ["r", "kept"], ["y"])], "y"),
    after("sum_of_rows", [node("ReduceSum", ["kept", "one"], ["y"], keepdims=0)], "y"),
    after("best_of_rows", [node("ArgMax", ["kept"], ["y"], axis=1)], "y"),
    after("softmax_of_rows", [node("Softmax", ["kept"], ["y"], axis=1)], "y"),
    after("product", [node("MatMul", ["kept", "w"], ["y"])], "y", w=Const(real(4, 3))),
    after("beside", [node("Concat", ["kept", "kept"], ["y"], axis=1)], "y"),
    after("columns", [node("Split", ["kept"], ["a", "y"], axis=1, num_outputs=2)], "y"),
    after("shape_known", [node("Reshape", ["kept", "s"], ["y"])], "y", s=Const(np.array([-1, 2, 2]))),
    after("many", [node("Shape", ["kept"], ["y"])], "y"),
    after("width", [node("Shape", ["kept"], ["y"], start=1)], "y"),
    after("again", [node("NonZero", ["kept"], ["y"])], "y"),
    after("unique_of_some", [node("Unique", ["kept"], ["y"], axis=0)], "y"),
    after(
        "best_of_some",
        [
            node("ReduceSum", ["kept", "one"], ["s"], keepdims=0),
            node("Shape", ["s"], ["n"]),
            node("Min", ["n", "k"], ["fewer"]),
            node("TopK", ["s", "fewer"], ["v", "y"]),
        ],
        "y",
        k=Const(number(2)),
    ),
    after(
        "positive_of_some",
        [
            node("ReduceSum", ["kept", "one"], ["s"], keepdims=0),
            node("Greater", ["s", "none"], ["c"]),
            node("Compress", ["kept", "c"], ["y"], axis=0),
        ],
        "y",
        none=Const(np.zeros((), np.float32)),
    ),
    onnx_nodes_case(
        "first_of_some",
        [*CHOSEN, node("Slice", ["kept", "zero", "two", "zero"], ["y"])],
        {**TABLE, "zero": Const(number(0)), "two": Const(number(2))},
        ["y"],
        opset=18,
    ),
]
