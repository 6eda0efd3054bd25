# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Infinities, and what is not a number: numpy and C agree everywhere, onnxruntime where it is consistent.

Its pools, reductions and TopK give one result or another, depending on where a NaN is among the elements.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.support.cases import Case, Const, onnx_case
from tinyml.ir import Array

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


def odd(*shape: int, seed: int = 0) -> Array:
    """A third of the elements are special."""
    random = np.random.default_rng(seed)
    x = random.normal(size=shape).astype(np.float32)
    chosen = random.random(shape) < 0.33
    x[chosen] = random.choice(SPECIAL, int(chosen.sum()))
    return x


def ours(name: str, op_type: str, inputs: list[Any], **more: Any) -> Case:
    """Only numpy and C are compared."""
    return replace(onnx_case(name, op_type, inputs, **more), expected=None)


def whole(value: int) -> Const:
    return Const(np.array([value], np.int64))


ALIKE = (
    *("Relu", "Abs", "Neg", "Floor", "Ceil", "Sign", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish"),
    *("LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "Erf", "Gelu", "Celu", "ThresholdedRelu", "Mish"),
)

CASES: list[Case] = [
    *(onnx_case(op_type.lower(), op_type, [odd(4, 9)]) for op_type in ALIKE),
    *(
        onnx_case(op_type.lower(), op_type, [odd(6, 9), odd(6, 9, seed=1)])
        for op_type in ("Max", "Min", "Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual")
    ),
    onnx_case("clip", "Clip", [odd(4, 9), Const(np.float32(-0.5)), Const(np.float32(0.5))]),
    onnx_case("softmax", "Softmax", [odd(4, 9)], axis=1),
    ours("max_pool", "MaxPool", [odd(1, 2, 6, 6)], kernel_shape=[2, 2]),
    ours("global_max_pool", "GlobalMaxPool", [odd(1, 2, 6, 6)]),
    ours("max_pool_padded", "MaxPool", [odd(1, 2, 6, 6)], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    ours("max_pool_places", "MaxPool", [odd(1, 2, 6, 6)], outputs=2, kernel_shape=[2, 2]),
    *(ours(op_type.lower(), op_type, [odd(6, 9), whole(1)]) for op_type in ("ReduceMax", "ReduceMin")),
    *(
        ours(f"{op_type.lower()}_{last}", op_type, [odd(9, 7)], axis=1, select_last_index=last)
        for op_type in ("ArgMax", "ArgMin")
        for last in (0, 1)
    ),
    ours("hardmax", "Hardmax", [odd(9, 7)], axis=1),
    *(
        ours(
            f"top_{k}_{largest}",
            "TopK",
            [odd(9, 7), Const(np.array([k], np.int64))],
            outputs=2,
            largest=largest,
        )
        for k in (3, 7)
        for largest in (0, 1)
    ),
]
