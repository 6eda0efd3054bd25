# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Unary: every function on values around its interesting points."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, onnx_case
from tests.support.data import real, truth, whole

ANY = np.array([-50, -5, -2.5, -1.5, -0.5, -1e-3, 0, 1e-3, 0.5, 1.5, 2.5, 5, 50], np.float32)
POSITIVE = np.array([1e-6, 0.01, 0.5, 1, 1.5, 7, 1e6], np.float32)
UNIT = np.array([-1, -0.9, -0.1, 0, 0.3, 0.99, 1], np.float32)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def edges(dtype: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    info = np.iinfo(dtype)
    return np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype)


CASES: list[Case] = [
    *(
        onnx_case(name.lower(), name, [ANY])
        for name in (
            *("Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Exp", "Sin", "Cos", "Tan", "Atan"),
            *("Tanh", "Asinh", "Erf", "Sigmoid", "Softplus", "Softsign", "HardSwish", "Gelu"),
            *("Elu", "Celu", "Selu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Reciprocal", "Relu"),
        )
    ),
    *(onnx_case(name.lower(), name, [ANY / 10]) for name in ("Sinh", "Cosh")),
    *(onnx_case(name.lower(), name, [POSITIVE]) for name in ("Sqrt", "Log")),
    *(onnx_case(name.lower(), name, [UNIT]) for name in ("Asin", "Acos", "Atanh")),
    onnx_case("acosh", "Acosh", [POSITIVE + 1]),
    onnx_case("mish", "Mish", [ANY], opset=18),
    onnx_case("swish", "Swish", [ANY], opset=24, oracle="reference", alpha=1.5),
    onnx_case("erfc", "Erfc", [ANY]),  # tf2onnx writes it, ONNX has none
    onnx_case("gelu_tanh", "Gelu", [ANY], approximate="tanh"),
    onnx_case("gelu_microsoft", "Gelu", [ANY], domain="com.microsoft"),
    onnx_case("elu_alpha", "Elu", [ANY], alpha=2.0),
    onnx_case("celu_alpha", "Celu", [ANY], alpha=2.0),
    onnx_case("selu_given", "Selu", [ANY], alpha=2.0, gamma=3.0),
    onnx_case("leaky_alpha", "LeakyRelu", [ANY], alpha=0.1),
    onnx_case("hard_sigmoid_given", "HardSigmoid", [ANY], alpha=0.5, beta=0.6),
    onnx_case("thresholded_alpha", "ThresholdedRelu", [ANY], alpha=2.0),
    onnx_case("shrink_soft", "Shrink", [ANY], lambd=1.5, bias=1.5),
    onnx_case("shrink_hard", "Shrink", [ANY], lambd=1.5),
    onnx_case("scalar", "Exp", [real()]),
    onnx_case("four_axes", "Sigmoid", [real(2, 3, 1, 5)]),
    *(
        onnx_case(f"double_{name.lower()}", name, [real(7, dtype="float64")])
        for name in ("Exp", "Neg", "Abs")
    ),
    onnx_case("double_erf", "Erf", [real(7, dtype="float64")], oracle="reference"),
    *(onnx_case(f"abs_{t}", "Abs", [edges(t)], oracle="reference") for t in INTEGERS),
    *(onnx_case(f"sign_{t}", "Sign", [edges(t)], oracle="reference") for t in INTEGERS),
    *(onnx_case(f"neg_{t}", "Neg", [edges(t)], oracle="reference") for t in INTEGERS if t[0] == "i"),
    *(onnx_case(f"not_{t}", "BitwiseNot", [edges(t)]) for t in INTEGERS),
    onnx_case("not", "Not", [truth(3, 4)]),
    onnx_case("is_nan", "IsNaN", [np.array([np.nan, 1, np.inf, -np.inf], np.float32)]),
    *(
        onnx_case(
            f"is_inf_{p}{n}",
            "IsInf",
            [np.array([np.nan, 1, np.inf, -np.inf], np.float32)],
            detect_positive=p,
            detect_negative=n,
        )
        for p in (0, 1)
        for n in (0, 1)
    ),
    onnx_case("relu_int", "Relu", [whole(9)]),
]
