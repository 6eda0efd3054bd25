# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where, casts, one-hot, triangles, dropout."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Const, onnx_case, op_case
from tests.support.data import real, truth, whole
from tinyml.ir import Array, DType
from tinyml.ops.elementwise.cast import Cast

TYPES = tuple(dtype.value for dtype in DType)
ODD = np.array(
    [np.nan, np.inf, -np.inf, -1.7, 0.9, 1e30, -1e30, 300.0, -300.0, 2147483648.0, -0.5], np.float32
)


def saturated(values: Array, dtype: str) -> Array:
    """Python's integers as oracle."""
    info = np.iinfo(dtype)

    def one(value: float) -> int:
        if np.isnan(value):
            return 0
        if np.isinf(value):
            return int(info.max if value > 0 else info.min)
        return int(min(max(int(value), int(info.min)), int(info.max)))

    return np.array([one(float(v)) for v in values], dtype)


def some(dtype: str) -> Array:
    if dtype == "bool":
        return truth(8)
    return real(8, dtype=dtype) if dtype.startswith("float") else whole(8, dtype=dtype)


CASES: list[Case] = [
    onnx_case("where", "Where", [truth(2, 3), real(2, 3), real(2, 3, seed=1)]),
    onnx_case("where_broadcast", "Where", [truth(2, 1), real(3), Const(real(1, 1))]),
    *(
        onnx_case(f"where_{t}", "Where", [truth(8), some(t), some(t)[::-1].copy()], oracle="reference")
        for t in TYPES
    ),
    *(
        op_case(f"cast_{a}_{b}", Cast(DType(b)), [some(a)], expected=[some(a).astype(b)])
        for a in TYPES
        for b in TYPES
        if not (a.startswith("float") and b.startswith("uint"))  # negative: saturates, below
    ),
    *(
        op_case(f"cast_odd_{a}_{b}", Cast(DType(b)), [ODD.astype(a)], expected=[saturated(ODD.astype(a), b)])
        for a in ("float32", "float64")
        for b in TYPES
        if "int" in b
    ),
    onnx_case("cast_reader", "Cast", [real(5)], to=7),
    onnx_case("cast_same", "Cast", [real(5)], to=1),
    onnx_case("cast_like", "CastLike", [real(5), whole(1)], oracle="reference"),
    onnx_case("bitcast", "BitCast", [real(2, 3)], opset=26, oracle="reference", to=6),
    *(
        onnx_case(
            f"one_hot_{a}",
            "OneHot",
            [np.array([[1, 9], [-3, 0]], np.int64), Const(np.array(4)), np.array([-1, 5], np.float32)],
            axis=a,
        )
        for a in (0, 1, -1)
    ),
    onnx_case(
        "one_hot_float",
        "OneHot",
        [np.array([1, 2], np.float32), Const(np.array([4.0], np.float32)), Const(np.array([0, 7], np.int64))],
        expected=[np.array([[0, 7, 0, 0], [0, 0, 7, 0]], np.int64)],
    ),
    *(
        onnx_case(f"trilu_{u}_{k}", "Trilu", [real(2, 4, 5), Const(np.array(k))], upper=u)
        for u in (0, 1)
        for k in (-9, -1, 0, 2, 9)
    ),
    onnx_case("trilu_int64", "Trilu", [whole(4, 3, dtype="int64")]),
    onnx_case("dropout", "Dropout", [real(2, 3)], outputs=2),
    onnx_case("dropout_old", "Dropout", [real(2, 3)], opset=7, ratio=0.3),
]
