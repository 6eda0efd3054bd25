# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers of a quantised model: int8 weights, float activations, nearly the same answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.quantizing import saved
from tests.support.small_models import model_of, quantize_small
from tinyml import harness
from tinyml.base.errors import ConfigError
from tinyml.ir import Array
from tinyml.pipeline import Options, compile_model
from tinyml.quantize.measure import EXACT
from tinyml.reference.session import Session

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

STEPS, INPUTS, HIDDEN = 6, 10, 16
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def layer(op_type: str, directions: int = 1, **attributes: Any) -> tuple[onnx.ModelProto, int]:
    """One recurrent layer whose only result is its last state, and how many weights its matrices have."""
    random = np.random.default_rng(7)
    rows = GATES[op_type] * HIDDEN
    constants: dict[str, Array] = {
        "w": random.normal(0, 0.4, (directions, rows, INPUTS)).astype(np.float32),
        "r": random.normal(0, 0.3, (directions, rows, HIDDEN)).astype(np.float32),
        "b": random.normal(0, 0.2, (directions, 2 * rows)).astype(np.float32),
    }
    way = "bidirectional" if directions == 2 else "forward"
    node = helper.make_node(
        op_type, ["x", "w", "r", "b"], ["", "y"], "cell", hidden_size=HIDDEN, direction=way, **attributes
    )
    return model_of([node], constants, [STEPS, 1, INPUTS]), constants["w"].size + constants["r"].size


@pytest.mark.parametrize(
    "op_type,options",
    [
        ("RNN", {}),
        ("GRU", {}),
        ("GRU", {"linear_before_reset": 1}),  # as PyTorch exports it
        ("LSTM", {}),
        ("LSTM", {"directions": 2}),
    ],
)
def test_weights_take_one_byte_each(op_type: str, options: dict[str, Any], tmp_path: Path) -> None:
    model, weights = layer(op_type, **options)
    result = quantize_small(model, tmp_path, (STEPS, 1, INPUTS))
    assert [(found.name, found.kind) for found in result.report.layers] == [("cell", "int8 weights")]
    assert 30 < result.report.decibels < EXACT
    plain = compile_model(tmp_path / "small.onnx", Options("cell", "host"))
    compiled = compile_model(saved(result, tmp_path), Options("cell", "host"))
    scales = 2 * options.get("directions", 1) * GATES[op_type] * HIDDEN
    saved_bytes = plain.summary["weights_bytes"] - compiled.summary["weights_bytes"]
    assert saved_bytes == 3 * weights - 4 * scales
    by_layer = [item["weights_bytes"] for item in compiled.summary["layers"]]
    assert sum(by_layer) == compiled.summary["weights_bytes"]
    samples = np.random.default_rng(3).uniform(-1, 1, (4, STEPS, 1, INPUTS)).astype(np.float32)
    (name,) = compiled.graph.inputs
    found = harness.run_files(compiled.files, "host", [{name: sample} for sample in samples]).outputs
    for sample, answer in zip(samples, found, strict=True):
        wanted = Session(result.model).run({"x": sample})["y"]
        np.testing.assert_allclose(answer["y"].reshape(wanted.shape), wanted, atol=1e-5)


def test_kept_float_the_weights_are_as_they_were(tmp_path: Path) -> None:
    model, _ = layer("LSTM")
    result = quantize_small(
        model, tmp_path, (STEPS, 1, INPUTS), lambda request: replace(request, keep_float=("cell",))
    )
    assert [found.kind for found in result.report.layers] == ["float"]
    assert result.report.decibels == EXACT


def test_int16_is_refused(tmp_path: Path) -> None:
    model, _ = layer("GRU")
    with pytest.raises(ConfigError, match="cannot be computed on int16"):
        quantize_small(model, tmp_path, (STEPS, 1, INPUTS), lambda request: replace(request, int16=("cell",)))


def test_weights_that_are_computed_stay_as_they_are(tmp_path: Path) -> None:
    """Two layers share a matrix, and one has another that is data: only constants are stored as bytes."""
    model, _ = layer("RNN")
    second = onnx.NodeProto()
    second.CopyFrom(model.graph.node[0])
    second.name, second.output[1] = "again", "z"
    third = onnx.NodeProto()
    third.CopyFrom(model.graph.node[0])
    third.name, third.output[1], third.input[2] = "data", "u", "made"
    grown = helper.make_node("Expand", ["scalar", "shape"], ["made"], "grow")
    scalar = helper.make_node("ReduceMean", ["x"], ["scalar"], "mean", axes=[0, 1, 2])
    shape = onnx.numpy_helper.from_array(np.asarray([1, HIDDEN, HIDDEN]), "shape")
    model.graph.initializer.append(shape)
    model.graph.node.extend([second, scalar, grown, third])
    for name in ("z", "u"):
        model.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    result = quantize_small(model, tmp_path, (STEPS, 1, INPUTS))
    kinds = {found.name: found.kind for found in result.report.layers if found.op_type == "RNN"}
    assert kinds == {"cell": "int8 weights", "again": "int8 weights", "data": "float"}
    stored = [tensor.name for tensor in result.model.graph.initializer]
    assert {"w", "w/int8", "r/int8"} <= set(stored)  # the third layer reads the first matrix as it was
    assert "r" not in stored
    compile_model(saved(result, tmp_path), Options("cell", "host"))
