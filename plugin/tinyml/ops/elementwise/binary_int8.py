# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Binary operators on quantised tensors.

TensorFlow Lite brings both operands of a sum to one scale with room below the point (``headroom``), adds,
and rescales again. ONNX defines the result in real numbers: it is rounded once, halves to even. Most sums
of bytes take one step either way (``linear_sum``). Products need one rescale; maximum and minimum need
none, because all scales are equal.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Tensor, TensorType
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import Sheet
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


def product_rescale(layer: Layer, once: bool) -> Rescale:
    """From the product of both operands to the output."""
    a, b, y = (quant_of(t).scale for t in (layer.input(0), layer.input(1), layer.output))
    if once:
        return fp.quantize_multiplier(a * b / y)
    # TFLite multiplies and divides these scales in float32.
    return fp.quantize_multiplier(float(np.float32(a) * np.float32(b) / np.float32(y)))


def identity_rescale(layer: Layer) -> Rescale:
    """From the first operand's scale to the output's: what PReLU does to positive values."""
    a, y = (np.float32(quant_of(t).scale) for t in (layer.input(0), layer.output))
    return fp.quantize_multiplier(float(a / y))


@dataclass(frozen=True)
class SumOnce:
    """The factors of a sum that is rounded once: (a * a_factor + b * b_factor) >> exponent."""

    a: int
    b: int
    exponent: int


def sum_once(function: str, layer: Layer) -> SumOnce:
    a, b, y = (quant_of(t).scale for t in (layer.input(0), layer.input(1), layer.output))
    _, shift = fp.quantize_multiplier(max(a, b) / y)
    exponent = 31 - shift
    second = round(b / y * 2.0**exponent)
    return SumOnce(round(a / y * 2.0**exponent), second if function == "add" else -second, exponent)


def evaluate(function: str, clamp: Clamp, layer: Layer, a: Array, b: Array, once: bool = False) -> Array:
    """The operator in numpy, bit for bit; ``once`` where the result is rounded once, halves to even."""
    low, high = clamp_range(clamp, layer.output)
    if function in UNSCALED:
        found = UNSCALED[function](a, b).astype(np.int64)
    else:
        a = a.astype(np.int64) - quant_of(layer.input(0)).zero_point
        b = b.astype(np.int64) - quant_of(layer.input(1)).zero_point
        found = _scaled(function, layer, a, b, once) + quant_of(layer.output).zero_point
    return np.clip(found, low, high).astype(layer.output.dtype.numpy)


def _scaled(function: str, layer: Layer, a: Array, b: Array, once: bool) -> Array:
    multiply = fp.multiply_by_quantized_multiplier_to_even if once else fp.multiply_by_quantized_multiplier
    if function == "mul":
        return multiply(a * b, *product_rescale(layer, once))
    if function == "prelu":
        product = multiply(a * b, *product_rescale(layer, once))
        return np.where(a >= 0, multiply(a, *identity_rescale(layer)), product)
    if once:
        factors = sum_once(function, layer)
        total = a * factors.a + b * factors.b
        return fp.shift_right_to_even(total, factors.exponent, np.abs(a) + np.abs(b))
    rescale = sum_of(function, layer)
    a = fp.multiply_by_quantized_multiplier(a << rescale.headroom, *rescale.a)
    b = fp.multiply_by_quantized_multiplier(b << rescale.headroom, *rescale.b)
    total = a + b if function == "add" else a - b
    if function == "squared_difference":
        total = fp.wrap_int32(total * total)
    return fp.multiply_by_quantized_multiplier(total, *rescale.y)


def linear_sum(function: str, clamp: Clamp, layer: Layer, once: bool = False) -> Linear | None:
    """The same in one step, if the layer adds or subtracts bytes and there is such a step."""
    y = layer.output
    if function not in ("add", "sub") or y.dtype.bytes != 1:
        return None
    quants = [quant_of(t) for t in (layer.input(0), layer.input(1), y)]
    key = (function, clamp, once, y.dtype, *quants)
    if key not in _LINEAR_SUMS:
        low, high = y.dtype.limits
        a, b = quants[0].scale / quants[2].scale, quants[1].scale / quants[2].scale
        _LINEAR_SUMS[key] = linear.find(
            lambda a, b: evaluate(function, clamp, layer, a, b, once),
            np.arange(low, high + 1),
            (a, b if function == "add" else -b),
            clamp_range(clamp, y),
        )
    return _LINEAR_SUMS[key]


_LINEAR_SUMS: dict[tuple[object, ...], Linear | None] = {}
"""Forms found so far: several callers need the form of a layer, and finding it takes a while."""


def emit(function: str, clamp: Clamp, layer: Layer, sheet: Sheet, once: bool = False) -> None:
    """The operator as C loops."""
    y = layer.output
    walks = {
        "a": c.Walk(c.broadcast_strides(layer.input(0).shape, y.shape)),
        "b": c.Walk(c.broadcast_strides(layer.input(1).shape, y.shape)),
        "y": c.Walk(c.contiguous(y.shape)),
    }
    sheet.include("<tinyml/fixed_point.h>")
    low, high = clamp_range(clamp, y)
    form = linear_sum(function, clamp, layer, once)
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
            operands = _centred(layer, 0, a), _centred(layer, 1, b)
            scaled = _scaled_c(function, layer, sheet, *operands, once)
            value = f"{scaled} + ({zero})" if zero else scaled
        sheet.line()
        sheet.line(f"{sheet.y()}[{index['y']}] = ({y.dtype.c}){limited(value, low, high)};")


def _scaled_c(function: str, layer: Layer, sheet: Sheet, a: str, b: str, once: bool) -> str:
    """Lines that prepare the operands; returns the expression of the rescaled result."""
    if function == "mul":
        sheet.line(f"const int32_t product = {a} * {b};")
        return _rescaled("product", product_rescale(layer, once), once)
    if function == "prelu":
        sheet.line(f"const int32_t a = {a};")
        slope = b if layer.input(1).is_constant or b.startswith("(") else f"({b})"  # not `a *x1`
        below = _rescaled(f"a * {slope}", product_rescale(layer, once), once)
        sheet.line(f"const int32_t v = a >= 0 ? {_rescaled('a', identity_rescale(layer), once)} : {below};")
        return "v"
    if once:
        factors = sum_once(function, layer)
        sheet.line(f"const int32_t a = {a};")
        sheet.line(f"const int32_t b = {b};")
        sheet.line(f"const int64_t sum = (int64_t)a * {factors.a} + (int64_t)b * ({factors.b});")
        slack = "(a < 0 ? -a : a) + (b < 0 ? -b : b)"
        return f"tinyml_shift_right_to_even(sum, {factors.exponent}, {slack})"
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


def _rescaled(value: str, rescale: Rescale, once: bool = False) -> str:
    return f"tinyml_rescale{'_to_even' if once else ''}({value}, {rescale[0]}, {rescale[1]})"
