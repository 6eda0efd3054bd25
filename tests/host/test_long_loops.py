# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops of hundreds of steps: one recurrent layer, or an error that says why not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tinyml import harness
from tinyml.base.errors import UnsupportedError
from tinyml.importers.unrolling import MOST_COPIES, MOST_STEPS
from tinyml.pipeline import Options, compile_model, read_graph
from tinyml.reference.session import Session

INPUTS, HIDDEN, BATCH = 3, 4, 2
STEPS = MOST_COPIES + 44


def loop(steps: int, function: str, inner: str = "") -> onnx.ModelProto:
    """A Loop over the steps of x: its state is ``function`` of a sum of products, then ``inner`` of it."""
    random = np.random.default_rng(5)
    constants = {
        "w": random.normal(0, 0.5, (INPUTS, HIDDEN)).astype(np.float32),
        "r": random.normal(0, 0.5, (HIDDEN, HIDDEN)).astype(np.float32),
        "b": random.normal(0, 0.5, HIDDEN).astype(np.float32),
        "zeros": np.zeros((BATCH, HIDDEN), np.float32),
        "steps": np.asarray(steps),
        "true": np.asarray(True),
    }
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Identity", ["go"], ["on"]),
        helper.make_node("Gather", ["x", "n"], ["row"]),
        helper.make_node("Gemm", ["row", "w", "b"], ["own"]),
        helper.make_node("MatMul", ["h", "r"], ["back"]),
        helper.make_node("Add", ["own", "back"], ["sum"]),
        helper.make_node(function, ["sum"], ["next"]),
    ]
    if inner:
        nodes.append(helper.make_node(inner, ["next"], ["then"]))
    state = [BATCH, HIDDEN]
    body = helper.make_graph(
        nodes,
        "body",
        [value("n", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("h", 1, state)],
        [value("on", TensorProto.BOOL, []), value("then" if inner else "next", 1, state)],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["steps", "true", "zeros"], ["y"], "loop", body=body)],
        "long",
        [value("x", 1, [steps, BATCH, INPUTS])],
        [value("y", 1, state)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "long.onnx"
    onnx.save(model, path)
    return path


def test_a_long_recurrent_loop_is_one_layer(tmp_path: Path) -> None:
    """The C computes what onnxruntime computes of the loop, and has no more lines than for five steps."""
    model = loop(STEPS, "Tanh")
    compiled = compile_model(saved(model, tmp_path), Options("steps", "host"))
    assert [node.op.kind for node in compiled.graph.nodes] == ["Recurrent"]
    short = compile_model(saved(loop(5, "Tanh"), tmp_path), Options("steps", "host"))
    assert compiled.files["steps.c"].count("\n") == short.files["steps.c"].count("\n")
    x = np.random.default_rng(1).normal(0, 1, (STEPS, BATCH, INPUTS)).astype(np.float32)
    (found,) = harness.run_files(compiled.files, "host", [{"x": x}]).outputs
    wanted = Session(model).run({"x": x})["y"]
    np.testing.assert_allclose(found["y"], wanted, rtol=1e-5, atol=1e-6)


def test_a_recurrent_loop_that_is_too_long_to_unroll_stays_one(tmp_path: Path) -> None:
    graph = read_graph(saved(loop(MOST_STEPS + 1, "Tanh"), tmp_path))
    assert [node.op.kind for node in graph.nodes] == ["Loop"]


@pytest.mark.parametrize("inner", ["", "Softsign"])
def test_a_long_loop_that_is_no_layer_stays_a_loop(inner: str, tmp_path: Path) -> None:
    model = loop(STEPS, "Tanh" if inner else "Softsign", inner)
    compiled = compile_model(saved(model, tmp_path), Options("steps", "host"))
    assert [node.op.kind for node in compiled.graph.nodes] == ["Loop"]
    x = np.random.default_rng(1).normal(0, 1, (STEPS, BATCH, INPUTS)).astype(np.float32)
    (found,) = harness.run_files(compiled.files, "host", [{"x": x}]).outputs
    np.testing.assert_allclose(found["y"], Session(model).run({"x": x})["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "steps, others, kind", [(20, 1, "Recurrent"), (100, 1, "Recurrent"), (100, 3, "Loop"), (STEPS, 1, "Loop")]
)
def test_a_recurrent_layer_beside_others(steps: int, others: int, kind: str, tmp_path: Path) -> None:
    """What a short loop computes besides is left as copies; of a long one these would be too many."""
    model = loop(steps, "Tanh")
    (node,) = (node for node in model.graph.node if node.op_type == "Loop")
    body = node.attribute[0].g
    names = ["next", *(f"part{i}" for i in range(1, others)), "shown"]
    functions = ("Softsign", "Sin", "Cos")
    for function, taken, given in zip(functions, names[:-1], names[1:], strict=False):
        body.node.append(helper.make_node(function, [taken], [given]))
    body.output.append(helper.make_tensor_value_info("shown", TensorProto.FLOAT, [BATCH, HIDDEN]))
    node.output.append("rows")
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, [steps, BATCH, HIDDEN])
    model.graph.output.append(rows)
    compiled = compile_model(saved(model, tmp_path), Options("steps", "host"))
    assert kind in [one.op.kind for one in compiled.graph.nodes]
    x = np.random.default_rng(1).normal(0, 1, (steps, BATCH, INPUTS)).astype(np.float32)
    (found,) = harness.run_files(compiled.files, "host", [{"x": x}]).outputs
    for name, wanted in Session(model).run({"x": x}).items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("constant", [True, False])
def test_a_state_beside_a_recurrent_one_keeps_the_loop(constant: bool, tmp_path: Path) -> None:
    """Its first step is computed by the compiler where the first value is a constant, the others are not."""
    model = loop(STEPS, "Tanh")
    (node,), (body,) = model.graph.node, [attribute.g for attribute in model.graph.node[0].attribute]
    state = [BATCH, HIDDEN]
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0.9), "kept"))
    body.node.append(helper.make_node("Mul", ["slow", "kept"], ["less"]))
    body.node.append(helper.make_node("Add", ["less", "next"], ["sum2"]))
    body.input.append(helper.make_tensor_value_info("slow", 1, state))
    body.output.append(helper.make_tensor_value_info("sum2", 1, state))
    node.input.append("zeros" if constant else "first")
    node.output.append("z")
    model.graph.output.append(helper.make_tensor_value_info("z", 1, state))
    if not constant:
        model.graph.input.append(helper.make_tensor_value_info("first", 1, state))
    compiled = compile_model(saved(model, tmp_path), Options("steps", "host"))
    assert [node.op.kind for node in compiled.graph.nodes] == ["Loop"]
    random = np.random.default_rng(6)
    sample = {
        name: random.normal(0, 1, compiled.graph.tensors[name].shape).astype(np.float32)
        for name in compiled.graph.inputs
    }
    (found,) = harness.run_files(compiled.files, "host", [sample]).outputs
    for name, wanted in Session(model).run(sample).items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-5)


def test_a_body_that_needs_the_number_of_the_step_is_refused(tmp_path: Path) -> None:
    """Its steps are copies, of which there may be a few hundred."""
    model = loop(STEPS, "Softsign")
    (node,) = (node for node in model.graph.node if node.op_type == "Loop")
    body = node.attribute[0].g
    (row,) = (inner for inner in body.node if inner.op_type == "Gather")
    begins = helper.make_node("Unsqueeze", ["n", "front"], ["begin"])
    ends = helper.make_node("Add", ["begin", "one"], ["end"])
    part = helper.make_node("Slice", ["x", "begin", "end", "front"], ["rows"])
    squeezed = helper.make_node("Squeeze", ["rows", "front"], ["row"])
    body.node.remove(row)
    body.node.extend([begins, ends, part, squeezed])
    for name, number in (("front", 0), ("one", 1)):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray([number]), name))
    with pytest.raises(UnsupportedError, match=f"a loop of {STEPS} steps.*is no RNN, GRU or LSTM layer"):
        compile_model(saved(model, tmp_path), Options("steps", "host"))
