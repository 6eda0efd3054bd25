# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models that keep state between runs: calibrated over sequences, state kept as integers, C equal to ONNX."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

from tests.support import stateful
from tests.support.quantizing import kinds, saved
from tinyml import harness
from tinyml.base.errors import ConfigError, ModelError, UnsupportedError
from tinyml.compare.reference import OnnxRuntime
from tinyml.datasets.consecutive import flatten, pick
from tinyml.datasets.reader import Samples
from tinyml.datasets.reader import load as load_data
from tinyml.datasets.shaping import Input
from tinyml.importers import load, read_model
from tinyml.importers.states import KEY, Remembered, with_states
from tinyml.ir import Array, Shape
from tinyml.ir.interpreter import interpret
from tinyml.ops.framework.reading import dtype_of
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.measure import Noise
from tinyml.settings.quantize_request import Request
from tinyml.verbs import cli

SEQUENCES, STEPS = 5, 16


@dataclass(frozen=True)
class Trial:
    """A float model, what became of it, and a sequence with the answers of both."""

    result: Quantized
    compiled: Compiled
    decibels: float  # of the C against the float model, state kept over all steps


def data_for(shape: Shape, folder: Path) -> Path:
    path = folder / "sequences.npz"
    random = np.random.default_rng(2)
    np.savez(path, x=random.normal(0, 1, (SEQUENCES, STEPS, *shape)).astype(np.float32))
    return path


def attempt(
    content: bytes, shape: Shape, folder: Path, request: Request | None = None, off: float = 1e-6
) -> Trial:
    """Quantise, compile, run a sequence: the C computes what onnxruntime does, in every step."""
    (folder / "model.tflite").write_bytes(content)
    calibration = data_for(shape, folder)
    request = replace(request or Request(calibration), calibration=calibration, method="minmax")
    result = quantize(folder / "model.tflite", request)
    path = saved(result, folder)
    compiled = compile_model(path, Options("net", "host"))
    sequence = np.load(calibration)["x"][1]
    found = harness.run_files(compiled.files, "host", [{"x": x} for x in sequence]).outputs
    wanted = OnnxRuntime(read_model(path), load(path)).run([{"x": x} for x in sequence])
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours["y"], theirs.outputs[0], rtol=1e-5, atol=off)
    noise = Noise()
    float_model = interpret(load(folder / "model.tflite"), [{"x": x} for x in sequence])
    for ours, real in zip(found, float_model, strict=True):
        noise.add(real["y"], ours["y"])
    return Trial(result, compiled, noise.decibels)


def states_of(compiled: Compiled) -> list[str]:
    return [compiled.graph.tensors[state.tensor].dtype.value for state in compiled.graph.states]


def test_a_streaming_convolution_remembers_bytes(tmp_path: Path) -> None:
    trial = attempt(stateful.stream(), stateful.FRAME, tmp_path)
    assert states_of(trial.compiled) == ["int8"]
    assert {kind for _, kind in kinds(trial.compiled)[1:-1]} == {"int8"}
    assert list(trial.result.report.outputs) == ["y"]  # states are no outputs
    assert trial.result.report.samples == SEQUENCES * STEPS
    assert trial.decibels > 33


def test_a_streaming_layer_on_int16_remembers_words(tmp_path: Path) -> None:
    trial = attempt(stateful.stream(), stateful.FRAME, tmp_path, Request(tmp_path, int16=("conv",)))
    assert states_of(trial.compiled) == ["int16"]


def test_float_neighbours_keep_the_state_float(tmp_path: Path) -> None:
    every = quantize_layers(tmp_path)
    trial = attempt(stateful.stream(), stateful.FRAME, tmp_path, Request(tmp_path, keep_float=every))
    assert states_of(trial.compiled) == ["float32"]


def quantize_layers(folder: Path) -> tuple[str, ...]:
    """The layers around the state, by the names of a report."""
    (folder / "model.tflite").write_bytes(stateful.stream())
    report = quantize(
        folder / "model.tflite", Request(data_for(stateful.FRAME, folder), method="minmax")
    ).report
    return tuple(layer.name for layer in report.layers if layer.op_type in ("Concat", "Slice", "Conv"))


def test_the_interface_says_nothing_about_states(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(stateful.stream())
    result = quantize(tmp_path / "model.tflite", Request(data_for(stateful.FRAME, tmp_path), io="int8"))
    graph = compile_model(saved(result, tmp_path), Options("net", "host")).graph
    assert (graph.inputs, graph.outputs) == (("x",), ("y",))
    types = [graph.tensors[name].dtype.value for name in ("x", "y", graph.states[0].tensor)]
    assert types == ["int8", "int8", "int8"]


def test_quantised_while_it_is_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And verified: onnxruntime is given the states as well."""
    (tmp_path / "model.tflite").write_bytes(stateful.stream())
    request = Request(data_for(stateful.FRAME, tmp_path), method="minmax")
    inline = compile_model(tmp_path / "model.tflite", Options("net", "host", quantize=request))
    assert states_of(inline) == ["int8"]
    saved(quantize(tmp_path / "model.tflite", request), tmp_path)
    assert cli.main(["verify", str(tmp_path / "int8.onnx")]) == 0
    assert "agrees on host" in capsys.readouterr().out


def test_an_output_that_is_remembered_begins_at_its_first_value(tmp_path: Path) -> None:
    trial = attempt(stateful.average(), (1, 16), tmp_path)
    (state,) = trial.compiled.graph.states
    quant = trial.compiled.graph.tensors[state.tensor].quant
    assert quant is not None
    assert state.initial is not None
    first = (state.initial.astype(np.float64) - quant.zero_point) * quant.scale
    np.testing.assert_allclose(first, 2, atol=quant.scale)
    assert trial.decibels > 25


@pytest.mark.parametrize("name,shape", [("delay", (1, 16)), ("svdf", (1, 10))])
def test_other_states(name: str, shape: Shape, tmp_path: Path) -> None:
    """An input that is remembered is stored as its reader rounds it."""
    trial = attempt(getattr(stateful, name)(), shape, tmp_path)
    assert states_of(trial.compiled) == ["int8"]
    assert trial.decibels > 30


@pytest.mark.parametrize("steps,clip,time_major", [(1, 10.0, False), (5, 10.0, False), (4, 0.0, True)])
def test_lstm_keeps_integers(steps: int, clip: float, time_major: bool, tmp_path: Path) -> None:
    """int8 states and int16 cells, whose limit is applied between runs; onnxruntime is a few steps off."""
    shape = (steps, 1, 6) if time_major else (1, steps, 6)
    trial = attempt(stateful.lstm(steps, clip, time_major=time_major), shape, tmp_path, off=0.04)
    assert states_of(trial.compiled) == ["int8", "float32" if clip else "int16"]
    kinds = {layer.op_type: layer.kind for layer in trial.result.report.layers}
    assert kinds["LSTM"] == "int8"
    assert trial.decibels > 28


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_remember_integers(op_type: str, tmp_path: Path) -> None:
    """The state of GRU is int16: what a gate lets through in small steps adds up."""
    random = np.random.default_rng(5)
    rows, hidden = {"RNN": 1, "GRU": 3, "LSTM": 4}[op_type] * 12, 12
    weights = {"w": (1, rows, 6), "r": (1, rows, hidden), "b": (1, 2 * rows), "d": (hidden, 3)}
    names = ["h", "c"][: 2 if op_type == "LSTM" else 1]
    nodes = [
        helper.make_node(
            op_type,
            ["x", "w", "r", "b", "", *names],
            ["", *(f"{n}1" for n in names)],
            "cell",
            hidden_size=hidden,
        ),
        helper.make_node("Squeeze", ["h1", "zero"], ["flat"], "flat"),
        helper.make_node("MatMul", ["flat", "d"], ["y"], "dense"),
    ]
    values = [("x", [3, 1, 6]), *((name, [1, 1, hidden]) for name in names)]
    after = [("y", [1, 3]), *((f"{name}1", [1, 1, hidden]) for name in names)]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in values],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in after],
        [
            *(
                numpy_helper.from_array(random.normal(0, 0.3, shape).astype(np.float32), name)
                for name, shape in weights.items()
            ),
            numpy_helper.from_array(np.asarray([0]), "zero"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with_states(model, [Remembered(n, f"{n}1", np.zeros((1, 1, hidden), np.float32)) for n in names])
    onnx.save(model, tmp_path / "model.onnx")
    calibration = data_for((3, 1, 6), tmp_path)
    result = quantize(tmp_path / "model.onnx", Request(calibration, method="minmax"))
    compiled = compile_model(saved(result, tmp_path), Options("net", "host"))
    assert states_of(compiled) == {"RNN": ["int8"], "GRU": ["int16"], "LSTM": ["int8", "int16"]}[op_type]
    inputs = [{"x": x} for x in np.load(calibration)["x"][1]]
    found = harness.run_files(compiled.files, "host", inputs).outputs
    noise = Noise()
    real = interpret(load(tmp_path / "model.onnx"), inputs)
    for ours, exact, float_ in zip(found, interpret(compiled.graph, inputs), real, strict=True):
        np.testing.assert_array_equal(ours["y"], exact["y"])
        noise.add(float_["y"], ours["y"])
    assert noise.decibels > 30


def test_lstm_whose_cells_pass_their_limit_is_refused(tmp_path: Path) -> None:
    """ONNX limits no cells: the answers would be others."""
    (tmp_path / "model.tflite").write_bytes(stateful.lstm(40, 1.0, 1.5))
    with pytest.raises(UnsupportedError, match="exceed their limit during a run"):
        quantize(tmp_path / "model.tflite", Request(data_for((1, 40, 6), tmp_path)))


# --- calibration data ------------------------------------------------------------------------------


def test_an_axis_before_the_rows_counts_sequences() -> None:
    shapes = {"x": (1, 4)}
    rows: dict[str, Array] = {"x": np.zeros((12, 4))}
    assert flatten(rows, shapes, Path("f"))[1] == (0,)
    for extra in ((3, 5, 4), (3, 5, 1, 4)):
        table, starts = flatten({"x": np.zeros(extra)}, shapes, Path("f"))
        assert len(table["x"]) == 15
        assert list(starts) == [0, 5, 10]
    alone = flatten({"x": np.zeros((7, 1, 1, 4))}, shapes, Path("f"))
    assert list(alone[1]) == list(range(7))  # each run is a sequence of its own


def test_inputs_with_sequences_of_different_lengths_are_refused() -> None:
    table: dict[str, Array] = {"a": np.zeros((2, 5, 4)), "b": np.zeros((2, 6, 4))}
    with pytest.raises(ConfigError, match=r"a: 5, b: 6"):
        flatten(table, {"a": (1, 4), "b": (1, 4)}, Path("f"))


def test_whole_sequences_are_picked() -> None:
    assert pick(30, range(0, 30, 10), 100) == (list(range(30)), [0, 10, 20])
    assert pick(30, range(0, 30, 10), 20) == ([*range(10), *range(20, 30)], [0, 10])
    assert pick(30, (0,), 7) == (list(range(7)), [0])  # consecutive, not spread


def test_each_sound_is_a_sequence(tmp_path: Path) -> None:
    import wave

    for name, frames in (("a.wav", 20), ("b.wav", 12)):
        with wave.open(str(tmp_path / name), "wb") as file:
            file.setparams((1, 2, 16000, frames, "NONE", ""))
            file.writeframes(np.arange(frames, dtype="<i2").tobytes())
    wanted = Input("x", (1, 4), dtype_of("float32"))
    found: Samples = load_data(Request(tmp_path), [wanted], stateful=True)
    assert len(found) == 8
    assert sorted(found.starts) == [0, 5]


# --- state in ONNX files ---------------------------------------------------------------------------


def counter(states: str, first: Array | None = None) -> onnx.ModelProto:
    """total = before + x, marked as state by its metadata."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["before", "x"], ["after"]), helper.make_node("Neg", ["after"], ["y"])],
        "counter",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "before")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("y", "after")],
        [] if first is None else [numpy_helper.from_array(first, "before")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {KEY: states})
    return model


def test_metadata_make_an_input_a_state(tmp_path: Path) -> None:
    onnx.save(counter('{"before": "after"}', np.array([1, 2], np.float32)), tmp_path / "counter.onnx")
    compiled = compile_model(tmp_path / "counter.onnx", Options("counter", "host"))
    assert (compiled.graph.inputs, compiled.graph.outputs) == (("x",), ("y",))
    samples = [{"x": np.array([10, 20], np.float32)}] * 3
    found = harness.run_files(compiled.files, "host", samples).outputs
    assert [out["y"].tolist() for out in found] == [[-11, -22], [-21, -42], [-31, -62]]


def test_float_onnx_with_state_can_be_quantised(tmp_path: Path) -> None:
    """A leaky sum, so that its range is bounded."""
    model = counter('{"before": "after"}')
    model.graph.node[0].input[0] = "half"
    half = numpy_helper.from_array(np.array(0.5, np.float32), "weight")
    model.graph.node.insert(0, helper.make_node("Mul", ["before", "weight"], ["half"], "halve"))
    model.graph.initializer.append(half)
    onnx.save(model, tmp_path / "leaky.onnx")
    result = quantize(tmp_path / "leaky.onnx", Request(data_for((2,), tmp_path)))
    compiled = compile_model(saved(result, tmp_path), Options("leaky", "host"))
    assert states_of(compiled) == ["int8"]
    assert result.report.decibels > 25


@pytest.mark.parametrize(
    "states,first,message",
    [
        ("before=after", None, "cannot be read"),
        ('{"before": 3}', None, "cannot be read"),
        ('{"nothing": "after"}', None, "name an input 'nothing'"),
        ('{"before": "later"}', None, "name an output 'later'"),
        ('{"before": "after"}', np.zeros(3, np.float32), "do not match"),
    ],
)
def test_wrong_metadata_are_refused(states: str, first: Array | None, message: str, tmp_path: Path) -> None:
    onnx.save(counter(states, first), tmp_path / "counter.onnx")
    with pytest.raises(ModelError, match=message):
        load(tmp_path / "counter.onnx")
