# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers between int8 borders compute with integers, unless their real result is used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.support.quantizing import saved
from tests.support.small_models import model_of, quantize_small
from tinyml.ops.quantization.quantize import Quantize
from tinyml.pipeline import Options, compile_model

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

STEPS, INPUTS, HIDDEN = 4, 5, 8
SHAPE = (STEPS, 1, INPUTS)


@pytest.fixture
def quantized(tmp_path: Path) -> onnx.ModelProto:
    """A GRU with int8 borders."""
    rng = np.random.default_rng(7)
    rows = 3 * HIDDEN
    constants = {
        "w": rng.normal(0, 0.4, (1, rows, INPUTS)).astype(np.float32),
        "r": rng.normal(0, 0.3, (1, rows, HIDDEN)).astype(np.float32),
    }
    node = helper.make_node("GRU", ["x", "w", "r"], ["", "y"], "cell", hidden_size=HIDDEN)
    result = quantize_small(model_of([node], constants, list(SHAPE)), tmp_path, SHAPE)
    return onnx.load(saved(result, tmp_path))


def kinds(model: onnx.ModelProto, folder: Path) -> list[str]:
    """The recurrent layers and the quantising ones, by operator."""
    path = folder / "changed.onnx"
    onnx.save(model, path)
    found = [layer.op for layer in compile_model(path, Options("cell", "host")).graph.layers()]
    return [op.kind for op in found if "Recurrent" in op.kind or isinstance(op, Quantize)]


def cell_of(model: onnx.ModelProto) -> onnx.NodeProto:
    return next(node for node in model.graph.node if node.op_type == "GRU")


def test_borders_become_an_integer_layer(quantized: onnx.ModelProto, tmp_path: Path) -> None:
    assert kinds(quantized, tmp_path) == ["Quantize", "RecurrentInt8"]


def test_a_layer_whose_real_result_is_an_output_stays_real(
    quantized: onnx.ModelProto, tmp_path: Path
) -> None:
    name = cell_of(quantized).output[1]
    quantized.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    assert "RecurrentInt8" not in kinds(quantized, tmp_path)


def test_borders_that_are_alike_are_one(quantized: onnx.ModelProto, tmp_path: Path) -> None:
    """Exporters quantise the result once for each reader."""
    name = cell_of(quantized).output[1]
    border = next(node for node in quantized.graph.node if name in node.input)
    copy = helper.make_node("QuantizeLinear", border.input, ["again"], "again")
    back = helper.make_node("DequantizeLinear", ["again", *border.input[1:]], ["z"], "back")
    for attribute in border.attribute:
        copy.attribute.append(attribute)
    quantized.graph.node.extend([copy, back])
    quantized.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None))
    assert kinds(quantized, tmp_path) == ["Quantize", "RecurrentInt8"]


def test_a_border_with_another_scale_keeps_the_layer_real(quantized: onnx.ModelProto, tmp_path: Path) -> None:
    name = cell_of(quantized).output[1]
    border = next(node for node in quantized.graph.node if name in node.input)
    scale = numpy_helper.from_array(np.float32(0.25), "another_scale")
    quantized.graph.initializer.append(scale)
    words = [name, "another_scale", *border.input[2:]]
    quantized.graph.node.extend(
        [
            helper.make_node("QuantizeLinear", words, ["again"], "again"),
            helper.make_node("DequantizeLinear", ["again", *words[1:]], ["z"], "back"),
        ]
    )
    quantized.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None))
    assert "RecurrentInt8" not in kinds(quantized, tmp_path)
