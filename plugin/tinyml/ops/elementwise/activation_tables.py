# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Activations on bytes, in the arithmetic of TensorFlow Lite's reference kernels: integers, or float32.
Each gives the stored results for all 256 values of its input, which become a table."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, Quant, Tensor, TensorType
from tinyml.ops.elementwise.lookup import stored_values
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.shared.quant import quant_of


def _centred(x: Tensor) -> Array:
    return stored_values(x.dtype) - quant_of(x).zero_point


def _out(y: TensorType) -> Quant:
    assert y.quant is not None
    return y.quant


def _real(x: Tensor) -> Array:
    return np.asarray(_centred(x).astype(np.float32) * np.float32(quant_of(x).scale), np.float64)


def _stored(real: Array, y: TensorType) -> Array:
    """Of float32, halves away from zero."""
    steps = real.astype(np.float32) * (np.float32(1) / np.float32(_out(y).scale))
    return np.asarray(fp.round_half_away(steps).astype(np.int64) + _out(y).zero_point)


def logistic(x: Tensor, y: TensorType) -> Array:
    """1 / (1 + exp(-x)), each step in float32; exp itself in double, which is the same on every CPU."""
    with np.errstate(over="ignore"):
        powers = np.exp(-_real(x)).astype(np.float32)
    return _stored(np.float32(1) / (np.float32(1) + powers), y)


def tanh(x: Tensor, y: TensorType) -> Array:
    """The hyperbolic tangent, rounded to float32."""
    return _stored(np.tanh(_real(x)), y)


def leaky_relu(x: Tensor, y: TensorType, alpha: float) -> Array:
    """Two slopes, each a fixed-point factor."""
    scale_in, scale_out = np.float32(quant_of(x).scale), np.float32(_out(y).scale)
    factor = float(scale_in * np.float32(alpha) / scale_out)
    below = fp.quantize_multiplier(abs(factor))  # LiteRT rounds as if a negative slope had its sign last
    above = fp.quantize_multiplier(float(scale_in / scale_out))
    centred = _centred(x)
    found = np.where(
        centred >= 0,
        fp.multiply_by_quantized_multiplier(centred, *above),
        np.sign(factor).astype(np.int64) * fp.multiply_by_quantized_multiplier(centred, *below),
    )
    return found + _out(y).zero_point


def clamp(x: Tensor, y: TensorType, low: float, high: float) -> Array:
    """RELU and its family where input and output have different scales."""
    factor = float(np.float32(quant_of(x).scale) / np.float32(_out(y).scale))
    scaled = fp.multiply_by_quantized_multiplier(_centred(x), *fp.quantize_multiplier(factor))
    quant, (smallest, largest) = _out(y), y.dtype.limits
    bounds = [fp.quantize_scalar(v, quant.scale, quant.zero_point, smallest, largest) for v in (low, high)]
    return np.asarray(np.clip(scaled + quant.zero_point, bounds[0], bounds[1]))


def absolute(x: Tensor, y: TensorType) -> Array:
    """|x| rescaled."""
    size = np.abs(_centred(x))
    scale_in, scale_out = quant_of(x).scale, _out(y).scale
    if scale_in != scale_out:
        factor = float(np.float32(scale_in) / np.float32(scale_out))
        size = fp.multiply_by_quantized_multiplier(size, *fp.quantize_multiplier(factor))
    return size + _out(y).zero_point


def square_root(x: Tensor, y: TensorType) -> Array:
    """In float32, rounded down. What would be the root of a negative number is that of 0."""
    real = np.maximum(_centred(x), 0).astype(np.float32) * np.float32(quant_of(x).scale)
    steps = np.sqrt(real) / np.float32(_out(y).scale)
    return np.asarray(np.trunc(steps).astype(np.int64) + _out(y).zero_point)


def _high_multiply_16(a: Array, b: int) -> Array:
    """(a * b * 2) >> 16, rounded, saturated, on 16-bit values."""
    return np.asarray(np.minimum((np.asarray(a, np.int64) * b + (1 << 14)) >> 15, 32767))


def _saturate_16(a: Array) -> Array:
    return np.asarray(np.clip(a, -32768, 32767))


def _multiplier_16(real: float) -> tuple[int, int]:
    multiplier, shift = fp.quantize_multiplier(real)
    return min((multiplier + (1 << 15)) >> 16, 32767), shift


def hard_swish(x: Tensor, y: TensorType) -> Array:
    """x * relu6(x + 3) / 6 in 16-bit arithmetic: x on the output's scale times a factor in [0, 1]."""
    fine = np.float32(1 / 128) * np.float32(quant_of(x).scale)
    out_multiplier, out_shift = _multiplier_16(float(fine / np.float32(_out(y).scale)))
    ramp_multiplier, ramp_shift = _multiplier_16(float(fine / (np.float32(3.0) / np.float32(32768.0))))
    value = _saturate_16(_centred(x) << 7)
    on_output_scale = _high_multiply_16(value, out_multiplier)
    ramp = value
    if ramp_shift > 0:
        ramp = _saturate_16(ramp << (ramp_shift - 1))
    ramp = _high_multiply_16(ramp, ramp_multiplier)
    if ramp_shift > 0:
        ramp = _saturate_16(ramp << 1)
    elif ramp_shift < 0:
        ramp = fp.rounding_divide_by_pot(ramp, -ramp_shift)
    ramp = (ramp + (1 << 15)) >> 1  # from [-1, 1] to [0, 1]
    product = ramp * on_output_scale
    towards_zero = np.sign(product) * (np.abs(product) >> 15)
    shifted = fp.rounding_divide_by_pot(towards_zero, max(-out_shift, 0))
    return shifted + _out(y).zero_point
