"""Softmax, log-softmax and hardmax: along one axis, or over all that follow (before opset 13)."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, onnx_case
from tests.support.data import real

NAMES = ("Softmax", "LogSoftmax", "Hardmax")
LARGE = np.array([[0, 1, 2, 3], [10000, 10001, 10002, 10003]], np.float32)

CASES: list[Case] = [
    *(onnx_case(f"{op}_axis_{a}", op, [real(2, 3, 4)], axis=a) for op in NAMES for a in (0, 1, 2, -1)),
    *(onnx_case(f"{op}_default", op, [real(2, 3, 4)]) for op in NAMES),
    *(onnx_case(f"{op}_large", op, [LARGE]) for op in NAMES),
    *(onnx_case(f"{op}_old_{a}", op, [real(2, 3, 4)], opset=11, axis=a) for op in NAMES for a in (0, 1, 2)),
    *(onnx_case(f"{op}_old_default", op, [real(2, 3, 4)], opset=9) for op in NAMES),
    *(onnx_case(f"{op}_double", op, [real(2, 3, dtype="float64")]) for op in ("Softmax", "LogSoftmax")),
    onnx_case("ties", "Hardmax", [np.array([[1, 2, 2], [3, 3, 0]], np.float32)]),
    onnx_case("one", "Softmax", [real(5)]),
]
