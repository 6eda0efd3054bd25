# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Reduce: every function, every kind of axes."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Const, Stored, onnx_case, op_case
from tests.support.data import real, truth, whole
from tinyml.ir import DType, Quant, TensorType
from tinyml.ops.reduce.reduce import Reduce

NAMES = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"),
    *("ReduceSumSquare", "ReduceLogSumExp"),
)
NAN = np.array([[1, np.nan, 2], [3, 4, 5]], np.float32)


def axes(*values: int) -> Const:
    return Const(np.array(values, np.int64))


CASES: list[Case] = [
    *(onnx_case(f"{name}_last", name, [real(2, 3, 4), axes(-1)]) for name in NAMES),
    *(onnx_case(f"{name}_middle", name, [real(2, 3, 4), axes(1)], keepdims=0) for name in NAMES),
    *(onnx_case(f"{name}_two", name, [real(2, 3, 4, 5), axes(0, 2)]) for name in NAMES),
    *(onnx_case(f"{name}_all", name, [real(2, 3, 2)], keepdims=0) for name in NAMES),
    onnx_case("log_sum", "ReduceLogSum", [real(2, 3, low=0.1), axes(1)]),
    onnx_case("images", "ReduceMean", [real(1, 3, 4, 5), axes(2, 3)]),
    *(onnx_case(f"{name}_attribute", name, [real(2, 3, 4)], opset=11, axes=[0, -1]) for name in NAMES),
    *(
        onnx_case(f"{name}_noop", name, [real(2, 3, low=0.1)], oracle="reference", noop_with_empty_axes=1)
        for name in ("ReduceSum", "ReduceSumSquare", "ReduceL2", "ReduceMax")
    ),
    onnx_case("scalar", "ReduceSum", [real()]),
    *(
        onnx_case(f"{name}_{t}", name, [whole(3, 4, dtype=t), axes(1)])
        for name in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceSumSquare")
        for t in ("int32", "int64")
    ),
    *(onnx_case(f"max_{t}", "ReduceMax", [whole(3, 4, dtype=t), axes(0)]) for t in ("int8", "uint8")),
    onnx_case("l1_int32", "ReduceL1", [whole(3, 4), axes(1)]),
    onnx_case("double_mean", "ReduceMean", [real(3, 4, dtype="float64"), axes(1)]),
    onnx_case("max_nan", "ReduceMax", [NAN, axes(1)], oracle="reference"),
    onnx_case("min_nan", "ReduceMin", [NAN, axes(1)], oracle="reference"),
    onnx_case(
        "large_exponents", "ReduceLogSumExp", [np.array([[500, 501], [-600, -600]], np.float32), axes(1)]
    ),
    *(
        op_case(
            f"{f}_{a}", Reduce(f, (a,)), [truth(4, 5)], expected=[oracle(truth(4, 5), axis=a, keepdims=True)]
        )
        for f, oracle in (("any", np.any), ("all", np.all), ("max", np.any), ("min", np.all))
        for a in (0, 1)
    ),
    op_case(
        "sum_wraps", Reduce("sum", (0,)), [np.array([127, 1], np.int8)], expected=[np.array([-128], np.int8)]
    ),
    # halves away from zero, once: 5 / 2, -5 / 2, and 667 / 8, which two roundings would make 84
    op_case(
        "sum_of_steps",
        Reduce("sum", (1,)),
        [Stored(np.array([[2, 3], [-2, -3], [120, 120]], np.int8), Quant.per_tensor(0.5, 0))],
        outputs=[TensorType((3, 1), DType.INT8, Quant.per_tensor(1.0, 0))],
        expected=[np.array([[3], [-3], [120]], np.int8)],
    ),
    op_case(
        "sum_of_fine_steps",
        Reduce("sum", (0,)),
        [Stored(np.array([127, 127, 127, 127, 127, 32], np.int8), Quant.per_tensor(0.125, 0))],
        outputs=[TensorType((1,), DType.INT8, Quant.per_tensor(1.0, 0))],
        expected=[np.array([83], np.int8)],
    ),
    op_case("sum_wraps_64", Reduce("prod", (0,)), [np.array([2**62, 4], np.int64)], expected=[np.array([0])]),
]
