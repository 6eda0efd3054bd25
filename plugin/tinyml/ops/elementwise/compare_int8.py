# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Comparisons of quantised bytes, in the integer arithmetic of TensorFlow Lite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyml.base import c
from tinyml.ir import Array, DType, Layer, Tensor
from tinyml.ops.elementwise.binary_played import play_compare_bytes
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.shared.quant import quant_of

HEADROOM_BITS = 8
FUNCTIONS: dict[str, tuple[Callable[[Array, Array], Array], str]] = {
    "equal": (np.equal, "=="),
    "not_equal": (np.not_equal, "!="),
    "less": (np.less, "<"),
    "less_equal": (np.less_equal, "<="),
    "greater": (np.greater, ">"),
    "greater_equal": (np.greater_equal, ">="),
}


def has_integer_form(function: str, a: Tensor | None, b: Tensor | None) -> bool:
    """Whether the comparison can be made on integers: bytes of one type, quantised per tensor."""
    if function not in FUNCTIONS or a is None or b is None or a.dtype is not b.dtype:
        return False
    if a.quant is None or b.quant is None or a.quant.per_channel or b.quant.per_channel:
        return False
    return a.dtype in (DType.INT8, DType.UINT8) and max(a.quant.scale, b.quant.scale) < 1.0


def _scale(layer: Layer, index: int) -> tuple[int, int]:
    return fp.quantize_multiplier(quant_of(layer.input(index)).scale)


def evaluate(function: str, layer: Layer, a: Array, b: Array) -> Array:
    scaled = []
    for index, x in enumerate((a, b)):
        centred = x.astype(np.int64) - quant_of(layer.input(index)).zero_point
        scaled.append(fp.multiply_by_quantized_multiplier(centred << HEADROOM_BITS, *_scale(layer, index)))
    return FUNCTIONS[function][0](scaled[0], scaled[1])


def emit(function: str, layer: Layer, sheet: Sheet) -> None:
    y = layer.output
    walks = {"y": c.Walk(c.contiguous(y.shape))}
    for index in (0, 1):
        walks[str(index)] = c.Walk(c.broadcast_strides(layer.input(index).shape, y.shape))
    sheet.include("<tinyml/fixed_point.h>")
    with sheet.loops(c.nest(y.shape, walks)) as places:
        for index, name in enumerate("ab"):
            zero, (multiplier, shift) = quant_of(layer.input(index)).zero_point, _scale(layer, index)
            raised = f"({sheet.x(index)}[{places[str(index)]}] - ({zero})) * (1 << {HEADROOM_BITS})"
            sheet.line(f"const int32_t {name} = tinyml_rescale({raised}, {multiplier}, {shift});")
        sheet.line()
        sheet.line(f"{sheet.y()}[{places['y']}] = a {FUNCTIONS[function][1]} b;")


def play(function: str, layer: Layer, sheet: Sheet) -> None:
    """The same as a call of the player."""
    play_compare_bytes(function, [_scale(layer, index) for index in (0, 1)], layer, sheet)
