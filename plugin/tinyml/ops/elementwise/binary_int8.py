# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Binary operators on quantised tensors, in the integer arithmetic of TensorFlow Lite.

Sums bring both operands to one scale with room below the point (``headroom``), add, and rescale once
more; of bytes, most can be computed in one step instead (``linear_sum``). Products need one rescale. The
largest and the smallest need none: scales are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tinyml import c
from tinyml import fixed_point as fp
from tinyml.ir import Array, DType, Layer, Tensor, TensorType
from tinyml.kernel import Sheet
from tinyml.ops.shared import linear
from tinyml.ops.shared.linear import Linear
from tinyml.ops.shared.quant import Clamp, clamp_range, limited, quant_of

Rescale = tuple[int, int]  # multiplier and shift

HEADROOM_BITS = {  # for elements of one byte, of two bytes
    "add": {1: 20, 2: 15},
    "sub": {1: 20, 2: 15},
    "squared_difference": {1: 7, 2: 0},
}
TYPES = (DType.INT8, DType.UINT8, DType.INT16)
UNSCALED: dict[str, Callable[[Array, Array], Array]] = {"max": np.maximum, "min": np.minimum}
FUNCTIONS = frozenset({"add", "sub", "squared_difference", "mul", "prelu", *UNSCALED})


def has_integer_form(function: str, a: Tensor | None, b: Tensor | None, y: Tensor | TensorType) -> bool:
    """Whether ``function`` on these tensors can be computed on their integers."""
    if function not in FUNCTIONS or a is None or b is None:
        return False
    if any(t.quant is None or t.quant.per_channel for t in (a, b, y)):
        return False
    if not a.dtype is b.dtype is y.dtype or y.dtype not in TYPES:
        return False
    return function not in UNSCALED or a.quant == b.quant == y.quant


@dataclass(frozen=True)
class Sum:
    """The three rescales of a sum; operands are shifted left by ``headroom`` bits before theirs."""

    headroom: int
    a: Rescale
    b: Rescale
    y: Rescale


def sum_of(function: str, layer: Layer) -> Sum:
    a, b, y = (quant_of(t).scale for t in (layer.input(0), layer.input(1), layer.output))
    headroom = HEADROOM_BITS[function][layer.output.dtype.bytes]
    squared = function == "squared_difference"
    twice = 2.0 * max(a, b)
    out = twice**2 / ((1 << 2 * headroom) * y) if squared else twice / ((1 << headroom) * y)
    return Sum(
        headroom,
        fp.quantize_multiplier(a / twice),
        fp.quantize_multiplier(b / twice),
        fp.quantize_multiplier(out),
    )


def product_rescale(layer: Layer) -> Rescale:
    """TFLite multiplies and divides these scales in float32."""
    a, b, y = (np.float32(quant_of(t).scale) for t in (layer.input(0), layer.input(1), layer.output))
    return fp.quantize_multiplier(float(a * b / y))


def identity_rescale(layer: Layer) -> Rescale:
    """From the first operand's scale to the output's: what PReLU does to positive values."""
    a, y = (np.float32(quant_of(t).scale) for t in (layer.input(0), layer.output))
    return fp.quantize_multiplier(float(a / y))


def evaluate(function: str, clamp: Clamp, layer: Layer, a: Array, b: Array) -> Array:
    """The operator in numpy, bit for bit."""
    low, high = clamp_range(clamp, layer.output)
    if function in UNSCALED:
        found = UNSCALED[function](a, b).astype(np.int64)
    else:
        a = a.astype(np.int64) - quant_of(layer.input(0)).zero_point
        b = b.astype(np.int64) - quant_of(layer.input(1)).zero_point
        found = _scaled(function, layer, a, b) + quant_of(layer.output).zero_point
    return np.clip(found, low, high).astype(layer.output.dtype.numpy)


def _scaled(function: str, layer: Layer, a: Array, b: Array) -> Array:
    if function == "mul":
        return fp.multiply_by_quantized_multiplier(a * b, *product_rescale(layer))
    if function == "prelu":
        product = fp.multiply_by_quantized_multiplier(a * b, *product_rescale(layer))
        return np.where(a >= 0, fp.multiply_by_quantized_multiplier(a, *identity_rescale(layer)), product)
    rescale = sum_of(function, layer)
    a = fp.multiply_by_quantized_multiplier(a << rescale.headroom, *rescale.a)
    b = fp.multiply_by_quantized_multiplier(b << rescale.headroom, *rescale.b)
    total = a + b if function == "add" else a - b
    if function == "squared_difference":
        total = fp.wrap_int32(total * total)
    return fp.multiply_by_quantized_multiplier(total, *rescale.y)


def linear_sum(function: str, clamp: Clamp, layer: Layer) -> Linear | None:
    """The same in one step, if the layer adds or subtracts bytes and there is such a step."""
    y = layer.output
    if function not in ("add", "sub") or y.dtype.bytes != 1:
        return None
    quants = [quant_of(t) for t in (layer.input(0), layer.input(1), y)]
    key = (function, clamp, y.dtype, *quants)
    if key not in _LINEAR_SUMS:
        low, high = y.dtype.limits
        a, b = quants[0].scale / quants[2].scale, quants[1].scale / quants[2].scale
        _LINEAR_SUMS[key] = linear.find(
            lambda a, b: evaluate(function, clamp, layer, a, b),
            np.arange(low, high + 1),
            (a, b if function == "add" else -b),
        )
    return _LINEAR_SUMS[key]


_LINEAR_SUMS: dict[tuple[object, ...], Linear | None] = {}
"""Forms found so far: a layer is asked for its own several times, and finding it takes a while."""


def emit(function: str, clamp: Clamp, layer: Layer, sheet: Sheet) -> None:
    """The operator as C loops."""
    y = layer.output
    walks = {
        "a": c.Walk(c.broadcast_strides(layer.input(0).shape, y.shape)),
        "b": c.Walk(c.broadcast_strides(layer.input(1).shape, y.shape)),
        "y": c.Walk(c.contiguous(y.shape)),
    }
    sheet.include("<tinyml/fixed_point.h>")
    low, high = clamp_range(clamp, y)
    form = linear_sum(function, clamp, layer)
    with sheet.loops(c.nest(y.shape, walks)) as index:
        a, b = f"{sheet.x(0)}[{index['a']}]", f"{sheet.x(1)}[{index['b']}]"
        if function in UNSCALED:
            sign = ">" if function == "max" else "<"
            sheet.line(f"const {y.dtype.c} a = {a};")
            sheet.line(f"const {y.dtype.c} b = {b};")
            value = f"a {sign} b ? a : b"
        elif form is not None:
            sheet.line(f"const int32_t sum = {form.c(a, b)};")
            value = "sum"
        else:
            zero = quant_of(y).zero_point
            scaled = _scaled_c(function, layer, sheet, _centred(layer, 0, a), _centred(layer, 1, b))
            value = f"{scaled} + ({zero})" if zero else scaled
        sheet.line()
        sheet.line(f"{sheet.y()}[{index['y']}] = ({y.dtype.c}){limited(value, low, high)};")


def _scaled_c(function: str, layer: Layer, sheet: Sheet, a: str, b: str) -> str:
    """Lines that prepare the operands; returns the expression of the rescaled result."""
    if function == "mul":
        sheet.line(f"const int32_t product = {a} * {b};")
        return _rescaled("product", product_rescale(layer))
    if function == "prelu":
        sheet.line(f"const int32_t a = {a};")
        below = _rescaled(f"a * {b}", product_rescale(layer))
        sheet.line(f"const int32_t v = a >= 0 ? {_rescaled('a', identity_rescale(layer))} : {below};")
        return "v"
    rescale = sum_of(function, layer)
    raised = f" * (1 << {rescale.headroom})" if rescale.headroom else ""
    sheet.line(f"const int32_t a = {_rescaled(a + raised, rescale.a)};")
    sheet.line(f"const int32_t b = {_rescaled(b + raised, rescale.b)};")
    if function == "squared_difference":
        return _rescaled("(a - b) * (a - b)", rescale.y)
    return _rescaled("a + b" if function == "add" else "a - b", rescale.y)


def _centred(layer: Layer, index: int, element: str) -> str:
    zero = quant_of(layer.input(index)).zero_point
    return f"({element} - ({zero}))" if zero else element


def _rescaled(value: str, rescale: Rescale) -> str:
    return f"tinyml_rescale({value}, {rescale[0]}, {rescale[1]})"
