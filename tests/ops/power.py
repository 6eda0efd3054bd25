# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Power: all mixtures of types."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Const, onnx_case, op_case
from tests.support.data import real, whole
from tinyml.ops.elementwise.power import Power

CASES: list[Case] = [
    onnx_case("floats", "Pow", [real(20, low=0.1), real(20, seed=1)]),
    onnx_case("negative_base", "Pow", [real(6), np.array([0, 1, 2, 3, -1, -2], np.float32)]),
    onnx_case("broadcast", "Pow", [real(3, 2, low=0.1), real(2)]),
    *(onnx_case(f"constant_{e}", "Pow", [real(3, low=0.1), Const(np.float32(e))]) for e in (0.5, 1, 2, 3)),
    onnx_case("square_of_vector", "Pow", [real(), Const(np.array([2.0], np.float32))]),
    *(
        onnx_case(f"float_{t}", "Pow", [real(5), whole(5, low=-3, high=3, dtype=t)], oracle="reference")
        for t in ("int32", "int64", "uint32", "uint8")
    ),
    *(
        onnx_case(f"{a}_{b}", "Pow", [whole(5, low=-3, high=3, dtype=a), whole(5, low=0, high=4, dtype=b)])
        for a in ("int32", "int64")
        for b in ("int32", "int64")
    ),
    onnx_case("int_float", "Pow", [np.array([1, 2, 3, -2], np.int32), np.array([1.5, 2, -1, 3], np.float32)]),
    op_case(
        "wraps",
        Power(),
        [np.array([3, -3, 2, 7], np.int8), np.array([9, 9, 8, 0], np.uint8)],
        expected=[np.array([3**9 % 256 - 256, 256 - 3**9 % 256, 0, 1], np.int64).astype(np.int8)],
    ),
    op_case(
        "negative_exponent",
        Power(),
        [np.array([1, -1, -1, 2, 0], np.int64), np.array([-3, -3, -2, -1, -1], np.int64)],
        expected=[np.array([1, -1, 1, 0, 0], np.int64)],
    ),
]
