# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The functions of Binary: a table with one row each, in numpy and in C."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array
from tinyml.ops.elementwise.element_loops import Templates


@dataclass(frozen=True)
class Function:
    """What one operator does: in numpy, and as C expressions of ``a`` and ``b``."""

    numpy: Callable[[Array, Array], Array]
    c: Templates
    compares: bool = False  # the result is a truth value
    neutral: int | None = None  # the b with which the result is a
    commutes: bool = False


def _wrapping(operator: str) -> str:
    return f"({{t}})(({{w}}){{a}} {operator} ({{w}}){{b}})"


def _arithmetic(operator: str) -> Templates:
    return Templates(real=f"{{a}} {operator} {{b}}", whole=_wrapping(operator))


def _bits(operator: str) -> Templates:
    return Templates(whole=f"({{t}})({{a}} {operator} {{b}})")


def _order(operator: str) -> Templates:
    code = f"{{a}} {operator} {{b}}"
    return Templates(code, code, code)


def _helper(name: str, *more: str) -> str:
    return f"({{t}})tinyml_{name}_{{n}}({', '.join(['{a}', '{b}', *more])})"


def _divide(a: Array, b: Array) -> Array:
    """C's division: towards zero; by zero gives 0."""
    if a.dtype.kind == "f":
        return np.divide(a, b)
    safe = np.where(b == 0, 1, b).astype(b.dtype)
    floor = np.floor_divide(a, safe)
    exact = (floor * safe).astype(a.dtype) == a
    towards_zero = floor + ((floor < 0) & ~exact).astype(a.dtype)
    return np.where(b == 0, 0, towards_zero)


def _floor_divide(a: Array, b: Array) -> Array:
    """The floor of the quotient in double, as in LiteRT; numpy's own looks at the remainder."""
    if a.dtype.kind != "f":
        return np.floor_divide(a, b)
    return np.asarray(np.floor(a.astype(np.float64) / b.astype(np.float64)), a.dtype)


def _shift(a: Array, b: Array, left: bool) -> Array:
    width = a.dtype.itemsize * 8
    outside = (b < 0) | (b >= width)
    inside = np.where(outside, 0, b).astype(a.dtype)
    gone = np.where(a < 0, -1, 0) if not left and a.dtype.kind == "i" else np.zeros_like(a)
    return np.where(outside, gone, np.left_shift(a, inside) if left else np.right_shift(a, inside))


FUNCTIONS = {
    "add": Function(np.add, _arithmetic("+"), neutral=0, commutes=True),
    "sub": Function(np.subtract, _arithmetic("-"), neutral=0),
    "mul": Function(np.multiply, _arithmetic("*"), neutral=1, commutes=True),
    "div": Function(_divide, Templates("{a} / {b}", _helper("div")), neutral=1),
    "floor_div": Function(_floor_divide, Templates("tinyml_floor_div_{t}({a}, {b})", _helper("floor_div"))),
    "mod": Function(np.mod, Templates("tinyml_mod_{t}({a}, {b})", _helper("mod"))),
    "fmod": Function(np.fmod, Templates("{fmod}({a}, {b})", _helper("rem"))),
    # NaN wins, as in numpy: a number is not equal to itself only if it is none
    "min": Function(
        np.minimum, Templates("{a} < {b} || {a} != {a} ? {a} : {b}", "{a} < {b} ? {a} : {b}", "{a} && {b}")
    ),
    "max": Function(
        np.maximum, Templates("{a} > {b} || {a} != {a} ? {a} : {b}", "{a} > {b} ? {a} : {b}", "{a} || {b}")
    ),
    "squared_difference": Function(
        lambda a, b: np.square(a - b),
        Templates("({a} - {b}) * ({a} - {b})", "({t})((({w}){a} - ({w}){b}) * (({w}){a} - ({w}){b}))"),
    ),
    "atan2": Function(np.arctan2, Templates("{atan2}({a}, {b})")),
    "prelu": Function(
        lambda a, b: np.where(a < 0, a * b, a),
        Templates("{a} < 0 ? {a} * {b} : {a}", "{a} < 0 ? ({t})(({w}){a} * ({w}){b}) : {a}", unsigned="{a}"),
    ),
    "and": Function(np.logical_and, Templates(truth="{a} && {b}")),
    "or": Function(np.logical_or, Templates(truth="{a} || {b}")),
    "xor": Function(np.logical_xor, Templates(truth="{a} != {b}")),
    "bitwise_and": Function(np.bitwise_and, _bits("&")),
    "bitwise_or": Function(np.bitwise_or, _bits("|")),
    "bitwise_xor": Function(np.bitwise_xor, _bits("^")),
    "shift_left": Function(lambda a, b: _shift(a, b, True), Templates(whole=_helper("shift_left", "{bits}"))),
    "shift_right": Function(
        lambda a, b: _shift(a, b, False), Templates(whole=_helper("shift_right", "{bits}"))
    ),
    "equal": Function(np.equal, _order("=="), compares=True),
    "not_equal": Function(np.not_equal, _order("!="), compares=True),
    "less": Function(np.less, _order("<"), compares=True),
    "less_equal": Function(np.less_equal, _order("<="), compares=True),
    "greater": Function(np.greater, _order(">"), compares=True),
    "greater_equal": Function(np.greater_equal, _order(">="), compares=True),
}
