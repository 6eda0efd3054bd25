# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Bounds of operators whose number of results depends on data: setting, count, too many results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.batch import Item, run_batch
from tinyml.base.errors import ConfigError, ModelError, TinymlError, UnsupportedError
from tinyml.emit.model import Provenance
from tinyml.importers import onnx_graph
from tinyml.ir import Array
from tinyml.ir.interpreter import interpret
from tinyml.pipeline import Options, compile_graph, compile_model
from tinyml.verbs.cli import main

ORIGIN = Provenance("m.onnx", "0" * 64, "")
RUN_FAILED = 4  # how tests/support/batch.c ends if a run returns an error
ONES = np.ones(6, np.float32)
MANY: dict[str, tuple[onnx.NodeProto, dict[str, Array]]] = {
    "NonZero": (helper.make_node("NonZero", ["x"], ["y"], name="it"), {"x": ONES}),
    "Compress": (
        helper.make_node("Compress", ["x", "c"], ["y"], name="it", axis=0),
        {"x": ONES, "c": np.ones(6, bool)},
    ),
    "Unique": (helper.make_node("Unique", ["x"], ["y"], name="it"), {"x": np.arange(6, dtype=np.float32)}),
    "TopK": (
        helper.make_node("TopK", ["x", "k"], ["y", ""], name="it"),
        {"x": ONES, "k": np.array([6], np.int64)},
    ),
    "NonMaxSuppression": (
        helper.make_node("NonMaxSuppression", ["b", "s", "k"], ["y"], name="it"),
        {
            "b": np.tile(np.arange(6, dtype=np.float32)[:, None], (1, 1, 4))
            + np.array([0, 0, 0.5, 0.5], np.float32),
            "s": np.ones((1, 1, 6), np.float32),
            "k": np.array([6], np.int64),
        },
    ),
}
"""Nodes with six results."""


def model_of(nodes: list[onnx.NodeProto], inputs: dict[str, Array], output: str = "y") -> onnx.ModelProto:
    def value(name: str, array: Array) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    values = [value(name, array) for name, array in inputs.items()]
    graph = helper.make_graph(nodes, "g", values, [onnx.ValueInfoProto(name=output)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def test_more_results_than_the_bound_end_the_run() -> None:
    """Under sanitizers, so nothing is written outside; with room for all, runs go well."""
    items = []
    for name, (node, inputs) in MANY.items():
        for bound in (5, 6):
            graph = onnx_graph.read(model_of([node], inputs), f"{name.lower()}{bound}", {}, {"it": bound})
            compiled = compile_graph(graph, graph.name, ORIGIN, Options(target="host"))
            items.append(Item(graph.name, compiled.files, [inputs]))
            if bound == 5:
                with pytest.raises(ModelError, match="6 results; its bound is 5"):
                    list(interpret(graph, [inputs]))
    outcomes = run_batch(items)
    assert len(outcomes) == 10
    for name, outcome in outcomes.items():
        if name.endswith("6"):
            assert not outcome.failure
            (count,) = outcome.outputs[0]["y_count"]
            assert count == 6
        else:
            assert outcome.failure.startswith(f"exit status {RUN_FAILED}:"), f"{name}: {outcome.failure}"


def test_a_number_larger_than_the_axis_ends_the_run() -> None:
    node, inputs = MANY["TopK"]
    graph = onnx_graph.read(model_of([node], inputs), "top", {})
    wrong = {**inputs, "k": np.array([2**40], np.int64)}
    compiled = compile_graph(graph, "top", ORIGIN, Options(target="host"))
    (outcome,) = run_batch([Item("top", compiled.files, [wrong])]).values()
    assert outcome.failure.startswith(f"exit status {RUN_FAILED}:")


@pytest.mark.parametrize("name", ["it", "y"])
def test_the_name_of_a_node_or_of_its_output(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model_of([MANY["NonZero"][0]], {"x": ONES}), path)
    compiled = compile_model(path, Options(target="host", bounds={name: 2}))
    assert "#define M_OUTPUT_Y_DIM1 2" in compiled.files["m.h"]
    assert "m_output_y_count(void)" in compiled.files["m.h"]


def test_a_name_that_has_no_bound(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model_of([MANY["NonZero"][0]], {"x": ONES}), path)
    with pytest.raises(ConfigError, match="no node called 'that' has a bound") as error:
        compile_model(path, Options(bounds={"that": 2}))
    assert "it (6)" in error.value.hint


@pytest.mark.parametrize("text", ["it", "it=", "=3", "it=0", "it=-1", "it=1.5"])
def test_words_that_are_no_bound(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(model_of([MANY["NonZero"][0]], {"x": ONES}), tmp_path / "m.onnx")
    assert main(["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "c"), "--bound", text]) != 0
    assert "Traceback" not in capsys.readouterr().err


def test_verify_says_that_the_bound_is_too_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(model_of([MANY["NonZero"][0]], {"x": ONES}), tmp_path / "m.onnx")
    assert main(["verify", str(tmp_path / "m.onnx"), "--bound", "it=2"]) != 0
    assert "more results than its bound" in capsys.readouterr().err


MIXING = {
    "sum": helper.make_node("ReduceSum", ["kept"], ["z"], keepdims=0),
    "softmax": helper.make_node("Softmax", ["kept"], ["z"], axis=0),
    "joined": helper.make_node("Concat", ["kept", "kept"], ["z"], axis=0),
    "last": helper.make_node("Slice", ["kept", "minus", "far", "axis"], ["z"]),
    "without_last": helper.make_node("Slice", ["kept", "axis", "minus", "axis"], ["z"]),
    "flat": helper.make_node("Reshape", ["kept", "minus"], ["z"]),
}


@pytest.mark.parametrize("name", MIXING)
def test_operators_that_would_mix_results_are_refused(name: str) -> None:
    """They would read rows that are not results; a wrong answer is worse than none."""
    nodes = [helper.make_node("Compress", ["x", "c"], ["kept"], name="it", axis=0), MIXING[name]]
    model = model_of(nodes, {"x": np.ones((6, 3), np.float32), "c": np.ones(6, bool)}, "z")
    for key, number in (("minus", -1), ("far", 100), ("axis", 0)):
        model.graph.initializer.append(numpy_helper.from_array(np.array([number], np.int64), key))
    with pytest.raises(UnsupportedError, match="known at run time alone"):
        onnx_graph.read(model, "m", {})


def test_a_sequence_as_an_output_is_refused() -> None:
    node = helper.make_node("SplitToSequence", ["x"], ["s"])
    value = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", 1, [3])], [value])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    with pytest.raises(TinymlError, match="is a sequence"):
        onnx_graph.read(model, "m", {})
