# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Binary operators as calls of the player; on quantised tensors with the arithmetic of ``binary_int8``."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base import c
from tinyml.ir import DType, Layer
from tinyml.ops.elementwise import binary_int8 as integers
from tinyml.ops.elementwise.binary_int8 import Rescale
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.framework.play_loops import array, merged
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.shared.linear import Linear
from tinyml.ops.shared.quant import NO_CLAMP, Clamp, clamp_range, quant_of

Members = dict[str, object]
FLOAT = frozenset({"add", "sub", "mul", "div", "min", "max", "squared_difference", "prelu"})
"""Functions that the player has for float32."""


def play(function: str, clamp: Clamp, layer: Layer, sheet: Sheet, once: bool) -> None:
    a, b, y = layer.input(0), layer.input(1), layer.output
    kind = {DType.INT8: "s8", DType.UINT8: "u8", DType.INT16: "s16"}.get(y.dtype)
    if kind is None or not a.dtype is b.dtype is y.dtype:
        raise NotPlayableError(f"the player has no {function} of {y.dtype.value}")
    low, high = clamp_range(clamp, y)
    form = integers.linear_sum(function, clamp, layer, once)
    operands = sheet.x(0), sheet.x(1), sheet.y()
    if form is not None and a.shape == b.shape == y.shape and kind == "s8":
        sheet.note("tinyml_play_sum_s8", linear_members(form, y.elements, (low, high)), *operands)
        return
    a_strides, b_strides = (c.broadcast_strides(t.shape, y.shape) for t in (a, b))
    extents, (a_steps, b_steps, _) = merged(y.shape, a_strides, b_strides, c.contiguous(y.shape))
    name, own = _function(function, layer, form, once)
    members = {
        **array("extents", extents, 1),
        **array("a_steps", a_steps, 0),
        **array("b_steps", b_steps, 0),
        ".out_min": low,
        ".out_max": high,
        **own,
    }
    sheet.note(f"tinyml_play_{name}_{kind}", members, *operands)


def play_float(function: str, clamp: Clamp, layer: Layer, sheet: Sheet) -> None:
    a, b, y = layer.input(0), layer.input(1), layer.output
    a_strides, b_strides = (c.broadcast_strides(t.shape, y.shape) for t in (a, b))
    extents, (a_steps, b_steps, _) = merged(y.shape, a_strides, b_strides, c.contiguous(y.shape))
    if y.elements == 0:
        return
    members = {
        **array("extents", extents, 1),
        **array("a_steps", a_steps, 0),
        **array("b_steps", b_steps, 0),
        ".out_min": sheet.number(clamp[0]),
        ".out_max": sheet.number(clamp[1]),
    }
    sheet.note(f"tinyml_play_{function}_f32", members, sheet.x(0), sheet.x(1), sheet.y())


WHOLE = ("add", "sub", "mul", "div", "min", "max", "mod", "fmod")
"""Functions that the player has for integers: enum tinyml_play_whole."""


def play_whole(function: str, clamp: Clamp, layer: Layer, sheet: Sheet) -> None:
    a, b, y = layer.input(0), layer.input(1), layer.output
    known = y.dtype.is_integer and y.dtype is not DType.UINT64 and clamp == NO_CLAMP
    if function not in WHOLE or not known or y.elements == 0:
        raise NotPlayableError(f"the player has no {function} of {a.dtype.value}")
    a_strides, b_strides = (c.broadcast_strides(t.shape, y.shape) for t in (a, b))
    extents, (a_steps, b_steps, _) = merged(y.shape, a_strides, b_strides, c.contiguous(y.shape))
    members = {
        **array("extents", extents, 1),
        **array("a_steps", a_steps, 0),
        **array("b_steps", b_steps, 0),
        ".type": y.dtype.code,
        ".function": WHOLE.index(function),
    }
    sheet.note("tinyml_play_binary_whole", members, sheet.x(0), sheet.x(1), sheet.y())


COMPARISONS = (
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("and", "or", "xor"),
)
"""Functions whose results are truth values: enum tinyml_play_comparison."""


def play_compare(function: str, layer: Layer, sheet: Sheet) -> None:
    a, b, y = layer.input(0), layer.input(1), layer.output
    known = a.dtype is DType.FLOAT32 or a.dtype is DType.BOOL or a.dtype.is_integer
    if not known or a.dtype is DType.UINT64 or a.dtype is not b.dtype:
        raise NotPlayableError(f"the player has no {function} of {a.dtype.value}")
    if y.elements:
        members: Members = {
            **_loops_of_two(layer),
            ".type": a.dtype.code,
            ".function": COMPARISONS.index(function),
        }
        sheet.note("tinyml_play_compare", members, sheet.x(0), sheet.x(1), sheet.y())


def play_compare_bytes(function: str, scales: Sequence[Rescale], layer: Layer, sheet: Sheet) -> None:
    """On one scale, in fixed point."""
    a, b, y = layer.input(0), layer.input(1), layer.output
    if a.dtype is not DType.INT8:
        raise NotPlayableError(f"the player has no {function} of {a.dtype.value}")
    if y.elements:
        members: Members = {**_loops_of_two(layer), ".function": COMPARISONS.index(function)}
        for name, tensor, (multiplier, shift) in zip("ab", (a, b), scales, strict=True):
            members[f".{name}_multiplier"] = multiplier
            members[f".{name}_shift"] = shift
            members[f".{name}_zero"] = quant_of(tensor).zero_point
        sheet.note("tinyml_play_compare_s8", members, sheet.x(0), sheet.x(1), sheet.y())


def _loops_of_two(layer: Layer) -> Members:
    """Loops over the output, and the steps of both operands in them."""
    y = layer.output
    a, b = (c.broadcast_strides(layer.input(i).shape, y.shape) for i in (0, 1))
    extents, (a_steps, b_steps, _) = merged(y.shape, a, b, c.contiguous(y.shape))
    return {
        **array("extents", extents, 1),
        **array("a_steps", a_steps, 0),
        **array("b_steps", b_steps, 0),
    }


def linear_members(form: Linear, count: int, limits: tuple[int, int]) -> Members:
    """Members of struct tinyml_add_s8."""
    return {
        ".count": count,
        ".a_factor": form.factors[0],
        ".b_factor": form.factors[1],
        ".offset": form.offset,
        ".shift": form.shift,
        ".out_min": limits[0],
        ".out_max": limits[1],
    }


def _function(function: str, layer: Layer, form: Linear | None, once: bool) -> tuple[str, Members]:
    """The name of the player's function, and what it needs beside loops and limits."""
    if function in integers.UNSCALED:
        return function, {}
    if form is not None:
        a, b = form.factors
        return "linear", {".a_factor": a, ".b_factor": b, ".y_factor": form.offset, ".y_shift": form.shift}
    zeros: Members = {
        f".{name}_zero": quant_of(tensor).zero_point
        for name, tensor in (("a", layer.input(0)), ("b", layer.input(1)), ("out", layer.output))
    }
    suffix = "_once" if once else ""
    if function == "mul":
        return f"mul{suffix}", zeros | _factor("y", integers.product_rescale(layer, once))
    if function == "prelu":
        positive = _factor("a", integers.identity_rescale(layer))
        return f"prelu{suffix}", zeros | positive | _factor("y", integers.product_rescale(layer, once))
    if once:
        factors = integers.sum_once(function, layer)
        own: Members = {".a_factor": factors.a, ".b_factor": factors.b, ".headroom": factors.exponent}
        return "sum_once", zeros | own
    total = integers.sum_of(function, layer)
    own = _factor("a", total.a) | _factor("b", total.b) | _factor("y", total.y)
    own[".headroom"] = total.headroom
    own[".sign"] = 1 if function == "add" else -1
    return "squared" if function == "squared_difference" else "rescaled_sum", zeros | own


def _factor(name: str, rescale: Rescale) -> Members:
    return {f".{name}_factor": rescale[0], f".{name}_shift": rescale[1]}
