# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Small good files with weights of four bits, which fuzzing changes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.ir import Array, Quant

INT4 = np.dtype(ml_dtypes.int4)
RNG = np.random.default_rng(8)


def _onnx(nodes: list[onnx.NodeProto], shape: list[int], **constants: Array) -> bytes:
    graph = helper.make_graph(
        nodes,
        "packed",
        [helper.make_tensor_value_info("x", 1 if len(shape) > 1 else 7, shape)],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return bytes(model.SerializeToString())


def _real(*shape: int) -> Array:
    return RNG.uniform(0.05, 0.5, shape).astype(np.float32)


def _int4(*shape: int) -> Array:
    return RNG.integers(-8, 8, shape).astype(INT4)


def _bytes(*shape: int) -> Array:
    return RNG.integers(0, 256, shape).astype(np.uint8)


def _node(words: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    op_type, operands = words.split()
    domain = "com.microsoft" if op_type in ("MatMulNBits", "GatherBlockQuantized") else ""
    return helper.make_node(op_type, operands.split(","), [output], domain=domain, **attributes)


def onnx_files() -> list[bytes]:
    dense = _node("MatMulNBits x,w,s", K=48, N=5, block_size=16, bits=8)
    zeros = _node("MatMulNBits x,w,s,z", K=48, N=5, block_size=16)
    rows = _node("GatherBlockQuantized w,x,s", block_size=16)
    blocks = _node("DequantizeLinear w,s,z", "r", axis=0, block_size=16)
    channels = _node("DequantizeLinear w,s", "r", axis=0)
    inner = _node("DequantizeLinear w,s", "r", axis=1)
    pair = [_node("QuantizeLinear x,s,z", "q"), _node("DequantizeLinear q,s,z")]
    return [
        _onnx([blocks, _node("MatMul x,r")], [1, 48], w=_int4(48, 5), s=_real(3, 5), z=_int4(3, 5)),
        _onnx([channels, _node("Conv x,r")], [1, 3, 4, 4], w=_int4(4, 3, 2, 2), s=_real(4)),
        _onnx([inner, _node("ConvTranspose x,r")], [1, 3, 4, 4], w=_int4(3, 4, 2, 2), s=_real(4)),
        _onnx([zeros], [1, 48], w=_bytes(5, 3, 8), s=_real(15), z=_bytes(10)),
        _onnx([dense], [1, 48], w=_bytes(5, 3, 16), s=_real(15)),
        _onnx([rows], [2], w=_int4(6, 32), s=_real(6, 2)),
        _onnx(pair, [1, 8], s=_real(1).reshape(()), z=_int4(1).reshape(())),
    ]


def tflite_files() -> list[bytes]:
    stored = RNG.integers(-7, 8, (5, 32)).astype(np.int8)
    call = Call("FULLY_CONNECTED", ["x", "w", ""], ["y"], "FullyConnectedOptions", {})
    blocks = [
        Value("x", (1, 32)),
        Value("w", (5, 32), "int4", None, stored, blocks=("s", 16)),
        Value.constant("s", _real(5, 2)),
        Value("y", (1, 5)),
    ]
    whole = [
        Value("x", (1, 32), "int8", Quant.per_tensor(0.1, 3)),
        Value("w", (5, 32), "int4", Quant((0.1, 0.2, 0.3, 0.4, 0.5), (0,) * 5, 0), stored),
        Value("y", (1, 5), "int8", Quant.per_tensor(0.7, -3)),
    ]
    return [write(Part(values, [call], ["x"], ["y"])) for values in (blocks, whole)]
