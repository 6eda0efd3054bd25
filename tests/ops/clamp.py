# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Clamp: limits known now, limits known later, limits that cross."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Const, onnx_case
from tests.support.data import real, whole

LOW, HIGH = np.float32(-1.0), np.float32(0.75)

CASES: list[Case] = [
    onnx_case("both", "Clip", [real(20), Const(np.array(LOW)), Const(np.array(HIGH))]),
    onnx_case("low", "Clip", [real(20), Const(np.array(LOW))]),
    onnx_case("high", "Clip", [real(20), None, Const(np.array(HIGH))]),
    onnx_case("none", "Clip", [real(20)]),
    onnx_case("run_time", "Clip", [real(20), np.array(LOW), np.array(HIGH)]),
    onnx_case("crossed", "Clip", [real(20), Const(np.array(HIGH)), Const(np.array(LOW))], oracle="reference"),
    onnx_case("crossed_run_time", "Clip", [real(20), np.array(HIGH), np.array(LOW)], oracle="reference"),
    onnx_case("attributes", "Clip", [real(20)], opset=7, min=-1.0, max=0.5),
    *(
        onnx_case(f"{t}", "Clip", [whole(20, dtype=t), Const(np.array(3, t)), Const(np.array(50, t))])
        for t in ("int8", "uint8", "int32", "uint32", "int64", "uint64")
    ),
    onnx_case("int8_edges", "Clip", [whole(20, dtype="int8"), Const(np.array(-128, "int8"))]),
    onnx_case("relu6_after_add", "Clip", [real(20), Const(np.float32(0)), Const(np.float32(6))]),
]
