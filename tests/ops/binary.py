# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Binary: arithmetic, logic, comparison and shifts, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.cases import Case, Const, onnx_case, op_case
from tests.support.data import real, truth, whole
from tinyml.ir import Array
from tinyml.ops.elementwise.binary import Binary

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ARITHMETIC = ("Add", "Sub", "Mul")
COMPARISONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
STRANGE = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3.0, -3.0], np.float32)
A, B = np.repeat(STRANGE, 7), np.tile(STRANGE, 7)
with np.errstate(invalid="ignore"):
    STRANGE_MOD = np.mod(A, B)


def edges(dtype: str) -> tuple[Array, Array]:
    """All pairs of some values at the ends of a type."""
    info = np.iinfo(dtype)
    some = np.array([info.min, info.min + 1, info.min // 2, 0, 1, 2, 5, 7, info.max // 2, info.max], dtype)
    some = np.concatenate([some, np.array([-1, -3], dtype)]) if info.min < 0 else some
    return np.repeat(some, some.size), np.tile(some, some.size)


CALCULATE: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1),
    "floor_div": lambda x, y: 0 if y == 0 else x // y,
    "mod": lambda x, y: 0 if y == 0 else x % y,
    "fmod": lambda x, y: 0 if y == 0 else abs(x) % abs(y) * (-1 if x < 0 else 1),
    "squared_difference": lambda x, y: (x - y) ** 2,
}


def wrapped(function: str, dtype: str) -> Case:
    """Python's integers, cut to the type: an oracle that knows no overflow."""
    a, b = edges(dtype)
    bits = np.iinfo(dtype).bits
    results = [CALCULATE[function](int(x), int(y)) % (1 << bits) for x, y in zip(a, b, strict=True)]
    expected = np.array(results, f"uint{bits}").view(dtype)
    return op_case(f"{function}_{dtype}", Binary(function), [a, b], expected=[expected])


CASES: list[Case] = [
    *(onnx_case(f"{op}_same", op, [real(2, 3), real(2, 3, seed=1)]) for op in (*ARITHMETIC, "Div")),
    *(
        onnx_case(f"{op}_double", op, [real(5, dtype="float64"), real(5, dtype="float64", seed=1)])
        for op in ("Add", "Div")
    ),
    onnx_case("add_channels", "Add", [real(2, 3, 4), Const(real(3, 1))]),
    onnx_case("add_both_ways", "Add", [real(2, 1, 4), real(3, 1)]),
    onnx_case("mul_literal", "Mul", [Const(real()), real(2, 3)]),
    onnx_case("sub_negative_literal", "Sub", [real(2, 3), Const(np.float32(-2.5))]),
    onnx_case("add_in_place_twice", "Add", [real(3), real(3, seed=4)]),
    *(
        wrapped(function, dtype)
        for function in ("add", "sub", "mul", "div", "floor_div", "mod", "fmod", "squared_difference")
        for dtype in INTEGERS
    ),
    *(
        onnx_case(f"{op}_{t}", op, [*edges(t)])
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
        for t in INTEGERS
    ),
    *(onnx_case(f"{op}_{t}", op, [*edges(t)]) for op in COMPARISONS for t in ("int32", "int64")),
    *(
        onnx_case(f"{op}_{t}", op, [*edges(t)], oracle="reference")
        for op in COMPARISONS
        for t in ("int8", "uint16", "uint64")
    ),
    *(onnx_case(f"{op}_float", op, [A, B]) for op in COMPARISONS),
    onnx_case("equal_bool", "Equal", [truth(8), truth(8, seed=1)]),
    *(onnx_case(op, op, [truth(2, 8), truth(8, seed=1)]) for op in ("And", "Or", "Xor")),
    *(
        onnx_case(
            f"shift_{direction}_{t}",
            "BitShift",
            [whole(20, dtype=t), whole(20, low=0, high=7, dtype=t)],
            direction=direction,
        )
        for direction in ("LEFT", "RIGHT")
        for t in ("uint8", "uint32", "uint64")
    ),
    op_case(
        "shift_odd",
        Binary("shift_right"),
        [np.array([-8, 4, -1, 4], np.int8), np.array([8, 9, -1, 127], np.int8)],
        expected=[np.array([-1, 0, -1, 0], np.int8)],
    ),
    op_case("mod_float_strange", Binary("mod"), [A, B], expected=[STRANGE_MOD]),
    onnx_case("fmod_float", "Mod", [real(20), real(20, seed=1)], fmod=1),
    onnx_case("prelu", "PRelu", [real(2, 3, 4), Const(real(3, 1))]),
    *(onnx_case(f"{op}_nan", op, [A, B]) for op in ("Min", "Max")),
    *(
        onnx_case(f"{op}_three", op, [real(2, 3), real(3), real(2, 1)])
        for op in ("Min", "Max", "Sum", "Mean")
    ),
    *(onnx_case(f"{op}_one", op, [real(2, 3)]) for op in ("Min", "Max", "Sum", "Mean")),
    *(onnx_case(f"{op}_{t}", op, [*edges(t)]) for op in ("Min", "Max") for t in ("int32", "uint64", "int8")),
    op_case("atan2", Binary("atan2"), [real(9), real(9, seed=1)]),
    op_case(
        "clamped",
        Binary("add", clamp=(0.0, 2.5)),
        [real(50), real(50, seed=1)],
        expected=[np.clip(real(50) + real(50, seed=1), 0, 2.5)],
    ),
    op_case(
        "clamped_int",
        Binary("mul", clamp=(-3.0, np.inf)),
        [whole(50, dtype="int16"), whole(50, dtype="int16", seed=1)],
    ),
]
