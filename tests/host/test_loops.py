# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops whose number of steps is known are unrolled: TFLite's WHILE, ONNX's Loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.interpret import interpret
from tests.support.tflite_case import f32, i8, ints
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml import harness, importers
from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.importers import ModelFile, tflite_graph
from tinyml.ir import Graph, Quant
from tinyml.ir.verifier import verify
from tinyml.pipeline import Options, compile_model
from tinyml.reference.session import answers

COUNTER = Value("n", (), "int32")
WHILE = ("WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})
ROWS = np.array([[1, -2], [3, 0.5], [-4, 8]], np.float32)


def condition(steps: int, *carried: Value) -> Part:
    """n < steps"""
    limit = Value.constant("limit", np.asarray(steps, np.int32))
    values = [COUNTER, *carried, limit, Value("more", (), "bool")]
    less = Call("LESS", ["n", "limit"], ["more"], "LessOptions")
    return Part(values, [less], ["n", *(value.name for value in carried)], ["more"])


def body(*extra: Call) -> Part:
    """x of row n is added to the sum, times a weight; n grows by 1."""
    one, weight = (Value.constant(name, np.asarray(1 + k, t)) for k, (name, t) in enumerate(WEIGHTS))
    values = [COUNTER, f32("sum", (1, 2)), f32("x", (3, 2)), one, weight]
    values += [Value("next", (), "int32"), f32("row", (2,)), f32("scaled", (2,)), f32("more", (1, 2))]
    calls = [
        Call("ADD", ["n", "one"], ["next"], "AddOptions"),
        Call("GATHER", ["x", "n"], ["row"], "GatherOptions"),
        Call("MUL", ["row", "weight"], ["scaled"], "MulOptions"),
        Call("ADD", ["sum", "scaled"], ["more"], "AddOptions"),
        *extra,
    ]
    return Part(values, calls, ["n", "sum", "x"], ["next", "more", "x"])


WEIGHTS: tuple[tuple[str, type], ...] = (("one", np.int32), ("weight", np.float32))


def summing(steps: int, inner: Part | None = None, first: Value | None = None) -> Graph:
    """A loop over the rows of x, as Keras makes one of a recurrent layer."""
    start = first or Value.constant("first", np.asarray(0, np.int32))
    values = [f32("x", (3, 2)), start, Value.constant("zero", np.zeros((1, 2), np.float32))]
    values += [Value("n", (), "int32"), f32("y", (1, 2)), f32("x2", (3, 2))]
    loop = Call("WHILE", [start.name, "zero", "x"], ["n", "y", "x2"], *WHILE)
    inputs = ["x"] if first is None else ["x", first.name]
    main = Part(values, [loop], inputs, ["y"])
    carried = (f32("sum", (1, 2)), f32("x", (3, 2)))
    graph = tflite_graph.read(
        Path("loop.tflite"), write(main, condition(steps, *carried), inner or body()), {}
    )
    verify(graph, "import")
    return graph


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_while_loop_is_unrolled(steps: int) -> None:
    found = interpret(summing(steps), {"x": ROWS})["y"]
    np.testing.assert_array_equal(found, 2 * ROWS[:steps].sum(0, keepdims=True))


def test_all_steps_share_their_constants() -> None:
    graph = summing(3)
    assert [name for name in graph.tensors if name.startswith("weight")] == ["weight"]


def test_the_number_of_steps_must_be_known() -> None:
    with pytest.raises(UnsupportedError, match="depends on computed values"):
        summing(3, first=Value("start", (), "int32"))


def test_a_loop_must_end() -> None:
    still = Part([COUNTER, f32("sum", (1, 2)), f32("x", (3, 2))], [], ["n", "sum", "x"], ["n", "sum", "x"])
    with pytest.raises(UnsupportedError, match="more than 1,024 steps"):
        summing(3, still)


def test_a_loop_does_not_contain_itself() -> None:
    again = Call("WHILE", ["n", "sum", "x"], ["next", "more", "x2"], *WHILE)
    values = [COUNTER, f32("sum", (1, 2)), f32("x", (3, 2)), f32("x2", (3, 2))]
    values += [Value("next", (), "int32"), f32("more", (1, 2))]
    with pytest.raises(ModelError, match="contains the loop"):
        summing(3, Part(values, [again], ["n", "sum", "x"], ["next", "more", "x2"]))


def test_the_message_names_what_is_missing_inside() -> None:
    extra = Call("CUSTOM", ["more"], [], custom="Mine")
    with pytest.raises(UnsupportedError, match="Mine: no reader"):
        summing(3, body(extra))


def test_a_subgraph_interprets_bytes_in_its_own_way() -> None:
    """The loop's body declares another scale than the loop's operand has: the bytes stay as they are."""
    outer, inner = Quant.per_tensor(0.5, 0), Quant.per_tensor(0.25, 1)
    carried = i8("x", (2,), inner)
    main = Part(
        [i8("a", (2,), outer), ints("first", 0), Value("n", (1,), "int32"), i8("y", (2,), outer)],
        [Call("WHILE", ["first", "a"], ["n", "y"], *WHILE)],
        ["a"],
        ["y"],
    )
    more = [Value("n", (1,), "int32"), carried, ints("one", 1), Value("next", (1,), "int32")]
    step = Call("ADD", ["n", "one"], ["next"], "AddOptions")
    limit = [Value("n", (1,), "int32"), carried, ints("limit", 2), Value("more", (1,), "bool")]
    less = Call("LESS", ["n", "limit"], ["more"], "LessOptions")
    parts = main, Part(limit, [less], ["n", "x"], ["more"]), Part(more, [step], ["n", "x"], ["next", "x"])
    graph = tflite_graph.read(Path("loop.tflite"), write(*parts), {})
    verify(graph, "import")
    x = np.array([-128, 77], np.int8)
    np.testing.assert_array_equal(interpret(graph, {"a": x})["y"], x)


def tensor(name: str, kind: int, *shape: int) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def onnx_loop(most: int | None) -> onnx.ModelProto:
    """sum += x of row i; the sums are collected too."""
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
        helper.make_node("Add", ["sum", "row"], ["next"]),
        helper.make_node("Add", ["next", "zero"], ["shown"]),
        helper.make_node("Less", ["i", "last"], ["below"]),
        helper.make_node("And", ["below", "go"], ["on"]),
    ]
    inner = helper.make_graph(
        nodes,
        "body",
        [tensor("i", TensorProto.INT64), tensor("go", TensorProto.BOOL), tensor("sum", TensorProto.FLOAT, 2)],
        [
            tensor("on", TensorProto.BOOL),
            tensor("next", TensorProto.FLOAT, 2),
            tensor("shown", TensorProto.FLOAT, 2),
        ],
        [numpy_helper.from_array(np.asarray(1, np.int64), "last")],
    )
    start = [] if most is None else [numpy_helper.from_array(np.asarray(most, np.int64), "most")]
    loop = helper.make_node(
        "Loop", ["" if most is None else "most", "true", "zero"], ["total", "sums"], "loop", body=inner
    )
    graph = helper.make_graph(
        [loop],
        "g",
        [tensor("x", TensorProto.FLOAT, 3, 2)],
        [
            tensor("total", TensorProto.FLOAT, 2),
            helper.make_tensor_value_info("sums", TensorProto.FLOAT, None),
        ],
        [
            *start,
            numpy_helper.from_array(np.zeros(2, np.float32), "zero"),
            numpy_helper.from_array(np.asarray(True), "true"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("most", [0, 1, 2, 3, None])
def test_an_onnx_loop_is_unrolled(most: int | None) -> None:
    """It ends after ``most`` steps, or when its condition is false: after the second one."""
    model = onnx_loop(most)
    graph = importers.read(ModelFile(Path("loop.onnx"), model.SerializeToString()))
    verify(graph, "import")
    found = interpret(graph, {"x": ROWS})
    for name, wanted in zip(("total", "sums"), answers(model, {"x": ROWS}), strict=True):
        np.testing.assert_array_equal(found[name], wanted)


@pytest.mark.parametrize("begins", [True, False])
def test_rows_of_no_step(begins: bool, tmp_path: Path) -> None:
    """An output without elements is one in C too, and adds nothing to what it is joined with."""
    model = onnx_loop(0 if begins else 3)
    for tensor in model.graph.initializer:
        if tensor.name == "true":
            tensor.CopyFrom(numpy_helper.from_array(np.asarray(begins), "true"))
    model.graph.node.append(helper.make_node("Concat", ["sums", "x"], ["joined"], axis=0))
    model.graph.output.append(helper.make_tensor_value_info("joined", TensorProto.FLOAT, (3, 2)))
    onnx.save(model, tmp_path / "m.onnx")
    made = compile_model(tmp_path / "m.onnx", Options("m", "host"))
    (found,) = harness.run_files(made.files, "host", [{"x": ROWS}]).outputs
    for name, wanted in zip(("total", "sums", "joined"), answers(model, {"x": ROWS}), strict=True):
        assert found[name].shape == wanted.shape
        np.testing.assert_array_equal(found[name], wanted)


@pytest.mark.parametrize("axis", [0, -1])
def test_a_scan_over_nothing(axis: int, tmp_path: Path) -> None:
    """The state stays as it is, and nothing is collected. onnxruntime does not run such a model."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "part"], ["s2"]), helper.make_node("Abs", ["s2"], ["row"])],
        "body",
        [tensor("s", TensorProto.FLOAT, 2), tensor("part", TensorProto.FLOAT, 2)],
        [tensor("s2", TensorProto.FLOAT, 2), tensor("row", TensorProto.FLOAT, 2)],
    )
    nodes = [
        helper.make_node("Slice", ["x", "from", "from"], ["nothing"]),
        helper.make_node(
            "Scan",
            ["start", "nothing"],
            ["end", "rows"],
            body=body,
            num_scan_inputs=1,
            scan_output_axes=[axis],
        ),
        helper.make_node("Concat", ["rows", "x" if axis == 0 else "start2"], ["joined"], axis=axis),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [tensor("x", TensorProto.FLOAT, 3, 2), tensor("start", TensorProto.FLOAT, 2)],
        [
            tensor("end", TensorProto.FLOAT, 2),
            tensor("rows", TensorProto.FLOAT, *((0, 2) if axis == 0 else (2, 0))),
            helper.make_tensor_value_info("joined", TensorProto.FLOAT, None),
        ],
        [
            numpy_helper.from_array(np.asarray([1], np.int64), "from"),
            numpy_helper.from_array(np.ones((2, 1), np.float32), "start2"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    made = compile_model(tmp_path / "m.onnx", Options("m", "host"))
    start = np.array([3, -7], np.float32)
    (found,) = harness.run_files(made.files, "host", [{"x": ROWS, "start": start}]).outputs
    np.testing.assert_array_equal(found["end"], start)
    assert found["rows"].shape == ((0, 2) if axis == 0 else (2, 0))
    np.testing.assert_array_equal(found["joined"], ROWS if axis == 0 else np.ones((2, 1)))
