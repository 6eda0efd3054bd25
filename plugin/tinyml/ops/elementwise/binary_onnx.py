# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators with two operands as ONNX: one node, or the few that compute the same."""

from __future__ import annotations

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import DType, Layer
from tinyml.ops.elementwise.binary import ONNX_NAMES, Binary
from tinyml.ops.framework.writing import OnnxWriter, element_type, onnx_writer

WRITTEN = {function: name for name, function in ONNX_NAMES.items()}
WRITTEN |= {"max": "Max", "min": "Min", "prelu": "PRelu"}


@onnx_writer(Binary)
def write_onnx(op: Binary, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    dtype = layer.input(0).dtype
    if op.function == "squared_difference":
        difference = out.node("Sub", x)
        result = out.node("Mul", [difference, difference])
    elif op.function in WRITTEN:
        result = out.node(WRITTEN[op.function], x)
    elif op.function == "not_equal":
        result = out.node("Not", [out.node("Equal", x)])
    elif op.function == "fmod":
        result = out.node("Mod", x, fmod=1)
    elif op.function == "mod":
        result = out.node("Mod", x, fmod=0) if dtype.is_integer else _with_sign_of_divisor(x, dtype, out)
    elif op.function == "floor_div" and dtype.is_float:
        wide = [out.node("Cast", [name], to=element_type(DType.FLOAT64)) for name in x]
        result = out.node("Cast", [out.node("Floor", [out.node("Div", wide)])], to=element_type(dtype))
    elif op.function.startswith("shift_") and dtype.is_integer and dtype.limits[0] == 0:
        result = out.node("BitShift", x, direction=op.function.removeprefix("shift_").upper())
    else:
        raise UnsupportedError(f"the element-wise operator {op.function} cannot be quantised")
    out.clamped(result, op.clamp, y, layer.output.dtype)


def _with_sign_of_divisor(x: list[str], dtype: DType, out: OnnxWriter) -> str:
    """ONNX's remainder of floats has the sign of the dividend."""
    zero = out.constant(np.asarray(0, dtype.numpy), "zero")
    rest = out.node("Mod", x, fmod=1)
    other = out.node("Xor", [out.node("Less", [name, zero]) for name in (rest, x[1])])
    some = out.node("Not", [out.node("Equal", [rest, zero])])
    moved = out.node("Add", [rest, x[1]])
    return out.node("Where", [out.node("And", [some, other]), moved, rest])
