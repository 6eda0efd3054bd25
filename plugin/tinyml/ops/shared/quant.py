# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Helpers shared by operators that have an integer form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.ir import Array, DType, Layer, Quant, Tensor, given
from tinyml.ops.framework import fixed_point as fp

Clamp = tuple[float, float]
NO_CLAMP: Clamp = (-np.inf, np.inf)
LARGEST_SHIFT_INT16 = 14
"""Of the factors from sums of 64 bits to int16: tinyml_narrow_s64() shifts to the right."""
LARGEST_BIAS = {DType.INT32: 1 << 30, DType.INT64: 1 << 46}
"""That leaves room for the products: as much again."""
LARGEST_SUM_INT16 = 1 << 47
"""Of the products of int16 and int8 that tinyml_narrow_s64() scales."""
Multipliers = tuple[Array, Array]
"""Fixed-point factors, one per output channel or one for all: multipliers and shifts."""


def quant_of(tensor: Tensor) -> Quant:
    """The quantisation of a tensor that must have one."""
    if tensor.quant is None:
        raise ValueError(f"tensor {tensor.name!r} is not quantised")
    return tensor.quant


def output_multipliers(layer: Layer, single: bool = False) -> Multipliers:
    """Per output channel, the fixed-point factor from accumulator to output: x.scale * w.scale / y.scale.

    ``single``: the product of the two scales is rounded to float32, as some of TensorFlow Lite's layers do.
    """
    x_scale = quant_of(layer.input(0)).scale
    y_scale = quant_of(layer.output).scale
    pairs = [
        fp.quantize_multiplier(scale_product(x_scale, w_scale, single) / y_scale)
        for w_scale in quant_of(layer.input(1)).scales
    ]
    return (
        np.array([multiplier for multiplier, _ in pairs], np.int32),
        np.array([shift for _, shift in pairs], np.int32),
    )


def scale_product(a: float, b: float, single: bool) -> float:
    """a * b in double, or rounded to float32.

    What TensorFlow Lite's ``Prepare`` functions compute before they divide by the output's scale in double:

    ======================================  ====================  ==========================================
    convolutions (plain, depthwise,         int8, int16: double   PopulateConvolutionQuantizationParams
    transposed)                             uint8: float32        GetQuantizedConvolutionMultipler
    FULLY_CONNECTED, one scale              float32               GetQuantizedConvolutionMultipler
    FULLY_CONNECTED, a scale per channel    double                PopulateConvolutionQuantizationParams
    BATCH_MATMUL                            float32               GetQuantizedConvolutionMultipler
    ======================================  ====================  ==========================================

    MUL, PRELU, LEAKY_RELU and SVDF also divide in float32; ADD, SUB and SQUARED_DIFFERENCE divide in double.
    """
    return float(np.float32(a) * np.float32(b)) if single else a * b


def clamp_range(clamp: Clamp, tensor: Tensor) -> tuple[int, int]:
    """A clamp in real numbers, as limits on the stored integers of ``tensor``."""
    low, high = tensor.dtype.limits
    quant = quant_of(tensor)
    return (
        fp.quantize_scalar(clamp[0], quant.scale, quant.zero_point, low, high),
        fp.quantize_scalar(clamp[1], quant.scale, quant.zero_point, low, high),
    )


def stored_exactly(value: float, tensor: Tensor) -> bool:
    """Whether an integer of ``tensor``, quantised per tensor, stands for ``value``, to the last bit."""
    low, high = tensor.dtype.limits
    quant = quant_of(tensor)
    stored = fp.quantize_scalar(value, quant.scale, quant.zero_point, low, high)
    (exact,) = dequantize(np.asarray([stored]), quant)
    return bool(exact == np.float32(value))


def limits_are_exact(clamp: Clamp, tensor: Tensor) -> bool:
    """Whether ``clamp_range`` limits the integers of ``tensor`` to what ``clamp`` limits real numbers to."""
    lowest, highest = (float(v) for v in dequantize(np.asarray(tensor.dtype.limits), quant_of(tensor)))
    low, high = clamp
    low_fits = low <= lowest or stored_exactly(low, tensor)
    return low_fits and (high >= highest or stored_exactly(high, tensor))


def limited(value: str, low: int, high: int) -> str:
    """A C expression for ``value`` between two limits; <tinyml/fixed_point.h> has the functions."""
    if (low, high) == DType.INT8.limits:
        return f"tinyml_saturate_s8({value})"
    return f"tinyml_clamp({value}, {low}, {high})"


def requantize(acc: Array, layer: Layer, factors: Multipliers, clamp: Clamp, once: bool = False) -> Array:
    """Accumulators (channels last) to the output's integers: scale, add the zero point, clamp.

    Sums beyond 32 bits (int16: 47) saturate; ``passes/bound_sums.py`` makes sure that there are none in C.
    """
    multiplier, shift = factors
    low, high = clamp_range(clamp, layer.output)
    if layer.input(0).dtype is DType.INT16:
        multiply = fp.multiply_int64_by_quantized_multiplier
        scaled = (fp.multiply_int64_by_quantized_multiplier_once if once else multiply)(
            np.clip(acc, -LARGEST_SUM_INT16, LARGEST_SUM_INT16), multiplier, shift
        )
    elif once:
        bounded = np.clip(acc, fp.INT32_MIN, fp.INT32_MAX)
        scaled = fp.multiply_by_quantized_multiplier_once(bounded, multiplier, shift)
    else:
        left = np.maximum(np.asarray(shift, np.int64), 0)
        bounded = np.clip(acc, -(fp.INT32_MAX >> left), fp.INT32_MAX >> left)
        scaled = fp.multiply_by_quantized_multiplier(bounded, multiplier, shift)
    shifted = scaled + quant_of(layer.output).zero_point
    return np.clip(shifted, low, high).astype(layer.output.dtype.numpy)


def is_quantized(tensor: Tensor | None, *dtypes: DType) -> bool:
    """Whether a tensor carries quantisation and has one of the given types."""
    return tensor is not None and tensor.quant is not None and tensor.dtype in dtypes


def per_channel(values: Array, channels: int) -> Array:
    """One value per channel, repeating the single one of a per-tensor quantisation."""
    return np.broadcast_to(values, (channels,)).copy() if values.size == 1 else values


def dequantize(array: Array, quant: Quant) -> Array:
    """Stored integers to real numbers (float32)."""
    scales = np.asarray(quant.scales, np.float32)
    zero_points = np.asarray(quant.zero_points, np.int64)
    if quant.axis is not None:
        shape = [1] * array.ndim
        shape[quant.axis] = -1
        scales, zero_points = scales.reshape(shape), zero_points.reshape(shape)
    return ((array.astype(np.int64) - zero_points).astype(np.float32) * scales).astype(np.float32)


def centred(
    layer: Layer, inputs: Sequence[Array | None], index: int, channel_axis: int | None = None
) -> Array:
    """An operand ready to multiply: integers minus their zero point, or floats as they are."""
    array = inputs[index]
    assert array is not None
    quant = layer.input(index).quant
    if quant is None:
        return array
    zero_points = np.asarray(quant.zero_points, np.int64)
    if channel_axis is not None and zero_points.size > 1:
        shape = [1] * array.ndim
        shape[channel_axis] = -1
        zero_points = zero_points.reshape(shape)
    return array.astype(np.int64) - zero_points


def integer_bias(operands: Sequence[Tensor | None]) -> list[Tensor] | None:
    """The bias (operand 2) on the scale of the accumulator, x.scale * w.scale; [] if none, None if too large.

    It is int32 or, for int16 activations with their 64-bit sums, int64.
    """
    bias = operands[2] if len(operands) > 2 else None
    if bias is None:
        return []
    x, w = given(operands, 0), given(operands, 1)
    scales = tuple(quant_of(x).scale * scale for scale in quant_of(w).scales)
    quant = Quant(scales, (0,) * len(scales), 0 if len(scales) > 1 else None)
    kind = DType.INT64 if x.dtype is DType.INT16 else DType.INT32
    real = bias.value.astype(np.float64)
    if bias.quant is not None:
        if bias.dtype is kind and np.allclose(bias.quant.scales, scales, rtol=1e-5, atol=0):
            return [bias]
        real = real * np.asarray(bias.quant.scales)  # int32 biases have no zero point
    steps = np.rint(real / np.asarray(scales))
    if np.abs(steps).max(initial=0) > LARGEST_BIAS[kind]:
        return None
    return [Tensor.constant(f"{bias.name}/{kind.value}", steps.astype(kind.numpy), quant)]


def int16_and_int8(x: Tensor, w: Tensor, y: Tensor) -> bool:
    """Whether input and output are int16 and weights int8, all with zero points of 0."""
    if not (is_quantized(x, DType.INT16) and is_quantized(y, DType.INT16) and is_quantized(w, DType.INT8)):
        return False
    return not any(zero for tensor in (x, w, y) for zero in quant_of(tensor).zero_points)
