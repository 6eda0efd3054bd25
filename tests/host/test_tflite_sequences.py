# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite's RNN and bidirectional layers give what LiteRT gives, run after run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyml
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.base.errors import UnsupportedError
from tinyml.ir import Array, Quant
from tinyml.pipeline import ModelFile, Options, compile_model

RUNS, INPUTS, CELLS = 3, 3, 4
RELU, RELU6, TANH = 1, 3, 4


def tables(random: np.random.Generator, shapes: Mapping[str, tuple[int, ...]]) -> list[Value]:
    return [
        Value.constant(name, random.normal(0, 0.5, shape).astype(np.float32))
        for name, shape in shapes.items()
    ]


def rnn(kind: str, batches: int, steps: int, time_major: bool, activation: int, merged: bool) -> bytes:
    random = np.random.default_rng(steps)
    order = (steps, batches) if time_major else (batches, steps)
    directions = "fb" if kind.startswith("BI") else "f"
    values, operands = [], ["x"]
    for name in directions:
        shapes = {f"{name}w": (CELLS, INPUTS), f"{name}r": (CELLS, CELLS), f"{name}b": (CELLS,)}
        values += [*tables(random, shapes), Value(f"{name}h", (batches, CELLS), variable=True)]
        operands += [*shapes, f"{name}h"]
    options: dict[str, Any] = {"FusedActivationFunction": activation}
    outputs: dict[str, tuple[int, ...]]
    x: tuple[int, ...]
    if kind == "RNN":
        options_name, x, outputs = "RNNOptions", (batches, INPUTS), {"y": (batches, CELLS)}
    elif len(directions) == 1:
        options_name, x, outputs = "SequenceRNNOptions", (*order, INPUTS), {"y": (*order, CELLS)}
        options["TimeMajor"] = time_major
    else:
        options_name, x = "BidirectionalSequenceRNNOptions", (*order, INPUTS)
        options |= {"TimeMajor": time_major, "MergeOutputs": merged}
        operands += ["", "", ""]
        outputs = {"y": (*order, 2 * CELLS)} if merged else {"y": (*order, CELLS), "z": (*order, CELLS)}
    values += [Value("x", x), *(Value(name, shape) for name, shape in outputs.items())]
    return write(Part(values, [Call(kind, operands, [*outputs], options_name, options)], ["x"], [*outputs]))


def lstm(batches: int, steps: int, time_major: bool, merged: bool, extras: bool) -> bytes:
    """``extras``: peepholes, clipping and a projection."""
    random = np.random.default_rng(steps)
    order, kept = (steps, batches) if time_major else (batches, steps), 3 if extras else CELLS
    values, operands, states = [], ["x"], []
    for way in "fb":
        shapes: dict[str, tuple[int, ...]] = {f"{way}w{i}": (CELLS, INPUTS) for i in range(4)}
        shapes |= {f"{way}r{i}": (CELLS, kept) for i in range(4)}
        shapes |= {f"{way}p{i}": (CELLS,) for i in range(3)}
        shapes |= {f"{way}b{i}": (CELLS,) for i in range(4)}
        shapes |= {f"{way}j": (kept, CELLS), f"{way}k": (kept,)}
        rare = [name for name in shapes if name[1] in "pjk"]
        values += tables(random, {n: s for n, s in shapes.items() if extras or n not in rare})
        operands += [name if extras or name not in rare else "" for name in shapes]
        values += [
            Value(f"{way}h", (batches, kept), variable=True),
            Value(f"{way}c", (batches, CELLS), variable=True),
        ]
        states += [f"{way}h", f"{way}c"]
    outputs = {"y": (*order, 2 * kept)} if merged else {"y": (*order, kept), "z": (*order, kept)}
    values += [Value("x", (*order, INPUTS)), *(Value(name, shape) for name, shape in outputs.items())]
    options = {
        "FusedActivationFunction": TANH,
        "TimeMajor": time_major,
        "MergeOutputs": merged,
        "CellClip": 0.4 if extras else 0.0,
    }
    call = Call(
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        [*operands, *states, *[""] * 9],
        [*outputs],
        "BidirectionalSequenceLSTMOptions",
        options,
    )
    return write(Part(values, [call], ["x"], [*outputs]))


def check(content: bytes, tmp_path: Path) -> None:
    """Several runs, one after the other: the states go on."""
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=content)
    interpreter.allocate_tensors()
    (port,) = interpreter.get_input_details()
    rows = np.random.default_rng(1).normal(0, 1, (RUNS, *port["shape"])).astype(np.float32)
    wanted: list[list[Array]] = []
    for row in rows:
        interpreter.set_tensor(port["index"], row)
        interpreter.invoke()
        wanted.append(
            [interpreter.get_tensor(out["index"]).copy() for out in interpreter.get_output_details()]
        )
    for found, right in zip(tinyml.run(path, {"x": rows}).runs, wanted, strict=True):
        for ours, theirs in zip(found.values(), right, strict=True):
            np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("time_major", [False, True], ids=["batches first", "steps first"])
@pytest.mark.parametrize("activation", [0, RELU, TANH], ids=["none", "relu", "tanh"])
def test_rnn(activation: int, time_major: bool, tmp_path: Path) -> None:
    check(rnn("UNIDIRECTIONAL_SEQUENCE_RNN", 1, 5, time_major, activation, False), tmp_path)


def test_one_step(tmp_path: Path) -> None:
    check(rnn("RNN", 2, 1, False, TANH, False), tmp_path)


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("merged", [False, True], ids=["two outputs", "merged"])
@pytest.mark.parametrize("time_major", [False, True], ids=["batches first", "steps first"])
def test_rnn_in_both_directions(time_major: bool, merged: bool, batches: int, tmp_path: Path) -> None:
    check(rnn("BIDIRECTIONAL_SEQUENCE_RNN", batches, 4, time_major, TANH, merged), tmp_path)


@pytest.mark.parametrize("extras", [False, True], ids=["plain", "extras"])
@pytest.mark.parametrize("merged", [False, True], ids=["two outputs", "merged"])
@pytest.mark.parametrize("time_major", [False, True], ids=["batches first", "steps first"])
def test_lstm_in_both_directions(time_major: bool, merged: bool, extras: bool, tmp_path: Path) -> None:
    check(lstm(2 if time_major else 1, 4, time_major, merged, extras), tmp_path)


def test_an_activation_that_no_cell_has(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(rnn("UNIDIRECTIONAL_SEQUENCE_RNN", 1, 5, False, RELU6, False))
    with pytest.raises(UnsupportedError, match="activation"):
        tinyml.compile(path)


@pytest.mark.parametrize(
    "bits, remedy", [(-16, "representative dataset of real inputs"), (-8, "without quantising")]
)
def test_cells_without_functions_say_their_scale(bits: int, remedy: str) -> None:
    """TensorFlow's converter takes any power of two, also for cells that nearly stay 0."""
    of_x, of_h = Quant.per_tensor(0.02, 0), Quant.per_tensor(1 / 128, 0)
    of_w, of_b = Quant.per_tensor(0.01, 0), Quant.per_tensor(0.0002, 0)
    tables = [Value.constant(f"w{gate}", np.ones((4, 3), np.int8), of_w) for gate in range(4)]
    tables += [Value.constant(f"r{gate}", np.ones((4, 4), np.int8), of_w) for gate in range(4)]
    biases = [Value.constant(f"b{gate}", np.zeros(4, np.int32), of_b) for gate in range(4)]
    x, y = Value("x", (1, 2, 3), "int8", of_x), Value("y", (1, 2, 4), "int8", of_h)
    states = [
        Value("h", (1, 4), "int8", of_h, variable=True),
        Value("c", (1, 4), "int16", Quant.per_tensor(2.0**bits, 0), variable=True),
    ]
    names = [
        "x",
        *(v.name for v in tables),
        "",
        "",
        "",
        *(v.name for v in biases),
        "",
        "",
        "h",
        "c",
        *[""] * 4,
    ]
    call = Call(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        names,
        ["y"],
        "UnidirectionalSequenceLSTMOptions",
        {"FusedActivationFunction": 4},
    )
    content = write(Part([x, y, *tables, *biases, *states], [call], ["x"], ["y"]))
    with pytest.raises(UnsupportedError, match=rf"scale 2\^{bits} .*2\^-15 to 2\^-9.*{remedy}"):
        compile_model(ModelFile(Path("lstm.tflite"), content), Options(target="host"))
