# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights that are not numbers are refused by name; infinite limits and masks are not."""

from __future__ import annotations

import numpy as np

from tests.first_sight import Case, Refused, Right
from tests.support.onnx_models import model, node
from tests.support.tflite_writer import Call, Part, Value, write

RNG = np.random.default_rng(5)


def dense(bad: float, *, bias: bool = False) -> bytes:
    w, b = RNG.normal(0, 1, (4, 3)).astype(np.float32), np.ones(3, np.float32)
    (b if bias else w).reshape(-1)[2] = bad
    return model([node("Gemm", "x weights bias", "y")], {"x": [1, 4]}, "y", weights=w, bias=b)


def scaled() -> bytes:
    factor = np.array([1, np.nan, 2], np.float32)
    return model([node("Mul", "x factor", "y")], {"x": [1, 3]}, "y", factor=factor)


def masked() -> bytes:
    """An attention mask, and a branch that nothing uses."""
    mask = np.array([[0, -np.inf, 0]], np.float32)
    nodes = [node("Mul", "x unused", "z"), node("Add", "x mask", "h"), node("Softmax", "h", "y", axis=1)]
    return model(nodes, {"x": [1, 3]}, "y", mask=mask, unused=np.array([np.nan], np.float32))


def tflite() -> bytes:
    values = [Value("x", (1, 2)), Value("y", (1, 2))]
    values.append(Value.constant("kernel", np.array([[1, np.inf], [2, 3]], np.float32)))
    call = Call("FULLY_CONNECTED", ["x", "kernel", ""], ["y"], "FullyConnectedOptions")
    return write(Part(values, [call], ["x"], ["y"]))


CASES: list[Case] = [
    Refused("nan", lambda: dense(np.nan), ("'weights'", "1 NaN")),
    Refused("infinite", lambda: dense(-np.inf), ("'weights'", "1 infinite")),
    Refused("bias", lambda: dense(np.nan, bias=True), ("'bias'",)),
    Refused("factor", scaled, ("'factor'", "1 NaN among its 3")),
    Refused("tflite", tflite, ("'kernel'", "1 infinite"), "tflite"),
    Right("mask", masked),
]
