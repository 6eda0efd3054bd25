# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers keep all steps only where something reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tests.support.tflite_writer import Call, Part, Value, write
from tinyml import harness
from tinyml.importers import onnx_graph, tflite_graph
from tinyml.ir import Graph, Quant
from tinyml.ir.interpreter import interpret
from tinyml.ops.recurrent.lstm_float import LstmFloat
from tinyml.ops.recurrent.lstm_int8 import LstmInt8
from tinyml.ops.recurrent.rnn import Recurrent
from tinyml.pipeline import Options, compile_built, optimize

STEPS, BATCHES, INPUTS, HIDDEN = 6, 2, 3, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
SQUEEZED = helper.make_node("Squeeze", ["steps", "one"], ["squeezed"])  # (steps, batches, hidden)
TURNED = helper.make_node("Transpose", ["squeezed"], ["turned"], perm=[1, 0, 2])
STATE = helper.make_node("Squeeze", ["state", "zero"], ["y"])


def gather(x: str, index: str, axis: int) -> NodeProto:
    return helper.make_node("Gather", [x, index], ["y"], axis=axis)


def cut(x: str, first: str, axis: str) -> list[NodeProto]:
    """A slice of one step, without its axis."""
    end = {"last": "most", "zero": "one"}[first]
    return [
        helper.make_node("Slice", [x, first, end, axis], ["cut"]),
        helper.make_node("Squeeze", ["cut", axis], ["y"]),
    ]


def model(
    after: Sequence[NodeProto], cell: str = "GRU", lengths: bool = False, reverse: bool = False
) -> Graph:
    rng = np.random.default_rng(4)

    def values(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, shape).astype(np.float32)

    rows = GATES[cell] * HIDDEN
    constants = {
        "w": values(1, rows, INPUTS),
        "r": values(1, rows, HIDDEN),
        "b": values(1, 2 * rows),
        "lengths": np.array([3, STEPS], np.int32),
        "zero": np.array([0]),
        "one": np.array([1]),
        "last": np.array([-1]),
        "most": np.array([np.iinfo(np.int64).max]),
        "final": np.array(-1),
        "first": np.array(0),
        "before": np.array(-2),
    }
    operands = ["x", "w", "r", "b", "lengths" if lengths else ""]
    way = "reverse" if reverse else "forward"
    layer = helper.make_node(cell, operands, ["steps", "state"], hidden_size=HIDDEN, direction=way)
    graph = helper.make_graph(
        [layer, *after],
        "recurrent",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, BATCHES, INPUTS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return onnx_graph.read(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "model", {})


def keeps_steps(graph: Graph) -> bool:
    """Of the optimised graph, which must compute the same."""
    after = optimize(graph)
    x = np.random.default_rng(5).uniform(-1, 1, (STEPS, BATCHES, INPUTS)).astype(np.float32)
    (before_y,), (after_y,) = (interpret(each, [{"x": x}]) for each in (graph, after))
    np.testing.assert_array_equal(after_y["y"], before_y["y"])
    (op,) = (node.op for node in after.nodes if isinstance(node.op, Recurrent))
    return op.sequence


@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize(
    "after",
    [
        [STATE],  # the exporter names the output with all steps, but nothing reads it
        [SQUEEZED, gather("squeezed", "final", 0)],
        [SQUEEZED, TURNED, gather("turned", "final", 1)],
        [SQUEEZED, *cut("squeezed", "last", "zero")],
        [SQUEEZED, TURNED, *cut("turned", "last", "one")],
    ],
    ids=["state", "gather", "batch_first", "slice", "slice_batch_first"],
)
def test_only_the_last_step_is_read(cell: str, after: list[NodeProto]) -> None:
    assert not keeps_steps(model(after, cell))


def test_the_first_step_is_the_last_in_reverse() -> None:
    assert not keeps_steps(model([SQUEEZED, gather("squeezed", "first", 0)], reverse=True))
    assert keeps_steps(model([SQUEEZED, gather("squeezed", "final", 0)], reverse=True))
    assert keeps_steps(model([SQUEEZED, gather("squeezed", "first", 0)]))


@pytest.mark.parametrize(
    "after",
    [
        [SQUEEZED, gather("squeezed", "before", 0)],  # another step
        [helper.make_node("Relu", ["steps"], ["y"])],  # all of them
    ],
    ids=["other", "all"],
)
def test_other_steps_are_read(after: list[NodeProto]) -> None:
    assert keeps_steps(model(after))


def test_with_lengths_every_batch_has_its_own_last_step() -> None:
    assert keeps_steps(model([SQUEEZED, gather("squeezed", "final", 0)], lengths=True))


def test_some_readers_want_the_last_step_and_others_all() -> None:
    total = helper.make_node("ReduceSum", ["squeezed", "zero"], ["sum"], keepdims=0)
    last = helper.make_node("Gather", ["squeezed", "final"], ["taken"], axis=0)
    both = helper.make_node("Add", ["sum", "taken"], ["y"])
    graph = model([SQUEEZED, total, last, both])
    assert keeps_steps(graph)
    assert not any(node.op.kind in ("Gather", "Slice") for node in optimize(graph).nodes)


def test_steps_take_no_memory() -> None:
    def arena(after: list[NodeProto]) -> int:
        return compile_built(model(after), Options(name="model", target="host")).plan.arena_bytes

    step = 4 * BATCHES * HIDDEN
    kept = arena([SQUEEZED, gather("squeezed", "before", 0)])
    assert arena([SQUEEZED, gather("squeezed", "final", 0)]) <= kept - (STEPS - 1) * step


def tflite_lstm(int8: bool, time_major: bool, step: int, batches: int = 1) -> Graph:
    """As Keras converts it: all steps, of which a slice without its axis takes one."""
    rng = np.random.default_rng(6)
    order = (STEPS, batches) if time_major else (batches, STEPS)
    kind = "int8" if int8 else "float32"
    quant, fine = (Quant.per_tensor(0.02, 3), Quant.per_tensor(2.0**-11, 0)) if int8 else (None, None)

    def constant(name: str, *shape: int) -> Value:
        if not int8:
            return Value.constant(name, rng.normal(0, 0.5, shape).astype(np.float32))
        if len(shape) == 1:
            return Value.constant(name, rng.integers(-500, 500, shape).astype(np.int32))
        weights = rng.integers(-127, 128, shape).astype(np.int8)
        return Value.constant(name, weights, Quant.per_tensor(0.01, 0))

    shapes = {"w": (HIDDEN, INPUTS), "r": (HIDDEN, HIDDEN), "b": (HIDDEN,)}
    tables = [constant(f"{word}{gate}", *shape) for word, shape in shapes.items() for gate in range(4)]
    begin, end = (np.array([v, 0, 0] if time_major else [0, v, 0], np.int32) for v in (step, step + 1))
    values = [
        Value("x", (*order, INPUTS), kind, quant),
        Value("h", (batches, HIDDEN), kind, quant, variable=True),
        Value("c", (batches, HIDDEN), "int16" if int8 else kind, fine, variable=True),
        Value("all", (*order, HIDDEN), kind, quant),
        Value("y", (batches, HIDDEN), kind, quant),
        *tables,
        *(Value.constant(name, array) for name, array in (("begin", begin), ("end", end))),
        Value.constant("strides", np.ones(3, np.int32)),
    ]
    names = [table.name for table in tables]
    operands = ["x", *names[:8], "", "", "", *names[8:], "", "", "h", "c", "", "", "", ""]
    whole = 0b110 if time_major else 0b101  # a bit for each axis of which all is taken
    masks = {"BeginMask": whole, "EndMask": whole}
    calls = [
        Call(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            operands,
            ["all"],
            "UnidirectionalSequenceLSTMOptions",
            {"FusedActivationFunction": 4, "TimeMajor": time_major},
        ),
        Call(
            "STRIDED_SLICE",
            ["all", "begin", "end", "strides"],
            ["y"],
            "StridedSliceOptions",
            {**masks, "ShrinkAxisMask": 1 if time_major else 2},
        ),
    ]
    return tflite_graph.read(Path("lstm.tflite"), write(Part(values, calls, ["x"], ["y"])), {})


def lstm_keeps_steps(graph: Graph) -> bool:
    """Of the optimised graph; two runs, the second with the states of the first, give the same in C."""
    given = graph.tensors["x"]
    rng = np.random.default_rng(7)
    span = rng.integers(-128, 128, given.shape) if given.quant else rng.uniform(-1, 1, given.shape)
    samples = [{"x": (sign * span).clip(-128, 127).astype(given.dtype.numpy)} for sign in (1, -1)]
    compiled = compile_built(graph, Options("lstm", "host"))
    found = harness.run_files(compiled.files, "host", samples).outputs
    for wanted, ours in zip(interpret(graph, samples), found, strict=True):
        np.testing.assert_allclose(ours["y"], wanted["y"], rtol=0, atol=0 if given.quant else 1e-5)
    (op,) = (n.op for n in compiled.graph.nodes if isinstance(n.op, LstmFloat | LstmInt8))
    return op.sequence


@pytest.mark.parametrize("int8", [True, False], ids=["int8", "float"])
@pytest.mark.parametrize("time_major", [True, False], ids=["time", "batch"])
def test_tflite_lstm_of_which_the_last_step_is_read(int8: bool, time_major: bool) -> None:
    assert not lstm_keeps_steps(tflite_lstm(int8, time_major, STEPS - 1))


def test_tflite_lstm_of_which_another_step_is_read() -> None:
    assert lstm_keeps_steps(tflite_lstm(True, False, STEPS - 2))
    assert lstm_keeps_steps(tflite_lstm(False, False, STEPS - 1, batches=2))  # they do not follow each other
    assert not lstm_keeps_steps(tflite_lstm(False, True, STEPS - 1, batches=2))
