# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Unrolled RNN, GRU and LSTM become one layer again, however their steps were written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.support.interpret import interpret
from tests.support.unrolled import (
    HIDDEN,
    INPUTS,
    STEPS,
    Writer,
    constants,
    gates_at_once,
    gru,
    gru_cell,
    gru_replacing,
    kinds,
    lstm,
    rolled,
)
from tinyml.ir import Array
from tinyml.passes.fold_constants import fold_constants
from tinyml.pipeline import Options, compile_model


def written(kind: str, order: Sequence[int] = range(STEPS), states: bool = True) -> tuple[Writer, list[str]]:
    """The nodes, and the result of every step."""
    w = Writer()
    constants(w, {"l": 4, "g": 3, "r": 1}[kind[0]])
    w.weights("b2", 3 * HIDDEN)
    w.weights("wr", INPUTS + HIDDEN, 4 * HIDDEN)
    w.weights("rh", HIDDEN, HIDDEN)
    w.constant("one", 1)
    for gate in "zrn":
        w.weights(f"wr_{gate}", INPUTS + HIDDEN, HIDDEN)
    w.weights("b_g", HIDDEN)
    w.constant("zeros", np.zeros((1, HIDDEN)))
    h, c, results = "h0" if states else "", "c0" if states else "", []
    for x in w.inputs(order):
        if kind == "lstm":
            h, c = lstm(w, x, h, c)
        elif kind == "lstm, joined":
            h, c = lstm(w, x, h, c, joined=True)
        elif kind == "lstm, at once":
            h, c = gates_at_once(w, x, h, c)
        elif kind == "rnn":
            z = w.node("Gemm", x, "w", "b")
            h = w.node("Tanh", w.node("Add", w.node("MatMul", h, "r"), z) if h else z)
        elif kind == "gru, cell":
            h = gru_cell(w, x, h)
        elif kind.startswith("gru, replacing"):
            h = gru_replacing(w, x, h or "zeros", difference=kind.endswith("difference"))
        else:
            h = gru(w, x, h, before=kind == "gru, before")
        results.append(h)
    return w, results


ALL = ["lstm", "lstm, joined", "lstm, at once", "gru", "gru, before", "gru, cell", "rnn"]
ALL += ["gru, replacing", "gru, replacing difference"]


@pytest.mark.parametrize("kind", ALL)
def test_the_last_step_of_unrolled_layers(kind: str) -> None:
    w, results = written(kind)
    found = rolled(w.graph(results[-1]))
    assert set(kinds(found)) == {"Recurrent", "Reshape"}


@pytest.mark.parametrize("kind", ["lstm", "rnn", "gru, cell", "gru, replacing", "gru, replacing difference"])
def test_a_first_step_without_a_state(kind: str) -> None:
    """What is multiplied by zeros has been left out."""
    w, results = written(kind, states=False)
    found = rolled(fold_constants(w.graph(results[-1])))
    assert set(kinds(found)) == {"Recurrent", "Reshape"}
    assert found.inputs == ("x",)


@pytest.mark.parametrize("order", [range(STEPS), range(STEPS - 1, -1, -1)], ids=["forward", "backward"])
def test_all_steps_joined_again(order: range) -> None:
    w, results = written("gru", order)
    in_time = results if order.step == 1 else results[::-1]
    found = rolled(w.graph(w.node("Concat", *in_time, axis=0)))
    assert set(kinds(found)) == {"Recurrent", "Reshape"}
    (layer,) = [node for node in found.nodes if node.op.kind == "Recurrent"]
    assert layer.op.reverse == (order.step == -1)  # type: ignore[attr-defined]


def test_single_steps_and_cells_that_are_used() -> None:
    """The result of the second step, and the cells after the last one."""
    w = Writer()
    constants(w, 4)
    h, c, results = "h0", "c0", []
    for x in w.inputs(range(STEPS)):
        h, c = lstm(w, x, h, c)
        results.append(h)
    found = rolled(w.graph(results[1], h, c))
    assert "Unary" not in kinds(found)


def test_inputs_that_are_not_rows_of_one_tensor() -> None:
    w = Writer()
    constants(w, 1)
    h = "h0"
    for x in w.inputs([3, 1, 4, 0]):
        h = w.node("Tanh", w.node("Add", w.node("MatMul", h, "r"), w.node("Gemm", x, "w", "b")))
    assert "Concat" in kinds(rolled(w.graph(h)))


def test_layers_on_top_of_each_other() -> None:
    """The input of the second is the state of the first; the matrices have the same shape."""
    w = Writer()
    constants(w, 1)
    constants(w, 1, "2", HIDDEN)
    below, above = "h0", "c0"
    for x in w.inputs(range(STEPS)):
        below = w.node("Tanh", w.node("Add", w.node("MatMul", below, "r"), w.node("Gemm", x, "w", "b")))
        own = w.node("Gemm", below, "w2", "b2")
        above = w.node("Tanh", w.node("Add", own, w.node("MatMul", above, "r2")))
    assert kinds(rolled(w.graph(above), 2)).count("Concat") == 0


def other_weights(w: Writer, results: list[str]) -> str:
    """The last step adds another bias."""
    last = w.weights("other", HIDDEN)
    z = w.node("Gemm", w.part("x", 0, 1, 0), "w", last)
    return w.node("Tanh", w.node("Add", w.node("MatMul", results[-1], "r"), z))


def test_a_step_with_other_weights_stays_outside() -> None:
    w, results = written("rnn")
    found = rolled(w.graph(other_weights(w, results)))
    assert kinds(found).count("Unary") == 1


def fed_back(w: Writer) -> str:
    """A decoder: what a step gives is what the next one takes."""
    w.weights("out", HIDDEN, INPUTS)
    h, x = "h0", w.part("x", 0, 1, 0)
    for _ in range(STEPS):
        h = w.node("Tanh", w.node("Add", w.node("MatMul", h, "r"), w.node("Gemm", x, "w", "b")))
        x = w.node("MatMul", h, "out")
    return h


def limited(w: Writer) -> str:
    """A state that is limited between two steps is no RNN of ONNX."""
    h, low, high = "h0", w.constant("low", -0.5), w.constant("high", 0.5)
    for x in w.inputs(range(STEPS)):
        h = w.node("Tanh", w.node("Add", w.node("MatMul", h, "r"), w.node("Gemm", x, "w", "b")))
        h = w.node("Clip", h, low, high)
    return h


def odd_candidate(w: Writer, before: bool) -> str:
    """A GRU whose candidate also reads the state as it is."""
    w.weights("q", HIDDEN, HIDDEN)
    w.weights("wz", INPUTS, HIDDEN)
    w.weights("rz", HIDDEN, HIDDEN)
    one, h = w.constant("one", 1), "h0"
    for x in w.inputs(range(STEPS)):
        z, r = (
            w.node("Sigmoid", w.node("Add", w.node("MatMul", x, "wz"), w.node("MatMul", h, m)))
            for m in ("rz", "r")
        )
        own = w.node("Add", w.node("Gemm", x, "w", "b"), w.node("MatMul", h, "q"))
        reset = (
            w.node("MatMul", w.node("Mul", r, h), "r")
            if before
            else w.node("Mul", r, w.node("MatMul", h, "r"))
        )
        fresh = w.node("Tanh", w.node("Add", own, reset))
        h = w.node("Add", w.node("Mul", z, h), w.node("Mul", w.node("Sub", one, z), fresh))
    return h


def one_gate_for_all(w: Writer) -> str:
    """A cell with a single number that it forgets by."""
    w.weights("wf", INPUTS, 1)
    h, c = "h0", "c0"
    for x in w.inputs(range(STEPS)):
        into, out, fresh = (
            w.node("Add", w.node("Gemm", x, "w", "b"), w.node("MatMul", h, "r")) for _ in range(3)
        )
        forget = w.node("Sigmoid", w.node("MatMul", x, "wf"))
        added = w.node("Mul", w.node("Sigmoid", into), w.node("Tanh", fresh))
        c = w.node("Add", w.node("Mul", forget, c), added)
        h = w.node("Mul", w.node("Sigmoid", out), w.node("Tanh", c))
    return h


@pytest.mark.parametrize(
    "write",
    [
        fed_back,
        limited,
        one_gate_for_all,
        partial(odd_candidate, before=True),
        partial(odd_candidate, before=False),
    ],
    ids=["fed back", "limited", "one gate", "odd candidate, before", "odd candidate, after"],
)
def test_what_is_no_recurrent_layer_stays(write: Callable[[Writer], str]) -> None:
    w = Writer()
    constants(w, 1)
    graph = w.graph(write(w))
    assert rolled(graph, 0) is graph


def test_a_gate_that_does_not_read_the_input() -> None:
    """Its rows of the matrix are zeros."""
    w = Writer()
    constants(w, 3)
    w.weights("rf", HIDDEN, HIDDEN)
    h, c = "h0", "c0"
    for x in w.inputs(range(STEPS)):
        z = w.node("Add", w.node("Gemm", x, "w", "b"), w.node("MatMul", h, "r"))
        into, out, fresh = (w.part(z, n * HIDDEN, (n + 1) * HIDDEN) for n in range(3))
        forget = w.node("Sigmoid", w.node("MatMul", h, "rf"))
        added = w.node("Mul", w.node("Sigmoid", into), w.node("Tanh", fresh))
        c = w.node("Add", w.node("Mul", forget, c), added)
        h = w.node("Mul", w.node("Sigmoid", out), w.node("Tanh", c))
    rolled(w.graph(h))


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_the_compiled_model_has_one_layer(kind: str, tmp_path: Path) -> None:
    """And the C computes what the steps compute, with matrices in tiles."""
    from tinyml import harness

    w, results = written(kind)
    graph = w.graph(results[-1])
    values = {
        name: np.random.default_rng(2).normal(0, 1, graph.tensors[name].shape).astype(np.float32)
        for name in graph.inputs
    }
    wanted = interpret(graph, values)[graph.outputs[0]]
    path = tmp_path / "unrolled.onnx"
    path.write_bytes(w.file(results[-1]))
    compiled = compile_model(path, Options("steps", "host"))
    assert len([n for n in compiled.graph.nodes if n.op.kind == "Recurrent"]) == 1
    assert "tinyml_add_product_tiles_f32" in compiled.files["steps.c"]
    (found,) = harness.run_files(compiled.files, "host", [values]).outputs
    ours: Array = found[compiled.graph.outputs[0]]
    np.testing.assert_allclose(ours.reshape(-1), wanted.reshape(-1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["lstm", "gru", "gru, before", "rnn"])
def test_quantised_steps_are_one_int8_layer(kind: str, tmp_path: Path) -> None:
    """The quantiser sees the layer, not its steps, and writes it as ONNX has it."""
    pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
    from tinyml.quantize.engine import quantize
    from tinyml.settings.quantize_request import Request

    w, results = written(kind, states=kind in ("gru", "gru, before"))
    path = tmp_path / "unrolled.onnx"
    path.write_bytes(w.file(results[-1]))
    random = np.random.default_rng(3)
    names = read_names(path)
    arrays: dict[str, Any] = {
        name: random.uniform(-1, 1, (16, *shape)).astype(np.float32) for name, shape in names.items()
    }
    np.savez(tmp_path / "calib.npz", **arrays)
    result = quantize(path, Request(tmp_path / "calib.npz", method="minmax"))
    kinds = {layer.op_type: layer.kind for layer in result.report.layers}
    assert kinds[kind.partition(",")[0].upper()] == "int8"
    assert kinds.keys().isdisjoint({"Gemm", "MatMul", "Sigmoid", "Tanh"})
    assert result.report.decibels > 25


def test_a_loop_that_is_no_layer_is_quantised_step_by_step(tmp_path: Path) -> None:
    """Its body reads a tensor of the graph around it, which the quantiser would not see."""
    pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
    from tinyml.quantize.engine import quantize
    from tinyml.settings.quantize_request import Request

    values = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Gather", ["rows", "n"], ["row"]),
            helper.make_node("MatMul", ["row", "w"], ["z"]),
            helper.make_node("Softsign", ["z"], ["next"]),
            helper.make_node("Add", ["h", "next"], ["sum"]),
        ],
        "body",
        [values("n", 7, []), values("go", 9, []), values("h", 1, [1, HIDDEN])],
        [values("on", 9, []), values("sum", 1, [1, HIDDEN])],
    )
    w = Writer()
    w.weights("w", INPUTS, HIDDEN)
    w.constant("zeros", np.zeros((1, HIDDEN)))
    w.constants.append(numpy_helper.from_array(np.asarray(STEPS), "steps"))
    w.constants.append(numpy_helper.from_array(np.asarray(True), "true"))
    w.constants.append(numpy_helper.from_array(np.asarray([STEPS, 1, INPUTS]), "shape"))
    w.nodes.append(helper.make_node("Reshape", ["x", "shape"], ["rows"], "rows"))
    w.nodes.append(helper.make_node("Loop", ["steps", "true", "zeros"], ["y"], "loop", body=body))
    (tmp_path / "loop.onnx").write_bytes(w.file("y"))
    np.save(
        tmp_path / "x.npy", np.random.default_rng(1).uniform(-1, 1, (8, STEPS, INPUTS)).astype(np.float32)
    )
    result = quantize(tmp_path / "loop.onnx", Request(tmp_path / "x.npy", method="minmax"))
    assert [layer.kind for layer in result.report.layers if layer.op_type in ("MatMul", "Gemm")] == [
        "int8"
    ] * STEPS


def read_names(path: Path) -> dict[str, list[int]]:
    values = onnx.load(path).graph.input
    return {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}
