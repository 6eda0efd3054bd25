# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The tables that TensorFlow Lite makes for functions of int16, in its float32 arithmetic.

They may be many steps off where a function is steep (a logarithm near 0): so are TensorFlow Lite's results.
Functions are computed in double and rounded to float32, which is the same on every CPU.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyml.ir import Array, DType, Tensor, TensorType
from tinyml.ops.elementwise.int16_table import INTERVALS, Int16Table
from tinyml.ops.elementwise.unary import SQRT_HALF, erf
from tinyml.ops.shared.quant import quant_of

F32 = np.float32
LOW, HIGH = DType.INT16.limits
FAR = np.finfo(F32).max / 8
"""Far beyond int16, so that differences of such numbers are still finite."""
TWO_OVER_ROOT_PI = 1.1283791670955126


def _exp(x: Array) -> Array:
    return np.exp(x.astype(np.float64)).astype(F32)


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(x.astype(np.float64)).astype(F32)


def _rsqrt(x: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(F32(1) / np.sqrt(x))


def _gelu(x: Array) -> Array:
    bell = erf((x * F32(SQRT_HALF)).astype(np.float64)).astype(F32)
    return np.asarray(F32(0.5) * x * (F32(1) + bell))


def _gelu_tanh(x: Array) -> Array:
    inner = F32(TWO_OVER_ROOT_PI * SQRT_HALF) * (x + F32(0.044715) * x * x * x)
    return np.asarray(F32(0.5) * x * (F32(1) + np.tanh(inner.astype(np.float64)).astype(F32)))


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": _exp,
    "log": _log,
    "rsqrt": _rsqrt,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}


def table(name: str, x: Tensor, y: TensorType) -> Int16Table:
    """Each entry is moved half way towards what makes the middle of its interval right."""
    assert y.quant is not None
    scale, step_out = F32(quant_of(x).scale), F32(y.quant.scale)
    first, last = scale * F32(LOW), scale * F32(HIGH)
    smallest = step_out * F32(LOW)
    beyond_zero = {"log": smallest, "rsqrt": step_out * F32(HIGH)}.get(name)
    steps_per_unit = F32(HIGH - LOW + 1) / (step_out * F32(HIGH) - smallest)

    def steps(real: Array) -> Array:
        with np.errstate(over="ignore"):
            value = FUNCTIONS[name](real)
            if beyond_zero is not None:
                value = np.where(real > 0, value, beyond_zero)
            return np.clip(value * steps_per_unit, -FAR, FAR)

    step = (last - first) / F32(INTERVALS)
    number = np.arange(INTERVALS).astype(F32)
    here, after = steps(first + number * step), steps(first + (number + F32(1)) * step)
    middle = _rounded(steps(first + number * step + step / F32(2)))
    sample = _rounded(here)
    off = _rounded((after + sample) / F32(2)) - middle
    entries = np.append(sample - _rounded(off / F32(2)), _rounded(steps(np.asarray([last]))))
    return Int16Table(tuple(int(entry) for entry in entries.clip(LOW, HIGH)), name)


def _rounded(x: Array) -> Array:
    """Halves away from zero."""
    return np.asarray(np.copysign(np.floor(np.abs(x) + F32(0.5)), x))
