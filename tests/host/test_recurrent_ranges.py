# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The states of a recurrent layer have a scale that holds all of its steps, not only the last one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.quantizing import saved
from tests.support.small_models import model_of
from tinyml.compare.check import RECURRENT, check, subject
from tinyml.compare.in_numpy import InNumpy
from tinyml.ir import Array
from tinyml.ir.interpreter import interpret
from tinyml.ops.recurrent.recurrent_int8 import C0
from tinyml.pipeline import Options, compile_model
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.measure import Noise
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import Request

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

STEPS, PAUSE, INPUTS, HIDDEN = 12, 5, 3, 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def layer(op_type: str, result: str = "Y_h", **first: float) -> onnx.ModelProto:
    """A layer whose only ``result`` is used; ``first`` has values of its states before the first step."""
    random = np.random.default_rng(4)
    rows = GATES[op_type] * HIDDEN
    constants: dict[str, Array] = {
        "w": random.normal(0, 0.8, (1, rows, INPUTS)).astype(np.float32),
        "r": random.normal(0, 0.2, (1, rows, HIDDEN)).astype(np.float32),
    }
    constants |= {name: np.full((1, 1, HIDDEN), value, np.float32) for name, value in first.items()}
    inputs = ["x", "w", "r", "", "", *(name if name in first else "" for name in ("h", "c"))]
    outputs = ["y" if name == result else "" for name in ("Y", "Y_h", "Y_c")]
    while not inputs[-1]:
        inputs.pop()
    while not outputs[-1]:
        outputs.pop()
    node = helper.make_node(op_type, inputs, outputs, "cell", hidden_size=HIDDEN)
    return model_of([node], constants, [STEPS, 1, INPUTS])


def with_pauses() -> Array:
    """Sequences that end with zeros, as shorter ones are filled up: states decay."""
    samples = np.random.default_rng(1).normal(0, 1, (32, STEPS, 1, INPUTS)).astype(np.float32)
    samples[:, -PAUSE:] = 0
    return samples


def quantized(model: onnx.ModelProto, folder: Path) -> Quantized:
    onnx.save(model, folder / "small.onnx")
    np.save(folder / "calib.npy", with_pauses())
    return quantize(folder / "small.onnx", Request(folder / "calib.npy", method="minmax"))


@pytest.mark.parametrize("op_type,result", [("RNN", "Y_h"), ("GRU", "Y_h"), ("LSTM", "Y_h"), ("LSTM", "Y_c")])
def test_states_before_the_last_are_not_cut_off(op_type: str, result: str, tmp_path: Path) -> None:
    model = layer(op_type, result)
    found = quantized(model, tmp_path)
    compiled = compile_model(saved(found, tmp_path), Options("cell", "host"))
    assert any(one.op.kind == "RecurrentInt8" for one in compiled.graph.layers())
    ours, theirs = Noise(), Noise()
    for sample, answer in zip(
        with_pauses(), interpret(compiled.graph, [{"x": s} for s in with_pauses()]), strict=True
    ):
        real = Session(model).run({"x": sample})["y"].reshape(-1)
        ours.add(real, answer["y"].reshape(-1))
        theirs.add(real, Session(found.model).run({"x": sample})["y"].reshape(-1))
    # Nothing says how far a state reaches that only the cells depend on: it is rounded to 1/128.
    assert ours.decibels > theirs.decibels - (10 if result == "Y_c" else 2.5)


@pytest.mark.parametrize("first", [{"h": 3.0}, {"c": 100.0}], ids=["state", "cell"])
def test_a_first_state_that_does_not_fit_leaves_the_layer_float(
    first: dict[str, float], tmp_path: Path
) -> None:
    """A GRU keeps its state between -1 and 1 only if it starts there; a cell decays from where it starts."""
    found = quantized(layer("GRU" if "h" in first else "LSTM", "Y", **first), tmp_path)
    compiled = compile_model(saved(found, tmp_path), Options("cell", "host"))
    assert not any(one.op.kind == "RecurrentInt8" for one in compiled.graph.layers())
    assert [one.kind for one in found.report.layers] == ["int8 weights"]


def test_a_first_cell_above_16_is_inside_the_range_that_the_file_states(tmp_path: Path) -> None:
    found = quantized(layer("LSTM", "Y", c=40.0), tmp_path)
    compiled = compile_model(saved(found, tmp_path), Options("cell", "host"))
    (cell,) = [one for one in compiled.graph.layers() if one.op.kind == "RecurrentInt8"]
    assert cell.inputs[C0] is not None
    ours = Noise()
    for sample, answer in zip(
        with_pauses(), interpret(compiled.graph, [{"x": s} for s in with_pauses()]), strict=True
    ):
        ours.add(Session(found.model).run({"x": sample})["y"].reshape(-1), answer["y"].reshape(-1))
    assert ours.decibels > 30


def test_a_first_state_is_inside_the_range(tmp_path: Path) -> None:
    found = quantized(layer("LSTM", "Y", h=0.97), tmp_path)
    compiled = compile_model(saved(found, tmp_path), Options("cell", "host"))
    (cell,) = [one for one in compiled.graph.layers() if one.op.kind == "RecurrentInt8"]
    quant = cell.output.quant
    assert quant is not None
    assert (127 - quant.zero_point) * quant.scale > 0.96


@pytest.mark.parametrize("result", ["Y_h", "Y_c"])
def test_verify_allows_for_states_that_are_rounded(result: str, tmp_path: Path) -> None:
    """Steps of int16 cells are small: the limit is in steps of the int8 state."""
    model = subject(saved(quantized(layer("LSTM", result), tmp_path), tmp_path), Options("cell", "host"))
    samples = [{"x": sample} for sample in with_pauses()[:8]]
    verdict = check(model, InNumpy(model.compiled.graph), samples)
    assert verdict.fine
    assert verdict.note == RECURRENT
    assert not check(model, InNumpy(model.compiled.graph), samples, steps=0).fine
