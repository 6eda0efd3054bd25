# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Cumulative: sums in both directions, with and without the element itself."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Const, onnx_case
from tests.support.data import real, whole

CASES: list[Case] = [
    *(
        onnx_case(f"sum_{a}_{e}{r}", "CumSum", [real(2, 3, 4), Const(np.array(a))], exclusive=e, reverse=r)
        for a in (0, 1, -1)
        for e in (0, 1)
        for r in (0, 1)
    ),
    *(
        onnx_case(
            f"product_{e}{r}",
            "CumProd",
            [real(2, 3), Const(np.array(1))],
            exclusive=e,
            reverse=r,
            opset=26,
            oracle="reference",
        )
        for e in (0, 1)
        for r in (0, 1)
    ),
    *(onnx_case(f"sum_{t}", "CumSum", [whole(9, dtype=t), Const(np.array(0))]) for t in ("int32", "int64")),
]
