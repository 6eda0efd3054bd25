# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights of two and four bits: per tensor, per channel and in blocks, with float and int8 activations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.random import default_rng as rng
from onnx import helper

from tests.support.cases import Case, Const, onnx_nodes_case
from tinyml.ir import Array

LIMITS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}


def integers(seed: int, kind: str, *shape: int) -> Array:
    low, high = LIMITS[kind]
    values = rng(seed).integers(low, high, shape, endpoint=True)
    return values.astype(np.dtype(getattr(ml_dtypes, kind)))


def scales(seed: int, *shape: int) -> Array:
    return rng(seed).uniform(0.01, 0.2, shape).astype(np.float32)


def real(seed: int, *shape: int) -> Array:
    return rng(seed).normal(0, 1, shape).astype(np.float32)


def node(op_type: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(), [output], **attributes)


def layer(
    name: str,
    op_type: str,
    x: Array,
    weights: Sequence[Array],
    *,
    axis: int = 0,
    block: int = 0,
    bias: Array | None = None,
    quantised: bool = False,
    opset: int = 21,
    attributes: dict[str, Any] | None = None,
) -> Case:
    """A layer whose weights are integers, scales and perhaps zero points; ``quantised``: int8 activations."""
    operands: dict[str, Array | Const] = {"x": x}
    parts = [f"w{i}" for i in range(len(weights))]
    operands.update({part: Const(value) for part, value in zip(parts, weights, strict=True)})
    blocked = {"block_size": block} if block else {}
    nodes = [node("DequantizeLinear", " ".join(parts), "w", axis=axis, **blocked)]
    source, result = "x", "y"
    if quantised:
        operands["s"], operands["z"] = Const(np.array(0.02, np.float32)), Const(np.array(3, np.int8))
        operands["t"] = Const(np.array(0.05, np.float32))
        nodes += [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d")]
        source, result = "d", "sum"
    if bias is not None:
        operands["b"] = Const(bias)
    inputs = f"{source} w" + (" b" if bias is not None else "")
    nodes.append(node(op_type, inputs, result, **(attributes or {})))
    if quantised:
        nodes.append(node("QuantizeLinear", "sum t z", "r"))
        nodes.append(node("DequantizeLinear", "r t z", "y"))
    atol = (
        0.0501 if quantised else 1e-5
    )  # one step, where onnxruntime's float32 is on the other side of a tie
    return onnx_nodes_case(name, nodes, operands, ["y"], opset=opset, rtol=1e-5, atol=atol)


def _cases() -> list[Case]:
    found = []
    for kind, opset in (("int4", 21), ("uint4", 21), ("int2", 25), ("uint2", 25)):
        x, image = real(1, 2, 64), real(2, 1, 5, 6, 6)
        matrix, filters = integers(3, kind, 64, 10), integers(4, kind, 8, 5, 3, 3)
        zeros = integers(5, kind, 10)
        for quantised in (False, True):
            how: dict[str, Any] = {"quantised": quantised, "opset": opset}
            name = f"{kind} {'int8' if quantised else 'float'}"
            one = [matrix, scales(6)[()]]
            found += [
                layer(f"{name} per tensor", "MatMul", x, one, **how),
                layer(f"{name} zero point", "MatMul", x, [*one, zeros[0]], **how),
                layer(f"{name} per channel", "MatMul", x, [matrix, scales(7, 10), zeros], axis=1, **how),
                layer(f"{name} blocked", "MatMul", x, [matrix, scales(8, 4, 10)], block=16, **how),
                layer(f"{name} blocked short", "MatMul", x, [matrix, scales(9, 3, 10)], block=24, **how),
                layer(f"{name} one block", "MatMul", x, [matrix, scales(9, 1, 10)], block=64, **how),
                layer(f"{name} conv", "Conv", image, [filters, scales(11, 8)], bias=real(12, 8), **how),
                layer(
                    f"{name} transposed",
                    "ConvTranspose",
                    image,
                    [integers(14, kind, 5, 8, 3, 2), scales(15, 8)],
                    axis=1,
                    bias=real(12, 8),
                    attributes={"strides": [2, 2]},
                    **how,
                ),
                layer(
                    f"{name} blocked zero points",
                    "MatMul",
                    x,
                    [matrix, scales(8, 2, 10), integers(10, kind, 2, 10)],
                    block=32,
                    **how,
                ),
                layer(
                    f"{name} gemm",
                    "Gemm",
                    x,
                    [matrix.T.copy(), scales(13, 10, 2)],
                    axis=1,
                    block=32,
                    bias=real(14, 10),
                    attributes={"transB": 1},
                    **how,
                ),
            ]
    return found


CASES = _cases()
