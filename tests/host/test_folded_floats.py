# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float constants that the compiler computes: the same on every CPU, because it computes them in double.

numpy's float32 functions and its BLAS differ between CPUs in the last bit (tanh, sin, matrix products, …).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tinyml.ir import Array, Layer, Op, Tensor
from tinyml.ops.dense.dense import Dense
from tinyml.ops.dense.matmul import MatMul
from tinyml.ops.elementwise.power import Power
from tinyml.ops.elementwise.unary import Unary

SIDE = 48


def folded(op: Op, *constants: Array) -> Array:
    tensors = [Tensor.constant(f"c{i}", value) for i, value in enumerate(constants)]
    (type_,) = op.infer(tensors)
    layer = Layer("layer", op, tuple(tensors), (Tensor.of("y", type_),))
    found = layer.folded()
    assert found is not None
    return found[0].value


def numbers(seed: int) -> Array:
    return np.random.default_rng(seed).normal(0, 2, (SIDE, SIDE)).astype(np.float32)


@pytest.mark.parametrize("function", ["tanh", "sin", "cos", "atan", "exp"])
def test_functions(function: str) -> None:
    right: Callable[[float], float] = getattr(math, function)
    x = numbers(1)
    wanted = np.array([right(float(value)) for value in x.flat]).astype(np.float32)
    assert np.array_equal(folded(Unary(function), x).reshape(-1), wanted)


def test_powers() -> None:
    x, y = np.abs(numbers(2)), numbers(3)
    wanted = [math.pow(float(a), float(b)) for a, b in zip(x.flat, y.flat, strict=True)]
    assert np.array_equal(folded(Power(), x, y).reshape(-1), np.array(wanted).astype(np.float32))


@pytest.mark.parametrize("op", [MatMul(), Dense()], ids=["MatMul", "Dense"])
def test_products_of_matrices(op: Op) -> None:
    x, y = numbers(4), numbers(5)
    columns = y if isinstance(op, Dense) else y.T
    wanted = [
        math.fsum(float(a) * float(b) for a, b in zip(row, column, strict=True))
        for row in x
        for column in columns
    ]
    assert np.array_equal(folded(op, x, y).reshape(-1), np.array(wanted).astype(np.float32))


def test_too_large_for_float32_is_infinite_without_a_warning() -> None:
    assert folded(Unary("exp"), np.array([100], np.float32))[0] == np.inf
