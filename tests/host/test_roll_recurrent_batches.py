# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Unrolled RNN, GRU and LSTM with several samples in a batch become one layer, whatever comes first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.interpret import interpret
from tests.support.quantizing import saved
from tests.support.unrolled import (
    HIDDEN,
    INPUTS,
    STEPS,
    Writer,
    constants,
    gates_at_once,
    gru,
    kinds,
    lstm,
    rolled,
)
from tinyml import harness
from tinyml.ir import Graph, Node
from tinyml.ir.interpreter import interpret as interpreted
from tinyml.ops.recurrent.rnn import Recurrent
from tinyml.passes.roll_recurrent import roll_recurrent
from tinyml.pipeline import Options, compile_model

KINDS = ["lstm", "lstm, joined", "lstm, at once", "gru", "gru, before", "rnn"]
SEQUENCE = range(STEPS)


def written(
    kind: str, batch: int, by_sample: bool = False, order: range = SEQUENCE, states: bool = True
) -> tuple[Writer, list[str]]:
    """The nodes, and the result of every step."""
    w = Writer(batch=batch, by_sample=by_sample)
    constants(w, {"l": 4, "g": 3, "r": 1}[kind[0]])
    w.weights("b2", 3 * HIDDEN)
    w.weights("wr", INPUTS + HIDDEN, 4 * HIDDEN)
    w.weights("rh", HIDDEN, HIDDEN)
    w.constant("one", 1)
    w.constant("zeros", np.zeros((batch, HIDDEN)))
    h, c = ("h0", "c0") if states else ("zeros", "zeros")
    results = []
    for x in w.inputs(order):
        if kind == "gru" or kind == "gru, before":
            h = gru(w, x, h, before=kind == "gru, before")
        elif kind == "rnn":
            h = w.node("Tanh", w.node("Add", w.node("MatMul", h, "r"), w.node("Gemm", x, "w", "b")))
        elif kind == "lstm, at once":
            h, c = gates_at_once(w, x, h, c)
        else:
            h, c = lstm(w, x, h, c, joined=kind == "lstm, joined")
        results.append(h)
    return w, results


def layer_of(graph: Graph) -> Node:
    (layer,) = [node for node in graph.nodes if isinstance(node.op, Recurrent)]
    return layer


@pytest.mark.parametrize("batch", [2, HIDDEN])  # as many samples as elements: shapes do not tell them apart
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_one_layer(kind: str, batch: int) -> None:
    w, results = written(kind, batch)
    found = rolled(w.graph(results[-1]))
    assert set(kinds(found)) == {"Recurrent", "Reshape"}
    assert found.tensors[layer_of(found).inputs[0]].shape == (STEPS, batch, INPUTS)


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_zeros(kind: str) -> None:
    w, results = written(kind, 3, states=False)
    assert rolled(w.graph(results[-1])).inputs == ("x",)


@pytest.mark.parametrize("order", [SEQUENCE, SEQUENCE[::-1]], ids=["forward", "backward"])
@pytest.mark.parametrize("by_sample", [False, True], ids=["steps first", "samples first"])
def test_all_steps_joined_again(by_sample: bool, order: range) -> None:
    """Along the axis of the steps in the same layout as the input; two transposes if that is by sample."""
    w, results = written("gru", 2, by_sample, order)
    in_time = results if order.step == 1 else results[::-1]
    axis = int(by_sample)
    rows = [w.node("Unsqueeze", row, w.numbers(axis)) for row in in_time]
    found = rolled(w.graph(w.node("Concat", *rows, axis=axis)))
    assert kinds(found).count("Transpose") == 2 * by_sample
    assert set(kinds(found)) <= {"Recurrent", "Reshape", "Transpose"}
    assert layer_of(found).op.reverse == (order.step == -1)  # type: ignore[attr-defined]


def test_single_steps_and_cells_that_are_used() -> None:
    w = Writer(batch=3)
    constants(w, 4)
    h, c, results = "h0", "c0", []
    for x in w.inputs(SEQUENCE):
        h, c = lstm(w, x, h, c)
        results.append(h)
    assert "Unary" not in kinds(rolled(w.graph(results[1], h, c)))


def test_samples_that_change_places_stay_as_they_are() -> None:
    """The state of the next step is that of another sample."""
    w = Writer(batch=2)
    constants(w, 1)
    h = "h0"
    for x in w.inputs(SEQUENCE):
        h = w.node("Tanh", w.node("Add", w.node("MatMul", h, "r"), w.node("Gemm", x, "w", "b")))
        h = w.node("Concat", w.part(h, 1, 2, 0), w.part(h, 0, 1, 0), axis=0)
    graph = w.graph(h)
    assert rolled(graph, 0) is graph


def test_biases_that_differ_between_samples_stay_as_they_are() -> None:
    w = Writer(batch=2)
    constants(w, 1)
    w.weights("each", 2, HIDDEN)
    h = "h0"
    for x in w.inputs(SEQUENCE):
        own = w.node("Add", w.node("Gemm", x, "w", "b"), "each")
        h = w.node("Tanh", w.node("Add", w.node("MatMul", h, "r"), own))
    graph = w.graph(h)
    assert rolled(graph, 0) is graph


def test_a_column_that_is_broadcast_over_units_is_no_bias() -> None:
    """With as many samples as units, a bias for each sample has as many elements as one for each unit."""
    w = Writer(batch=HIDDEN)
    constants(w, 1)
    w.weights("column", HIDDEN, 1)
    h = "h0"
    for x in w.inputs(SEQUENCE):
        own = w.node("Add", w.node("Gemm", x, "w", "b"), "column")
        h = w.node("Tanh", w.node("Add", w.node("MatMul", h, "r"), own))
    assert "Recurrent" not in kinds(roll_recurrent(w.graph(h)))


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_the_generated_c_computes_the_steps_of_all_samples(kind: str, tmp_path: Path) -> None:
    w, results = written(kind, 3, by_sample=True)
    graph = w.graph(results[-1])
    random = np.random.default_rng(2)
    values = {
        name: random.normal(0, 1, graph.tensors[name].shape).astype(np.float32) for name in graph.inputs
    }
    path = tmp_path / "unrolled.onnx"
    path.write_bytes(w.file(results[-1]))
    compiled = compile_model(path, Options("steps", "host"))
    assert len([n for n in compiled.graph.nodes if n.op.kind == "Recurrent"]) == 1
    (found,) = harness.run_files(compiled.files, "host", [values]).outputs
    wanted = interpret(graph, values)[graph.outputs[0]]
    ours = found[compiled.graph.outputs[0]]
    np.testing.assert_allclose(ours.reshape(-1), wanted.reshape(-1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_quantised_batch_is_one_int8_layer(kind: str, tmp_path: Path) -> None:
    """The compiled layer is on integers, and the C computes what the interpreter does, in every bit."""
    pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
    from tinyml.quantize.engine import quantize
    from tinyml.settings.quantize_request import Request

    w, results = written(kind, 3, by_sample=True, states=False)
    path = tmp_path / "unrolled.onnx"
    path.write_bytes(w.file(results[-1]))
    random = np.random.default_rng(3)
    samples = random.uniform(-1, 1, (16, *w.shapes["x"])).astype(np.float32)
    np.save(tmp_path / "x.npy", samples)
    result = quantize(path, Request(tmp_path / "x.npy", method="minmax"))
    assert result.report.decibels > 25
    compiled = compile_model(saved(result, tmp_path), Options("steps", "host"))
    found_kinds = kinds(compiled.graph)
    assert found_kinds.count("RecurrentInt8") == 1
    assert "Recurrent" not in found_kinds
    inputs = [{"x": sample} for sample in samples[:4]]
    found = harness.run_files(compiled.files, "host", inputs).outputs
    for ours, wanted in zip(found, interpreted(compiled.graph, inputs), strict=True):
        for name in compiled.graph.outputs:
            np.testing.assert_array_equal(ours[name], wanted[name])
