# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tf.nn.gelu`` as tf2onnx writes it, with an operator that ONNX does not have, in floats and as a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tinyml
from tinyml.ops.elementwise.lookup import Lookup
from tinyml.quantize.engine import quantize
from tinyml.settings.quantize_request import Request


def gelu(path: Path) -> Path:
    """The five nodes, in tf2onnx's order and with its names."""
    steps = [
        ("Mul", ["Gelu/mul/x:0", "x"], "Gelu/mul:0"),
        ("Neg", ["x"], "Gelu/Neg:0"),
        ("Mul", ["Gelu/Neg:0", "Gelu/Cast/x:0"], "Gelu/mul_1:0"),
        ("Erfc", ["Gelu/mul_1:0"], "Gelu/Erfc:0"),
        ("Mul", ["Gelu/mul:0", "Gelu/Erfc:0"], "y"),
    ]
    nodes = [helper.make_node(op, inputs, [y], y.removesuffix(":0")) for op, inputs, y in steps]
    numbers = {"Gelu/mul/x:0": 0.5, "Gelu/Cast/x:0": 0.5**0.5}
    fixed = [numpy_helper.from_array(np.float32(value), name) for name, value in numbers.items()]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 32)) for name in "xy")
    model = helper.make_model(
        helper.make_graph(nodes, "gelu", [x], [y], fixed),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(model, path)
    return path


def test_floats_agree_with_onnxruntime(tmp_path: Path) -> None:
    assert tinyml.verify(gelu(tmp_path / "gelu.onnx")).agrees


def test_bytes_are_one_table(tmp_path: Path) -> None:
    rows = np.linspace(-4, 4, 64 * 32, dtype=np.float32).reshape(64, 1, 32)
    np.savez(tmp_path / "rows.npz", x=rows)
    made = quantize(gelu(tmp_path / "gelu.onnx"), Request(tmp_path / "rows.npz")).model
    (tmp_path / "int8.onnx").write_bytes(made.SerializeToString())
    compiled = tinyml.compile(tmp_path / "int8.onnx")
    kinds = [layer["op"] for layer in compiled.summary["layers"]]
    assert kinds == ["Quantize", Lookup.__name__, "Dequantize"]
