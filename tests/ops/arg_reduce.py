# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ArgReduce: first and last of equals, all axes."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, onnx_case
from tests.support.data import real, whole

TIES = np.array([[1, 3, 3, 2], [5, 5, 0, 0]], np.float32)

CASES: list[Case] = [
    *(
        onnx_case(f"{op}_axis_{a}", op, [real(2, 3, 4)], axis=a)
        for op in ("ArgMax", "ArgMin")
        for a in (0, 1, -1)
    ),
    *(
        onnx_case(f"{op}_ties_{last}_{keep}", op, [TIES], axis=1, select_last_index=last, keepdims=keep)
        for op in ("ArgMax", "ArgMin")
        for last in (0, 1)
        for keep in (0, 1)
    ),
    onnx_case("int8", "ArgMax", [whole(3, 20, dtype="int8")], axis=1),
    onnx_case("default_axis", "ArgMin", [whole(3, 20)]),
    onnx_case("one", "ArgMax", [real(3, 1)], axis=1),
]
