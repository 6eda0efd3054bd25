# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers of a quantised model: int8, or float with int8 weights; nearly the same answers."""

from __future__ import annotations

import re
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
from tinyml.base.errors import ConfigError, ModelError
from tinyml.importers import cell_scales
from tinyml.ir import Array
from tinyml.ir.interpreter import interpret
from tinyml.ops.recurrent.gates_int16 import TANH
from tinyml.ops.recurrent.recurrent_int8 import RecurrentInt8
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.quantize.measure import EXACT, Noise
from tinyml.quantize.work import LARGE_CELLS
from tinyml.reference.session import Session

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

STEPS, INPUTS, HIDDEN = 6, 10, 16
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def layer(
    op_type: str, directions: int = 1, batch: int = 1, **attributes: Any
) -> tuple[onnx.ModelProto, int]:
    """One recurrent layer whose only result is its last state, and how many weights its matrices have."""
    random = np.random.default_rng(7)
    rows = GATES[op_type] * HIDDEN
    constants: dict[str, Array] = {
        "w": random.normal(0, 0.4, (directions, rows, INPUTS)).astype(np.float32),
        "r": random.normal(0, 0.3, (directions, rows, HIDDEN)).astype(np.float32),
        "b": random.normal(0, 0.2, (directions, 2 * rows)).astype(np.float32),
    }
    attributes = {"direction": "bidirectional" if directions == 2 else "forward", **attributes}
    node = helper.make_node(
        op_type, ["x", "w", "r", "b"], ["", "y"], "cell", hidden_size=HIDDEN, **attributes
    )
    return model_of([node], constants, [STEPS, batch, INPUTS]), constants["w"].size + constants["r"].size


KINDS: list[tuple[str, dict[str, Any]]] = [
    ("RNN", {}),
    ("GRU", {}),
    ("GRU", {"linear_before_reset": 1}),  # as PyTorch exports it
    ("LSTM", {}),
    ("LSTM", {"direction": "reverse"}),
    ("GRU", {"directions": 2}),
    ("LSTM", {"directions": 2}),
    ("RNN", {"batch": 3}),
    ("GRU", {"batch": 2, "linear_before_reset": 1}),
    ("GRU", {"batch": 2, "directions": 2}),
    ("LSTM", {"batch": 4}),
]


def answers(compiled: Compiled, samples: Array) -> list[Array]:
    """What the C computes on the host, which is what the interpreter computes, in every bit."""
    (name,) = compiled.graph.inputs
    inputs = [{name: sample} for sample in samples]
    found = harness.run_files(compiled.files, "host", inputs).outputs
    for ours, wanted in zip(found, interpret(compiled.graph, inputs), strict=True):
        np.testing.assert_array_equal(ours["y"], wanted["y"])
    return [answer["y"] for answer in found]


@pytest.mark.parametrize("op_type,options", KINDS)
def test_layers_are_int8(op_type: str, options: dict[str, Any], tmp_path: Path) -> None:
    """The file has QuantizeLinear and DequantizeLinear around the operator: onnxruntime is two steps off."""
    model, _ = layer(op_type, **options)
    shape = (STEPS, options.get("batch", 1), INPUTS)
    result = quantize_small(model, tmp_path, shape)
    assert [(found.name, found.kind) for found in result.report.layers] == [("cell", "int8")]
    assert 30 < result.report.decibels < EXACT
    onnx.checker.check_model(result.model)
    compiled = compile_model(saved(result, tmp_path), Options("cell", "host"))
    integers = [found for found in compiled.graph.layers() if found.op.kind == "RecurrentInt8"]
    assert len(integers) == options.get("directions", 1)
    plain = compile_model(tmp_path / "small.onnx", Options("cell", "host"))
    assert compiled.summary["weights_bytes"] < 0.55 * plain.summary["weights_bytes"]
    samples = np.random.default_rng(3).uniform(-1, 1, (6, *shape)).astype(np.float32)
    quant = integers[0].output.quant
    assert quant is not None
    noise, theirs = Noise(), Noise()
    for sample, answer in zip(samples, answers(compiled, samples), strict=True):
        wanted = Session(result.model).run({"x": sample})["y"]
        np.testing.assert_allclose(answer.reshape(wanted.shape), wanted, atol=2.01 * quant.scale)
        real = Session(model).run({"x": sample})["y"]
        noise.add(real.reshape(-1), answer.reshape(-1))
        theirs.add(real, wanted)
    assert noise.decibels > theirs.decibels - 2


@pytest.mark.parametrize("op_type", GATES)
def test_functions_without_integer_form_leave_int8_weights(op_type: str, tmp_path: Path) -> None:
    model, weights = layer(op_type, clip=0.9)
    result = quantize_small(model, tmp_path, (STEPS, 1, INPUTS))
    assert [(found.name, found.kind) for found in result.report.layers] == [("cell", "int8 weights")]
    assert 30 < result.report.decibels < EXACT
    plain = compile_model(tmp_path / "small.onnx", Options("cell", "host"))
    compiled = compile_model(saved(result, tmp_path), Options("cell", "host"))
    scales = 2 * GATES[op_type] * HIDDEN
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


def test_steps_that_are_not_read_are_not_kept(tmp_path: Path) -> None:
    """The last of all steps is the last state: no RAM for the others."""
    model, _ = layer("GRU")
    graph = model.graph
    graph.node[0].output[:] = ["steps"]
    graph.node.append(helper.make_node("Gather", ["steps", "last"], ["y"], "take", axis=0))
    graph.initializer.append(onnx.numpy_helper.from_array(np.asarray([STEPS - 1]), "last"))
    result = quantize_small(model, tmp_path, (STEPS, 1, INPUTS))
    compiled = compile_model(saved(result, tmp_path), Options("cell", "host"))
    (found,) = [la for la in compiled.graph.layers() if la.op.kind == "RecurrentInt8"]
    assert [output.shape for output in found.outputs] == [(1, HIDDEN)]
    answers(compiled, np.random.default_rng(3).uniform(-1, 1, (2, STEPS, 1, INPUTS)).astype(np.float32))


def counting(steps: int) -> onnx.ModelProto:
    """An LSTM whose gates are open, so that its cells count the steps."""
    model, _ = layer("LSTM")
    biases = next(t for t in model.graph.initializer if t.name == "b")
    values = np.zeros((1, 8 * HIDDEN), np.float32)
    values[:, : 4 * HIDDEN] = 9
    biases.CopyFrom(onnx.numpy_helper.from_array(values, "b"))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = steps
    return model


def test_large_cells_are_noted(tmp_path: Path) -> None:
    """Cells that nothing reads, and that exceed 16: the metadata of the file state their scale."""
    model = counting(20)
    values = next(t for t in model.graph.initializer if t.name == "b")
    biases = onnx.numpy_helper.to_array(values).copy()
    biases[:, HIDDEN : 2 * HIDDEN] = 0  # the output gate depends on the data
    values.CopyFrom(onnx.numpy_helper.from_array(biases, "b"))
    result = quantize_small(model, tmp_path, (20, 1, INPUTS))
    assert [found.kind for found in result.report.layers] == ["int8"]
    facts = {entry.key: entry.value for entry in result.model.metadata_props}
    assert facts[cell_scales.KEY] == '{"cell": 6}'
    compiled = compile_model(saved(result, tmp_path), Options("cell", "host"))
    (op,) = [la.op for la in compiled.graph.layers() if isinstance(la.op, RecurrentInt8)]
    assert op.cell_bits == 6
    samples = np.random.default_rng(4).uniform(-1, 1, (3, 20, 1, INPUTS)).astype(np.float32)
    session = Session(result.model)
    for sample, found in zip(samples, answers(compiled, samples), strict=True):
        wanted = session.run({"x": sample})["y"]
        assert np.abs(found - wanted).max() <= 2.01 * op.scale


def test_larger_cells_stay_float(tmp_path: Path) -> None:
    """No scale of int16 holds 80 with enough precision; the report says so."""
    result = quantize_small(counting(80), tmp_path, (80, 1, INPUTS))
    (found,) = result.report.layers
    assert (found.kind, found.why) == ("int8 weights", LARGE_CELLS)
    assert cell_scales.KEY not in {entry.key for entry in result.model.metadata_props}


@pytest.mark.parametrize("text", ["{", "[4]", '{"cell": 7}', '{"cell": true}', '{"cell": "4"}'])
def test_metadata_of_cells_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    model, _ = layer("LSTM")
    model.metadata_props.add(key=cell_scales.KEY, value=text)
    onnx.save(model, tmp_path / "cells.onnx")
    with pytest.raises(ModelError, match=r"tinyml\.cells cannot be read"):
        compile_model(tmp_path / "cells.onnx", Options("cell", "host"))


def test_the_table_of_the_runtime_is_that_of_the_interpreter() -> None:
    text = (Path(harness.__file__).parents[1] / "runtime/recurrent/gates_s16.c").read_text()
    numbers = re.findall(r"-?\d+", text.partition("= {")[2])
    assert [int(number) for number in numbers] == TANH.tolist()
    steps = (Path(harness.__file__).parents[1] / "runtime/recurrent/gates_steps_s16.c").read_text()
    words = [int(word, 16) for word in re.findall(r"0x[0-9a-f]{8}", steps)]
    assert words == [
        (step << 16) + (-value & 0xFFFF) for value, step in zip(TANH, np.diff(TANH), strict=False)
    ]


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
    model, _ = layer("RNN", clip=0.9)
    second = onnx.NodeProto()
    second.CopyFrom(model.graph.node[0])
    second.name, second.output[1] = "again", "z"
    next(a for a in second.attribute if a.name == "direction").s = b"reverse"
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


@pytest.mark.parametrize("offset, kind", [(5.0, "int8"), (9.0, "int8 weights")])
def test_large_sums_before_a_reset_gate_stay_float(tmp_path: Path, offset: float, kind: str) -> None:
    """Cut off at 8, they would be missing where the input says the opposite."""
    model, _ = layer("GRU", linear_before_reset=1)
    biases = next(t for t in model.graph.initializer if t.name == "b")
    values = np.zeros((1, 6 * HIDDEN), np.float32)
    values[:, 2 * HIDDEN : 3 * HIDDEN], values[:, 5 * HIDDEN :] = -offset, offset
    biases.CopyFrom(onnx.numpy_helper.from_array(values, "b"))
    result = quantize_small(model, tmp_path, (STEPS, 1, INPUTS))
    assert [found.kind for found in result.report.layers] == [kind]
