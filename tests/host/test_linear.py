# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sums of bytes in one step: the same bytes as TensorFlow Lite's three, for all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from tinyml.ir import Array, DType, Layer, Quant, Tensor
from tinyml.ops.elementwise import binary_int8 as integers
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.pool.integer_mean import from_sum, linear_mean
from tinyml.ops.shared import linear as _linear
from tinyml.ops.shared.quant import NO_CLAMP, clamp_range

BYTES = np.arange(-128, 128)


def layer(function: str, scales: tuple[float, float, float], zeros: tuple[int, int, int]) -> Layer:
    a, b, y = (
        Tensor(name, (1,), DType.INT8, Quant.per_tensor(scale, zero))
        for name, scale, zero in zip("aby", scales, zeros, strict=True)
    )
    return Layer("sum", Binary(function), (a, b), (y,))


@pytest.mark.parametrize("zeros", [(127, 127, -128), (127, 127, 0), (-128, -128, 127), (-128, -128, 0)])
@pytest.mark.parametrize("clamp", [NO_CLAMP, (0.0, np.inf), (-np.inf, 0.0), (-0.5, 0.5)])
def test_results_that_do_not_reach_both_limits(
    zeros: tuple[int, int, int], clamp: tuple[float, float]
) -> None:
    """Operands and sums have one sign, so they are clamped on one side; the other is exact too."""
    a, b = BYTES[:, None], BYTES[None, :]
    for scales in ((0.021, 0.002, 0.021), (0.05, 0.005, 0.1), (0.005, 0.05, 0.006), (0.02, 0.02, 0.5)):
        case = layer("add", scales, zeros)
        form = integers.linear_sum("add", clamp, case)
        if form is not None:
            sums = a * form.factors[0] + b * form.factors[1] + form.offset
            clamped = np.clip(sums >> form.shift, *clamp_range(clamp, case.output))
            assert np.array_equal(clamped, integers.evaluate("add", clamp, case, a, b))


@pytest.mark.parametrize("y_scale", [0.002, 0.02, 0.03, 0.2])
@pytest.mark.parametrize("zeros", [(3, -7), (127, -128), (-128, 127), (-128, -128)])
def test_means_that_do_not_reach_both_limits(y_scale: float, zeros: tuple[int, int]) -> None:
    count = 6
    x, y = (
        Tensor(name, (1,), DType.INT8, Quant.per_tensor(scale, zero))
        for name, scale, zero in zip("xy", (0.02, y_scale), zeros, strict=True)
    )
    assert x.quant is not None
    assert y.quant is not None
    sums = np.arange(-128 * count, 127 * count + 1)
    for limits in ((-128, 127), (0, 127), (-7, 20)):
        form = linear_mean(np.array([count]), x, y, limits, halves="even")
        if form is not None:
            found = np.clip((sums * form.factors[0] + form.offset) >> form.shift, *limits)
            wanted = np.clip(from_sum(sums, count, x.quant, y.quant, halves="even"), *limits)
            assert np.array_equal(found, wanted)


@pytest.mark.parametrize("function", ["add", "sub"])
def test_most_sums_have_one_step_and_it_is_exact(function: str) -> None:
    rng = np.random.default_rng(3)
    a, b = BYTES[:, None], BYTES[None, :]
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

    assert _linear.find(mean, BYTES, (0.5, 0.5), (-128, 127)) is not None


def test_functions_without_a_linear_form() -> None:
    assert _linear.find(np.maximum, BYTES, (0.5, 0.5), (-128, 127)) is None
