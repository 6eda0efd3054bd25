# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Small integer models at the limits of int8, written out by hand, with their exact answers.

The operands are such that a CPU that adds pairs of products in int16 cannot but saturate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tinyml.ir import Array

X_SCALE, Y_SCALE = np.float32(0.02), np.float32(1.7)
ROWS, DEPTH, COLUMNS = 3, 16, 5
MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Exact:
    """A model, its inputs by name and the output."""

    model: onnx.ModelProto
    inputs: Mapping[str, Array]
    output: Array


@dataclass(frozen=True)
class Operand:
    """8-bit values near the ends of their type, and what they mean."""

    data: Array
    scale: Array
    zero: Array

    @property
    def offset(self) -> Array:
        """Value - zero point; the zero point is along the first axis if there are several."""
        return self.data.astype(np.int64) - self.zero.reshape(-1, *[1] * (self.data.ndim - 1))


def operand(kind: str, shape: tuple[int, ...], zero: int, scale: Array = X_SCALE, seed: int = 0) -> Operand:
    limits = np.iinfo(kind)
    data = np.random.default_rng(seed).integers(limits.max - 60, limits.max, shape, endpoint=True)
    return Operand(data.astype(kind), np.asarray(scale, np.float32), np.array(zero, kind))


def model(
    nodes: Sequence[onnx.NodeProto], inputs: Mapping[str, Array], constants: Mapping[str, Array]
) -> onnx.ModelProto:
    """The output is ``y``."""
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(list(nodes), "integers", values, [onnx.ValueInfoProto(name="y")], tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def stored(real: Array, zero: Array) -> Array:
    """Real numbers as 8-bit ones."""
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(real / np.float64(Y_SCALE)) + zero, limits.min, limits.max).astype(zero.dtype)


def convolved(x: Array, w: Array) -> Array:
    """A 3x3 convolution, padded by 1."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    result: Array = np.einsum("nchwij,ocij->nohw", windows, w)
    return result


def qlinear_matmul(x_kind: str, w_kind: str, op_type: str = "QLinearMatMul") -> Exact:
    x, w = operand(x_kind, (ROWS, DEPTH), 3), operand(w_kind, (DEPTH, COLUMNS), 0, seed=1)
    zero = np.array(9, x_kind)
    constants = {"xs": x.scale, "xz": x.zero, "w": w.data, "ws": w.scale, "wz": w.zero}
    names = ["x", *constants, *([""] if op_type == "QGemm" else []), "ys", "yz"]
    domain = MICROSOFT if op_type == "QGemm" else ""
    node = helper.make_node(op_type, names, ["y"], domain=domain)
    wanted = stored((x.offset @ w.offset) * np.float64(x.scale) * np.float64(w.scale), zero)
    return Exact(
        model([node], {"x": x.data}, {**constants, "ys": Y_SCALE, "yz": zero}), {"x": x.data}, wanted
    )


def qlinear_conv(x_kind: str, w_kind: str) -> Exact:
    """Weights with a scale for each channel."""
    scales = np.linspace(0.01, 0.03, COLUMNS).astype(np.float32)
    x = operand(x_kind, (1, 4, 6, 6), 3)
    w = operand(w_kind, (COLUMNS, 4, 3, 3), 0, scales, seed=1)
    zeros, zero = np.zeros(COLUMNS, w_kind), np.array(9, x_kind)
    constants = {"xs": x.scale, "xz": x.zero, "w": w.data, "ws": scales, "wz": zeros}
    constants |= {"ys": Y_SCALE, "yz": zero, "b": np.arange(COLUMNS, dtype=np.int32) * 100}
    node = helper.make_node("QLinearConv", ["x", *constants], ["y"], pads=[1, 1, 1, 1])
    total = convolved(x.offset, w.offset) + constants["b"].reshape(-1, 1, 1)
    real = total * (np.float64(x.scale) * scales.astype(np.float64)).reshape(-1, 1, 1)
    return Exact(model([node], {"x": x.data}, constants), {"x": x.data}, stored(real, zero))


def integer_sum(op_type: str, x_kind: str, w_kind: str, has_zeros: bool) -> Exact:
    """MatMulInteger and ConvInteger: int32 comes out."""
    is_conv = op_type == "ConvInteger"
    x = operand(x_kind, (1, 4, 6, 6) if is_conv else (ROWS, DEPTH), 3 if has_zeros else 0)
    w = operand(w_kind, (COLUMNS, 4, 3, 3) if is_conv else (DEPTH, COLUMNS), 1 if has_zeros else 0, seed=1)
    constants = {"w": w.data, **({"xz": x.zero, "wz": w.zero} if has_zeros else {})}
    more: dict[str, Any] = {"pads": [1, 1, 1, 1]} if is_conv else {}
    node = helper.make_node(op_type, ["x", *constants], ["y"], **more)
    wanted = convolved(x.offset, w.offset) if is_conv else x.offset @ w.offset
    return Exact(model([node], {"x": x.data}, constants), {"x": x.data}, wanted.astype(np.int32))


def to_float(w_kind: str) -> Exact:
    """MatMulIntegerToFloat: the sum in real numbers."""
    x, w = operand("uint8", (ROWS, DEPTH), 3), operand(w_kind, (DEPTH, COLUMNS), 0, seed=1)
    constants = {"w": w.data, "xs": x.scale, "ws": w.scale, "xz": x.zero, "wz": w.zero}
    node = helper.make_node("MatMulIntegerToFloat", ["x", *constants], ["y"], domain=MICROSOFT)
    wanted = (x.offset @ w.offset) * np.float64(x.scale) * np.float64(w.scale)
    return Exact(model([node], {"x": x.data}, constants), {"x": x.data}, wanted.astype(np.float32))


def qdq(op_type: str, x_kind: str, w_kind: str, bias: str = "", transposed: bool = False) -> Exact:
    """DequantizeLinear → layer → QuantizeLinear; ``bias`` is "", "int32" or "float"."""
    is_conv = op_type == "Conv"
    scales = np.linspace(0.01, 0.03, COLUMNS).astype(np.float32)
    x = operand(x_kind, (1, 4, 6, 6) if is_conv else (ROWS, DEPTH), 3)
    shape = (COLUMNS, 4, 3, 3) if is_conv else (COLUMNS, DEPTH)
    w = operand(w_kind, shape, 0, scales, seed=1)
    last = not (is_conv or transposed)
    zeros, zero = np.zeros(COLUMNS, w_kind), np.array(9, x_kind)
    constants = {"xs": x.scale, "xz": x.zero, "ws": scales, "wz": zeros, "ys": Y_SCALE, "yz": zero}
    constants["w"] = w.data.T.copy() if last else w.data
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"], axis=1 if last else 0),
    ]
    scale = np.float64(x.scale) * scales.astype(np.float64)
    along = (-1, 1, 1) if is_conv else (-1,)
    total = convolved(x.offset, w.offset) if is_conv else x.offset @ w.offset.T
    whole = np.arange(COLUMNS, dtype=np.int32) * 100
    real = total * scale.reshape(along)
    if bias == "int32":
        constants |= {"b": whole, "bs": scale.astype(np.float32), "bz": np.zeros(COLUMNS, np.int32)}
        nodes.append(helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["br"], axis=0))
        real = (total + whole.reshape(along)) * scale.reshape(along)
    elif bias:
        constants["br"] = (whole * scale).astype(np.float32)
        real = real + constants["br"].astype(np.float64).reshape(along)
    more: dict[str, Any] = {"pads": [1, 1, 1, 1]} if is_conv else {"transB": 1} if transposed else {}
    nodes.append(helper.make_node(op_type, ["xr", "wr", *(["br"] if bias else [])], ["r"], **more))
    nodes.append(helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]))
    return Exact(model(nodes, {"x": x.data}, constants), {"x": x.data}, stored(real, zero))


PAIRS = [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")]

MODELS: dict[str, Callable[[], Exact]] = {
    f"{name}-{x}-{w}": lambda make=make, x=x, w=w: make(x, w)  # type: ignore[misc]
    for x, w in PAIRS
    for name, make in {
        "QLinearMatMul": qlinear_matmul,
        "QGemm": lambda x, w: qlinear_matmul(x, w, "QGemm"),
        "QLinearConv": qlinear_conv,
        "MatMulInteger": lambda x, w: integer_sum("MatMulInteger", x, w, True),
        "MatMulInteger-no-zeros": lambda x, w: integer_sum("MatMulInteger", x, w, False),
        "ConvInteger": lambda x, w: integer_sum("ConvInteger", x, w, True),
        "MatMulIntegerToFloat": lambda _, w: to_float(w),
        "Conv": lambda x, w: qdq("Conv", x, w),
        "Conv-bias": lambda x, w: qdq("Conv", x, w, "int32"),
        "Conv-float-bias": lambda x, w: qdq("Conv", x, w, "float"),
        "MatMul": lambda x, w: qdq("MatMul", x, w),
        "Gemm": lambda x, w: qdq("Gemm", x, w, "int32"),
        "Gemm-transposed": lambda x, w: qdq("Gemm", x, w, "float", transposed=True),
    }.items()
}
