# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Softmax on int16, in the integer arithmetic of TensorFlow Lite: two interpolated tables, no division."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyml.ir import Array, DType, Layer, Tensor, TensorType
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.shared.quant import quant_of

LEAST = -10.0  # exp of anything below counts as that of this


def has_integer_form(x: Tensor | None, y: Tensor | TensorType) -> bool:
    """Whether input and output are int16 with zero points of 0, the output with a scale of 2**-15."""
    if x is None or x.quant is None or y.quant is None or not x.dtype is y.dtype is DType.INT16:
        return False
    if x.quant.per_channel or y.quant.per_channel or x.quant.zero_point or y.quant.zero_point:
        return False
    return abs(y.quant.scale * 32768 - 1) < 1e-3


def _table(function: Callable[[Array], Array], lowest: float, highest: float) -> Array:
    """513 values, 32768 for 1, each moved so that the middle of its interval is nearly right too.

    The last one is only the end of the last slope.
    """
    step = (highest - lowest) / 512
    start = lowest + np.arange(512) * step
    one = 32768.0

    def at(offset: float) -> Array:
        return np.asarray(function(start + offset) * one)

    here, middle, after = at(0.0), at(step / 2), at(step)
    rounded = fp.round_half_away(here)
    error = fp.round_half_away((after + rounded) / 2) - fp.round_half_away(middle)
    last = fp.round_half_away(np.asarray([function(np.asarray(highest)) * one]))
    table = np.concatenate([rounded - fp.round_half_away(error / 2), last])
    return np.clip(table, -32768, 32767).astype(np.int16)


def exp_table() -> Array:
    return _table(np.exp, LEAST, 0.0)


def reciprocal_table() -> Array:
    return _table(lambda x: 1 / (1 + x), 0.0, 1.0)


def _look_up(value: Array, table: Array) -> Array:
    wide = table.astype(np.int64)
    place, offset = 256 + (value >> 7), value & 127
    return wide[place] + (((wide[place + 1] - wide[place]) * offset + 64) >> 7)


def scaling(layer: Layer, beta: float) -> tuple[int, int]:
    """From differences of stored integers to steps of 10 / 65535."""
    return fp.quantize_multiplier(quant_of(layer.input(0)).scale * beta / (-LEAST / 65535.0))


def evaluate(layer: Layer, beta: float, x: Array) -> Array:
    """Softmax along the last axis."""
    wide = x.astype(np.int64)
    difference = wide - wide.max(axis=-1, keepdims=True)
    scaled = fp.multiply_by_quantized_multiplier(difference, *scaling(layer, beta)) + 32767
    exps = _look_up(np.clip(scaled, -32768, 32767), exp_table())
    total = exps.sum(axis=-1, keepdims=True)
    zeros = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    fraction = (((total << (zeros - 1)) + (1 << 13)) >> 14) - (1 << 15) - (1 << 16)
    factor = _look_up(np.clip(fraction, -32768, 32767), reciprocal_table())
    shift = 31 - zeros
    found = (exps * factor + (np.int64(1) << (shift - 1))) >> shift
    return np.clip(found, 0, 32767).astype(np.int16)


def emit(layer: Layer, beta: float, sheet: Sheet) -> None:
    """A call of the runtime."""
    multiplier, shift = scaling(layer, beta)
    depth = layer.input(0).shape[-1]
    sheet.include("<tinyml/softmax.h>")
    name = sheet.record(
        "struct tinyml_softmax_s16",
        "params",
        {
            ".rows": layer.output.elements // depth,
            ".depth": depth,
            ".multiplier": multiplier,
            ".shift": shift,
            ".exp": sheet.table("exp", exp_table()),
            ".reciprocal": sheet.table("reciprocal", reciprocal_table()),
        },
    )
    sheet.call("tinyml_softmax_s16", name, sheet.x(), sheet.y())
