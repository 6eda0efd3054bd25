# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators that onnxruntime's optimiser makes of several standard ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.support.cases import Const, onnx_case, onnx_nodes_case
from tinyml.ir import Array

RNG = np.random.default_rng(20261116)


def values(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


X, W, B = values(1, 3, 6, 5), Const(values(4, 3, 3, 3)), Const(values(4))
A, M = values(3, 5), Const(values(5, 4))
ROWS, SKIP, SCALE, OFFSET = values(2, 3, 8), values(2, 3, 8), Const(values(8)), Const(values(8))
SAME = {"pads": [1, 1, 1, 1]}
ACTIVATIONS: dict[str, dict[str, Any]] = {
    "Relu": {},
    "Tanh": {},
    "Sigmoid": {},
    "LeakyRelu": {"activation_params": [0.2]},
    "HardSigmoid": {"activation_params": [0.3, 0.6]},
    "Clip": {"activation_params": [-0.5, 0.75]},
}


def case(name: str, op_type: str, *inputs: Any, **more: Any) -> Any:
    return onnx_case(name, op_type, list(inputs), domain="com.microsoft", **more)


CASES = [
    *(
        case(f"conv_{name}", "FusedConv", X, W, B, activation=name, **SAME, **more)
        for name, more in ACTIVATIONS.items()
    ),
    case("conv_sum", "FusedConv", X, W, B, values(1, 4, 6, 5), activation="Relu", **SAME),
    case("conv_sum_without_bias", "FusedConv", X, W, None, values(1, 4, 2, 3), strides=[2, 1]),
    case("conv_strided", "FusedConv", X, W, activation="Relu", strides=[2, 1], dilations=[1, 2]),
    case("gemm_relu", "FusedGemm", A, M, Const(values(4)), activation="Relu"),
    # alpha of the activation, not of the product
    case(
        "gemm_leaky",
        "FusedGemm",
        A,
        Const(values(4, 5)),
        Const(values(4)),
        activation="LeakyRelu",
        activation_alpha=0.25,
        alpha=0.5,
        beta=2.0,
        transB=1,
    ),
    case("matmul_plain", "FusedMatMul", A, M, alpha=0.125),
    case("matmul_transposed_left", "FusedMatMul", values(2, 5, 3), values(2, 5, 4), transA=1),
    case("matmul_transposed_right", "FusedMatMul", values(2, 3, 5), values(2, 4, 5), transB=1, alpha=0.3),
    case("matmul_transposed_constant", "FusedMatMul", A, Const(values(4, 5)), transB=1),
    case("matmul_vector", "FusedMatMul", values(5), M, transA=1),
    case("bias_gelu", "BiasGelu", ROWS, OFFSET),
    case("fast_gelu", "FastGelu", ROWS, atol=1e-5),
    case("fast_gelu_bias", "FastGelu", ROWS, OFFSET, atol=1e-5),
    case("quick_gelu", "QuickGelu", ROWS),
    case("quick_gelu_alpha", "QuickGelu", ROWS, alpha=0.5),
    case("skip", "SkipLayerNormalization", ROWS, SKIP, SCALE, OFFSET, epsilon=1e-5),
    case("skip_without_offset", "SkipLayerNormalization", ROWS, SKIP, SCALE, epsilon=0.25),
    case("skip_bias", "SkipLayerNormalization", ROWS, SKIP, SCALE, OFFSET, Const(values(8))),
    onnx_nodes_case(
        "skip_and_sum",
        [
            helper.make_node(
                "SkipLayerNormalization", ["x", "s", "g"], ["y", "", "", "sum"], domain="com.microsoft"
            )
        ],
        {"x": ROWS, "s": SKIP, "g": SCALE},
        ["y", "sum"],
    ),
    case("skip_simplified", "SkipSimplifiedLayerNormalization", ROWS, SKIP, SCALE, Const(values(8))),
]
