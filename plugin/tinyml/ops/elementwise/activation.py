# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Functions of one operand as TFLite files have them: float as Unary, bytes as a table.

Each quantised function is either defined by TensorFlow Lite in arithmetic of its own, which a table can hold
exactly, or it is the real function between a Dequantize and a Quantize, which a table can hold as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import Array, DType, Op, Tensor, TensorType
from tinyml.ops.elementwise import activation_tables as tables
from tinyml.ops.elementwise import int16_activation, int16_tflite_table, lookup
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import Cast
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.shared.real import in_real_numbers, to_real


def add_function(
    build: Builder, x: Tensor, output: TensorType, op: Unary, stored: Array | None = None
) -> Tensor:
    """``op`` on x; ``stored`` are the results for all bytes where they are defined in integers."""
    if output.quant is None and x.quant is None:
        return build.add1(op, [x], output)
    if int16_activation.takes(x, output):
        if op.function == "sqrt":
            return _square_root_rounded_down(build, x, output)
        if (integers := _on_int16(x, output, op)) is not None:
            return build.add1(integers, [x], output)
    if not lookup.takes(x, output):
        return in_real_numbers(build, op, [x], output)
    if stored is None:
        table = lookup.from_function(op.function, op.real, x, output, halves_to_even=False)
    else:
        table = lookup.from_integers(op.function, x, output, stored)
    return build.add1(table, [x], output)


def _on_int16(x: Tensor, output: TensorType, op: Unary) -> Op | None:
    """The function in TensorFlow Lite's integer arithmetic, where it has one."""
    if op.function in ("sigmoid", "tanh") and int16_activation.is_unit(output):
        return int16_activation.SigmoidInt16(op.function == "tanh")
    if op.function in ("leaky_relu", "abs"):
        return int16_activation.LeakyInt16(-1.0 if op.function == "abs" else op.parameters[0])
    if op.function in int16_tflite_table.FUNCTIONS:
        return int16_tflite_table.table(op.function, x, output)
    return None


def _square_root_rounded_down(build: Builder, x: Tensor, output: TensorType) -> Tensor:
    """In float32. It needs no zero point and has no negative result, so that truncating rounds down."""
    assert output.quant is not None
    root = build.add1(Unary("sqrt"), [to_real(build, x)])
    step = build.constant(np.asarray(output.quant.scale, np.float32), f"{root.name}/step")
    return build.add1(Cast(output.dtype), [build.add1(Binary("div"), [root, step])], output)


NAMES = {
    "ABS": "abs",
    "CEIL": "ceil",
    "COS": "cos",
    "ELU": "elu",
    "EXP": "exp",
    "FLOOR": "floor",
    "GELU": "gelu",
    "LOG": "log",
    "LOGICAL_NOT": "not",
    "NEG": "neg",
    "ROUND": "round",
    "RSQRT": "rsqrt",
    "SIGN": "sign",
    "SIN": "sin",
    "SQRT": "sqrt",
    "SQUARE": "square",
}


@tflite_op(*NAMES)
def read_function(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, output = node.input(0), node.outputs[0]
    function = NAMES[node.op_type]
    parameters = (1.0,) if function == "elu" else ()
    if function == "gelu" and node.options is not None and node.options.Approximate():
        function = "gelu_tanh"
    table = {"abs": tables.absolute, "sqrt": tables.square_root}.get(function)
    stored = table(x, output) if table is not None and lookup.takes(x, output) else None
    return [add_function(build, x, output, Unary(function, parameters), stored)]


@tflite_op("LOGISTIC", "TANH", "HARD_SWISH")
def read_tabulated(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, output = node.input(0), node.outputs[0]
    function, table = {
        "LOGISTIC": ("sigmoid", tables.logistic),
        "TANH": ("tanh", tables.tanh),
        "HARD_SWISH": ("hard_swish", tables.hard_swish),
    }[node.op_type]
    stored = table(x, output) if lookup.takes(x, output) else None
    return [add_function(build, x, output, Unary(function), stored)]


@tflite_op("LEAKY_RELU")
def read_leaky_relu(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, output = node.input(0), node.outputs[0]
    alpha = node.options.Alpha()
    if alpha < 0 and x.dtype is DType.INT16:
        raise UnsupportedError(
            f"LEAKY_RELU operator {node.name!r} of int16 has a negative slope, {alpha:g}",
            "a slope of 0 or more; int8 and float32 can have any",
        )
    stored = tables.leaky_relu(x, output, alpha) if lookup.takes(x, output) else None
    return [add_function(build, x, output, Unary("leaky_relu", (alpha,)), stored)]
