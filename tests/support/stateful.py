# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Small TFLite models that keep state between runs, as streaming models do."""

from __future__ import annotations

import numpy as np

from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.ir import Array

FRAME = (1, 1, 1, 8)
KEPT = 3


def _constants(**arrays: Array) -> list[Value]:
    return [Value.constant(name, array) for name, array in arrays.items()]


def _variable(handle: str, read: str, write: str) -> tuple[Call, Call, Call]:
    """How a file opens, reads and writes a variable."""
    return (
        Call("VAR_HANDLE", [], [handle], "VarHandleOptions", {"SharedName": read}),
        Call("READ_VARIABLE", [handle], [read], "ReadVariableOptions"),
        Call("ASSIGN_VARIABLE", [handle, write], [], "AssignVariableOptions"),
    )


def stream() -> bytes:
    """A convolution over the last four frames, three of them remembered, and a dense layer."""
    random = np.random.default_rng(1)
    all_, kept = (1, KEPT + 1, 1, 8), (1, KEPT, 1, 8)
    values = [
        Value("x", FRAME), Value("handle", (), "resource"), Value("ring", kept), Value("all", all_),
        Value("conv", (1, 1, 1, 6)), Value("flat", (1, 6)), Value("y", (1, 3)), Value("next", kept),
        *_constants(
            w1=random.normal(0, 0.3, (6, KEPT + 1, 1, 8)).astype(np.float32),
            b1=random.normal(0, 0.1, 6).astype(np.float32),
            w2=random.normal(0, 0.5, (3, 6)).astype(np.float32),
            b2=random.normal(0, 0.1, 3).astype(np.float32),
            row=np.array([1, 6], np.int32),
            begin=np.array([0, 1, 0, 0], np.int32),
            size=np.array(kept, np.int32),
        ),
    ]  # fmt: skip
    opened, read, written = _variable("handle", "ring", "next")
    steps = dict.fromkeys(("StrideW", "StrideH", "DilationWFactor", "DilationHFactor"), 1)
    valid = {"Padding": 1, "FusedActivationFunction": 1, **steps}
    calls = [
        opened,
        read,
        Call("CONCATENATION", ["ring", "x"], ["all"], "ConcatenationOptions", {"Axis": 1}),
        Call("CONV_2D", ["all", "w1", "b1"], ["conv"], "Conv2DOptions", valid),
        Call("RESHAPE", ["conv", "row"], ["flat"], "ReshapeOptions"),
        Call("FULLY_CONNECTED", ["flat", "w2", "b2"], ["y"], "FullyConnectedOptions"),
        Call("SLICE", ["all", "begin", "size"], ["next"], "SliceOptions"),
        written,
    ]
    return write(Part(values, calls, ["x"], ["y"]))


def average() -> bytes:
    """y = 0.9 y' + 0.1 x, where y' begins at 2: the output is the next state."""
    values = [
        Value("x", (1, 16)), Value("handle", (), "resource"), Value("old", (1, 16)),
        Value("most", (1, 16)), Value("some", (1, 16)), Value("y", (1, 16)),
        *_constants(nine=np.array(0.9, np.float32), one=np.array(0.1, np.float32)),
    ]  # fmt: skip
    opened, read, written = _variable("handle", "old", "y")
    calls = [
        Call("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1}),
        opened,
        read,
        Call("MUL", ["old", "nine"], ["most"], "MulOptions"),
        Call("MUL", ["x", "one"], ["some"], "MulOptions"),
        Call("ADD", ["most", "some"], ["y"], "AddOptions"),
        written,
    ]
    two = Value.constant("two", np.full((1, 16), 2, np.float32))
    first = [
        Call("VAR_HANDLE", [], ["handle"], "VarHandleOptions", {"SharedName": "old"}),
        Call("ASSIGN_VARIABLE", ["handle", "two"], [], "AssignVariableOptions"),
    ]
    return write(Part(values, calls, ["x"], ["y"]), Part([Value("handle", (), "resource"), two], first))


def delay() -> bytes:
    """y = relu(x - x'), where x' is x of the run before: the next state is an input."""
    values = [
        Value("x", (1, 16)),
        Value("handle", (), "resource"),
        Value("old", (1, 16)),
        Value("y", (1, 16)),
    ]
    opened, read, written = _variable("handle", "old", "x")
    rise = Call("SUB", ["x", "old"], ["y"], "SubOptions", {"FusedActivationFunction": 1})
    return write(Part(values, [opened, read, rise, written], ["x"], ["y"]))


def svdf() -> bytes:
    """As keyword spotters had before they had convolutions."""
    random = np.random.default_rng(4)
    values = [
        Value("x", (1, 10)), Value("state", (1, 6 * 5), variable=True), Value("y", (1, 6)),
        *_constants(
            features=random.normal(0, 0.3, (6, 10)).astype(np.float32),
            time=random.normal(0, 0.4, (6, 5)).astype(np.float32),
            bias=random.normal(0, 0.1, 6).astype(np.float32),
        ),
    ]  # fmt: skip
    operands = ["x", "features", "time", "bias", "state"]
    call = Call("SVDF", operands, ["y"], "SVDFOptions", {"Rank": 1, "FusedActivationFunction": 1})
    return write(Part(values, [call], ["x"], ["y"]))


def lstm(steps: int, clip: float = 10.0, gain: float = 0.4, time_major: bool = False) -> bytes:
    """A layer as Keras converts it, followed by a dense one."""
    random = np.random.default_rng(3)
    inputs, cells = 6, 8
    order = (steps, 1) if time_major else (1, steps)
    shapes = {"w": (cells, inputs), "r": (cells, cells), "b": (cells,)}
    tables = {
        f"{kind}{gate}": random.normal(0, gain if kind != "b" else 0.1, shape).astype(np.float32)
        for kind, shape in shapes.items()
        for gate in range(4)
    }
    operands = ["x", *(f"{kind}{gate}" for kind in "wr" for gate in range(4)), "", "", ""]
    operands += [*(f"b{gate}" for gate in range(4)), "", "", "h", "c", "", "", "", ""]
    values = [
        Value("x", (*order, inputs)), Value("h", (1, cells), variable=True),
        Value("c", (1, cells), variable=True), Value("all", (*order, cells)),
        Value("flat", (steps, cells)), Value("y", (steps, 3)),
        *_constants(
            **tables,
            rows=np.array([steps, cells], np.int32),
            wd=random.normal(0, 0.5, (3, cells)).astype(np.float32),
            bd=np.zeros(3, np.float32),
        ),
    ]  # fmt: skip
    options = {"FusedActivationFunction": 4, "CellClip": clip, "TimeMajor": time_major}
    table = "UnidirectionalSequenceLSTMOptions"
    calls = [
        Call("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, ["all"], table, options),
        Call("RESHAPE", ["all", "rows"], ["flat"], "ReshapeOptions"),
        Call("FULLY_CONNECTED", ["flat", "wd", "bd"], ["y"], "FullyConnectedOptions"),
    ]
    return write(Part(values, calls, ["x"], ["y"]))
