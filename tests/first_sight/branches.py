# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""If with a condition that only a run decides: both branches are compiled, one is run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

from tests.first_sight import Case, Holds, Refused, Right
from tests.support.onnx_models import branch, model, node
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.pipeline import Options, compile_model

RNG = np.random.default_rng(7)
A, B = (RNG.normal(0, 0.5, (4, 4)).astype(np.float32) for _ in range(2))
TYPES = {"rate": TensorProto.INT64}


def by_rate() -> bytes:
    """As in voice detectors: the sampling rate decides which weights are used, and both update the state."""
    wide = [node("MatMul", "x wa", "h"), node("Tanh", "h", "then"), node("Add", "then state", "next_a")]
    narrow = [node("MatMul", "x wb", "g"), node("Relu", "g", "other"), node("Sub", "other state", "next_b")]
    nodes = [
        node("Greater", "rate limit", "is_wide"),
        node(
            "If",
            "is_wide",
            "y next",
            then_branch=branch(wide, "then next_a", wa=A),
            else_branch=branch(narrow, "other next_b"),
        ),
    ]
    inputs = {"x": [1, 4], "state": [1, 4], "rate": []}
    return model(nodes, inputs, "y next", types=TYPES, wb=B, limit=np.int64(100))


def by_sum(outer: str = "y") -> bytes:
    """Nested: the inner condition is computed inside a branch; one branch gives a value from outside."""
    inner_then = branch([node("MatMul", "h wa", "p")], "p")
    inner_else = branch([node("Mul", "h h", "q")], "q")
    then = [
        node("Relu", "x", "h"),
        node("ReduceMax", "h", "top", keepdims=0),
        node("Greater", "top one", "large"),
        node("If", "large", "r", then_branch=inner_then, else_branch=inner_else),
    ]
    nodes = [
        node("ReduceSum", "x", "sum", keepdims=0),
        node("Greater", "sum zero", "positive"),
        node("MatMul", "x wb", "outside"),
        node(
            "If",
            "positive",
            "z",
            then_branch=branch(then, "r"),
            else_branch=branch([node("Identity", "outside", "same")], "same"),
        ),
        node("Neg", "z", outer),
    ]
    return model(nodes, {"x": [1, 4]}, outer, wa=A, wb=B, zero=np.float32(0), one=np.float32(0.9), opset=18)


def names_inside() -> bytes:
    """Names inside branches are those of values that are computed after the If, as onnxruntime allows."""
    then = branch([node("Relu", "x", "later")], "later")
    other = branch([node("Neg", "x", "z")], "z")
    nodes = [
        node("ReduceSum", "x", "sum", keepdims=0),
        node("Greater", "sum zero", "positive"),
        node("If", "positive", "z", then_branch=then, else_branch=other),
        node("Abs", "z", "later"),
        node("Sub", "later z", "y"),
    ]
    return model(nodes, {"x": [1, 4]}, "y", zero=np.float32(0), opset=18)


def two_shapes() -> bytes:
    then, other = branch([node("Relu", "x", "a")], "a"), branch([node("MatMul", "x w", "b")], "b")
    nodes = [
        node("ReduceSum", "x", "sum", keepdims=0),
        node("Greater", "sum zero", "positive"),
        node("If", "positive", "y", then_branch=then, else_branch=other),
    ]
    return model(nodes, {"x": [1, 4]}, "y", w=A[:, :2], zero=np.float32(0), opset=18)


def one_runs(folder: Path) -> None:
    """The C tests the condition before each layer of a branch."""
    (folder / "m.onnx").write_bytes(by_rate())
    text = compile_model(folder / "m.onnx", Options("m", "host")).files["m.c"]
    run = text[text.index("int m_run(") :]
    assert run.count("\tif (*AT(bool") == 3, run
    assert run.count("\tif (!*AT(bool") == 2, run  # a Relu is part of the layer before it


def as_in_the_file(folder: Path) -> None:
    """A constant condition needs neither a test nor the other branch."""
    file = onnx.load_from_string(by_rate())
    file.graph.initializer.append(onnx.numpy_helper.from_array(np.int64(160), "rate"))
    del file.graph.input[2]
    onnx.save(file, folder / "m.onnx")
    text = compile_model(folder / "m.onnx", Options("m", "host")).files["m.c"]
    assert "AT(bool" not in text
    assert "relu" not in text


def tflite() -> bytes:
    """TFLite's IF: the condition, then what both subgraphs take."""
    main = Part(
        [
            Value("x", (1, 4)),
            Value("sum", ()),
            Value("positive", (), "bool"),
            Value("y", (1, 4)),
            Value.constant("axes", np.array([0, 1], np.int32)),
            Value.constant("zero", np.array(0, np.float32)),
        ],
        [
            Call("SUM", ["x", "axes"], ["sum"], "ReducerOptions", {"KeepDims": False}),
            Call("GREATER", ["sum", "zero"], ["positive"], "GreaterOptions"),
            Call(
                "IF", ["positive", "x"], ["y"], "IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2}
            ),
        ],
        ["x"],
        ["y"],
    )
    values = [Value("a", (1, 4)), Value("b", (1, 4))]
    then = Part(values, [Call("TANH", ["a"], ["b"])], ["a"], ["b"])
    other = Part(values, [Call("LOGISTIC", ["a"], ["b"])], ["a"], ["b"])
    return write(main, then, other)


CASES: list[Case] = [
    Right("tflite", tflite, "tflite"),
    Right("by_rate", by_rate),
    Right("nested", by_sum),
    Right("names_inside", names_inside),
    Refused("two_shapes", two_shapes, ("two shapes, 1x4 and 1x2", "make its condition a constant")),
    Holds("one_runs", one_runs),
    Holds("constant", as_in_the_file),
]
