# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sums of bytes in one step: the same bytes as TensorFlow Lite's three, for all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from tinyml.ir import Array, DType, Layer, Quant, Tensor
from tinyml.ops.elementwise import binary_int8 as integers
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.shared import linear as _linear
from tinyml.ops.shared.quant import NO_CLAMP


def layer(function: str, scales: tuple[float, float, float], zeros: tuple[int, int, int]) -> Layer:
    a, b, y = (
        Tensor(name, (1,), DType.INT8, Quant.per_tensor(scale, zero))
        for name, scale, zero in zip("aby", scales, zeros, strict=True)
    )
    return Layer("sum", Binary(function), (a, b), (y,))


@pytest.mark.parametrize("function", ["add", "sub"])
def test_most_sums_have_one_step_and_it_is_exact(function: str) -> None:
    rng = np.random.default_rng(3)
    every = np.arange(-128, 128, dtype=np.int64)
    a, b = every[:, None], every[None, :]
    found = 0
    for _ in range(20):
        scales = tuple(float(s) for s in np.exp(rng.uniform(np.log(0.01), np.log(0.2), 3)))
        zeros = tuple(int(z) for z in rng.integers(-128, 128, 3))
        case = layer(function, (scales[0], scales[1], scales[2]), (zeros[0], zeros[1], zeros[2]))
        form = integers.linear_sum(function, NO_CLAMP, case)
        if form is None:
            continue
        found += 1
        sums = a * form.factors[0] + b * form.factors[1] + form.offset
        assert np.abs(sums).max() < 1 << 31
        assert np.array_equal(
            np.clip(sums >> form.shift, -128, 127), integers.evaluate(function, NO_CLAMP, case, a, b)
        )
    assert found >= 15


def test_halves_away_from_zero_are_a_line_a_little_steeper() -> None:
    def mean(a: Array, b: Array) -> Array:
        return np.asarray(np.sign(a + b) * ((np.abs(a + b) + 1) // 2))

    assert _linear.find(mean, np.arange(-128, 128), (0.5, 0.5)) is not None


def test_functions_without_a_linear_form() -> None:
    assert _linear.find(np.maximum, np.arange(-128, 128), (0.5, 0.5)) is None
