# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The parameter records that kernels with weights take in C, and the constraints they share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.ir import Array, DType, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.shared.quant import clamp_range, is_quantized, quant_of
from tinyml.ops.weighted.weighted import Weighted, channel_multipliers

SMALL = 1 << 15


def int8_tensors(layer: Layer) -> bool:
    """Input, weights and output are int8, quantised."""
    return all(is_quantized(t, DType.INT8) for t in (*layer.inputs[:2], layer.output))


def float_tensors(layer: Layer) -> bool:
    """Input, weights and output are float32."""
    return all(t is not None and t.dtype is DType.FLOAT32 for t in (*layer.inputs[:2], layer.output))


def constant_weights(layer: Layer) -> bool:
    """Weights and bias are constants."""
    return all(t is None or t.is_constant for t in layer.inputs[1:])


def one_weight_zero(layer: Layer) -> bool:
    """All output channels have the same weight zero point."""
    return len(set(quant_of(layer.input(1)).zero_points)) == 1


def symmetric_weights(layer: Layer) -> bool:
    """Weights have zero points of 0."""
    return not any(quant_of(layer.input(1)).zero_points)


def small_extents(layer: Layer[Convolution]) -> bool:
    """Extents including padding, strides and dilations are all below 32,768."""
    op, x = layer.op, layer.input(0).shape
    padded = (x[i + 1] + op.pads[i] + op.pads[i + 2] for i in range(2))
    shapes = (x, layer.input(1).shape, layer.output.shape, op.strides, op.dilations, padded)
    return all(extent < SMALL for shape in shapes for extent in shape)


def geometry(layer: Layer[Convolution]) -> dict[str, object]:
    """Members of struct tinyml_window for a convolution."""
    op = layer.op
    return window_members(layer, layer.input(1).shape[1:3], op.strides, op.dilations, op.pads)


def window_members(
    layer: Layer,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> dict[str, object]:
    """Members of struct tinyml_window, which is called ``window``."""
    x, y = layer.input(0), layer.output
    return {
        ".window.batches": x.shape[0],
        ".window.in_h": x.shape[1],
        ".window.in_w": x.shape[2],
        ".window.in_c": x.shape[3],
        ".window.out_h": y.shape[1],
        ".window.out_w": y.shape[2],
        ".window.out_c": y.shape[3],
        ".window.kernel_h": kernel[0],
        ".window.kernel_w": kernel[1],
        ".window.stride_h": strides[0],
        ".window.stride_w": strides[1],
        ".window.dilation_h": dilations[0],
        ".window.dilation_w": dilations[1],
        ".window.pad_top": pads[0],
        ".window.pad_left": pads[1],
    }


def matrix(layer: Layer) -> dict[str, object]:
    """Members of all records of dense layers."""
    outputs, inputs = layer.input(1).shape
    return {".rows": layer.output.elements // outputs, ".inputs": inputs, ".outputs": outputs}


def folded_bias(layer: Layer, filters: Array) -> Array:
    """The bias, plus all terms that depend only on zero points and weights.

    Σ (x - xz)(w - wz) + b  =  Σ x w - wz Σ x + [b - xz Σ (w - wz)]: the bracket is known now.
    """
    x_zero = quant_of(layer.input(0)).zero_point
    w_zero = quant_of(layer.input(1)).zero_points[0]
    rows = filters.reshape(filters.shape[0], -1).astype(np.int64)
    bias = layer.input(2).value.reshape(-1).astype(np.int64) if layer.has_input(2) else 0
    return (bias - x_zero * (rows - w_zero).sum(axis=1)).astype(np.int32)


def padded_weights(filters: Array) -> Array:
    """Filters as the kernels read them: rows in whole words, so up to three bytes past the last.

    A single row of up to nine taps is read as three rows of three.
    """
    flat = filters.reshape(-1)
    rows, taps = filters.shape[-2:]
    spare = 3 if taps % 4 or (rows == 1 and taps <= 9) else 0
    return np.concatenate([flat, np.zeros(spare, flat.dtype)])


def quantized_record(
    layer: Layer[Convolution], sheet: Sheet, filters: Array, packed: Array, order: Array | slice = slice(None)
) -> dict[str, object]:
    """Members that both structs of int8 depthwise convolutions have.

    ``filters`` are the weights, output channels first; ``packed`` are the same as the kernel reads them,
    ``order`` is its order of the other tables.
    """
    tables = channel_tables(layer, sheet, filters, packed, order)
    return {**geometry(layer), **tables, **in_zero(layer), **output_limits(layer)}


def channel_tables(
    layer: Layer[Weighted], sheet: Sheet, filters: Array, packed: Array, order: Array | slice = slice(None)
) -> dict[str, object]:
    """Members that point to constants: weights, and what each channel has."""
    return {
        ".weights": sheet.table("weights", packed),
        ".bias": sheet.table("bias", folded_bias(layer, filters)[order]),
        **factor_tables(layer, sheet, order),
    }


def factor_tables(
    layer: Layer[Weighted], sheet: Sheet, order: Array | slice = slice(None)
) -> dict[str, object]:
    """Members that point to the factors from sums to outputs."""
    multiplier, shift = channel_multipliers(layer)
    return {
        ".multiplier": sheet.table("multiplier", multiplier[order]),
        ".shift": sheet.table("shift", shift.astype(np.int8)[order]),
    }


def in_zero(layer: Layer) -> dict[str, object]:
    """The input's zero point, which is what kernels pad with; the bias already includes it."""
    return {".in_zero": quant_of(layer.input(0)).zero_point}


def weight_zero(layer: Layer) -> dict[str, object]:
    """The zero point that all weights share, for kernels that support one."""
    return {".weight_zero": quant_of(layer.input(1)).zero_points[0]}


def output_limits(layer: Layer[Weighted]) -> dict[str, object]:
    """Members that make int8 outputs of rescaled sums: zero point, limits, rounding."""
    return {".out_zero": quant_of(layer.output).zero_point, **rounding(layer)}


def rounding(layer: Layer[Weighted]) -> dict[str, object]:
    """Members for the limits of outputs and rounding."""
    low, high = clamp_range(layer.op.clamp, layer.output)
    return {
        ".out_min": low,
        ".out_max": high,
        ".round_once": c.boolean(layer.op.round_once),
    }


TOGETHER = 2
"""Positions that float convolutions compute at once, unless their outputs overwrite inputs too early."""

TILE_WORDS = "weights of 8 filters in turn, then of 4, then filter by filter, for each group"


def float_tiles(filters: Array, groups: int = 1, multiple: int = 1) -> Array:
    """Filters of a group by eight, then by four, their elements taking turns; then the rest one by one.

    Zeros follow, up to a ``multiple`` of elements in each group.
    """
    rows = filters.reshape(groups, filters.shape[0] // groups, -1)
    parts, begin = [], 0
    for size in (8, 4, 1):
        end = begin + (rows.shape[1] - begin) // size * size
        tiles = rows[:, begin:end].reshape(groups, -1, size, rows.shape[2])
        parts.append(tiles.transpose(0, 1, 3, 2).reshape(groups, -1))
        begin = end
    spare = np.zeros((groups, -rows[0].size % multiple), filters.dtype)
    return np.concatenate([*parts, spare], axis=1).reshape(-1)


def float_limits(layer: Layer[Weighted], sheet: Sheet) -> dict[str, object]:
    """Members for the bias and the limits, possibly infinite, of float sums."""
    low, high = layer.op.clamp
    return {
        ".bias": bias_table(layer, sheet),
        ".out_min": sheet.number(low),
        ".out_max": sheet.number(high),
    }


def bias_table(layer: Layer, sheet: Sheet) -> str:
    """The bias as the model has it, if it has one."""
    return sheet.table("bias", layer.input(2).value.reshape(-1)) if layer.has_input(2) else "NULL"
