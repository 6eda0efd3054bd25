# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml verify`: it reports agreement, and it locates faults where they were injected."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.tflite_case import Q, i8, ints
from tests.support.tflite_writer import Call, Part, write
from tinyml import importers, pipeline
from tinyml.base.errors import ToolError
from tinyml.compare import reference as compare_reference
from tinyml.compare.difference import Tolerance, compare, signal_to_noise_db
from tinyml.compare.reference import LiteRt
from tinyml.datasets.generated_samples import generated
from tinyml.ir import DType, Graph, Layer, Tensor
from tinyml.memory.bands.band_kernel import BandsOfRows
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.framework.kernel import Kernel, Sheet
from tinyml.ops.framework.reading import ONNX_READERS, Builder, OnnxNode
from tinyml.ops.pool.max import MaxPoolLoops
from tinyml.passes import PASSES
from tinyml.verbs.cli import main

SAMPLES = Path(__file__).parents[2] / "samples" / "digits"
DIGITS = str(SAMPLES / "model.onnx")
FLOAT = str(SAMPLES / "model_float.onnx")


@pytest.fixture
def three_layers(tmp_path: Path) -> str:
    """A float model: matmul, relu, matmul."""
    random = np.random.default_rng(1)
    weights = [
        numpy_helper.from_array(random.normal(size=(4, 4)).astype(np.float32), name) for name in ("a", "b")
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"], name="bend"),
        helper.make_node("MatMul", ["r", "b"], ["y"], name="second"),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "three",
        [value("x", TensorProto.FLOAT, [1, 4])],
        [value("y", TensorProto.FLOAT, [1, 4])],
        weights,
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), tmp_path / "three.onnx")
    return str(tmp_path / "three.onnx")


@pytest.mark.parametrize("model", [DIGITS, FLOAT])
def test_agreement(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    assert main(["verify", model]) == 0
    assert "agrees on host with onnxruntime" in capsys.readouterr().out


def test_inputs_of_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "x.npz", image=np.full((1, 1, 8, 8), 0.5, np.float32))
    assert main(["verify", DIGITS, "--input", str(tmp_path / "x.npz"), "--reference", "numpy"]) == 0
    printed = capsys.readouterr().out
    assert "agrees on host with the compiler's own numpy operators" in printed
    assert "sample 1" not in printed


def spoil(monkeypatch: pytest.MonkeyPatch, kernel: type[Kernel[Any]]) -> None:
    """Make a kernel write one wrong element."""
    genuine = kernel.emit

    def spoiled(self: Kernel[Any], layer: Layer, sheet: Sheet) -> None:
        genuine(self, layer, sheet)
        sheet.line(f"{sheet.y()}[3] = 100;")

    monkeypatch.setattr(kernel, "emit", spoiled)


def test_wrong_kernel_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the layer, the element and both values."""
    spoil(monkeypatch, MaxPoolLoops)
    assert main(["verify", DIGITS]) == 3
    printed = capsys.readouterr().out
    assert "MaxPool" in printed
    assert "is the first that differs from numpy on the same inputs" in printed
    assert "at 3: 100 instead of" in printed


def test_a_wrong_layer_among_many_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All tensors do not fit into one model, whose outputs are counted in a byte."""
    pytest.importorskip("onnxruntime")
    outputs = [f"y{i}" for i in range(240)]
    nodes = [helper.make_node("Sin", ["x"], ["t0"])]
    nodes += [helper.make_node("Sin", [f"t{i}"], [f"t{i + 1}"]) for i in range(30)]
    nodes.append(helper.make_node("MaxPool", ["t30"], ["p"], kernel_shape=[2, 2], name="pool"))
    nodes.append(helper.make_node("Split", ["p"], outputs, axis=1, num_outputs=len(outputs)))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "many",
        [value("x", TensorProto.FLOAT, [1, 240, 2, 2])],
        [value(name, TensorProto.FLOAT, [1, 1, 1, 1]) for name in outputs],
    )
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), tmp_path / "many.onnx")
    spoil(monkeypatch, MaxPoolLoops)
    assert main(["verify", str(tmp_path / "many.onnx"), "--samples", "1"]) == 3
    assert "MaxPool 'pool'" in capsys.readouterr().out


@pytest.fixture
def wide_inside(tmp_path: Path) -> str:
    """A float model whose first layer widens and whose second one pools: computed in bands of rows."""
    random = np.random.default_rng(1)
    weights = numpy_helper.from_array(random.normal(size=(16, 1, 3, 3)).astype(np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"], name="widen", pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["h"], ["y"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1, 32, 8))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 16, 16, 4))
    path = tmp_path / "wide.onnx"
    graph = helper.make_graph(nodes, "wide", [x], [y], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


def test_wrong_kernel_in_a_band_is_named(
    wide_inside: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Layers that are computed together are looked at one by one."""
    compiled = pipeline.compile_model(Path(wide_inside), pipeline.Options(target="host"))
    assert [chosen.kernel.name for chosen in compiled.selected if "band" in chosen.kernel.name]
    assert main(["verify", wide_inside]) == 0
    spoil(monkeypatch, MaxPoolLoops)
    assert main(["verify", wide_inside]) == 3
    assert "MaxPool 'pool' computed by max-pool loops, is the first that differs" in capsys.readouterr().out


def test_wrong_bands_are_named(
    wide_inside: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every layer is correct alone, but not all of them together."""
    spoil(monkeypatch, BandsOfRows)
    assert main(["verify", wide_inside]) == 3
    assert "Banded 'pool' computed by bands of rows, is the first that differs" in capsys.readouterr().out


def test_wrong_pass_is_named(
    three_layers: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoil(graph: Graph) -> Graph:
        tensor = next(t for t in graph.tensors.values() if t.is_constant)
        return replace(
            graph,
            tensors={
                **graph.tensors,
                tensor.name: Tensor.constant(tensor.name, tensor.value + 1, tensor.quant),
            },
        )

    monkeypatch.setattr(pipeline, "PASSES", (*PASSES[:1], spoil, *PASSES[1:]))
    assert main(["verify", three_layers]) == 3
    printed = capsys.readouterr().out
    assert "every layer of the C computes what its operator does in numpy" in printed
    assert "after the pass spoil differs in output 'y'" in printed


def test_wrong_reader_is_named(
    three_layers: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def misread(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
        return [build.add1(Clamp(0.0, 0.01), [node.input(0)])]

    monkeypatch.setitem(ONNX_READERS, ("", "Relu"), misread)
    assert main(["verify", three_layers]) == 3
    printed = capsys.readouterr().out
    assert "the graph as it was imported differs" in printed
    assert "Clamp 'bend' is the first node that differs" in printed


def test_a_model_that_is_quantised_on_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reference runs what the float model becomes, so that they agree to the step."""
    pytest.importorskip("onnxruntime")
    images = np.random.default_rng(3).uniform(0, 1, (20, 1, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "calibration.npz", image=images)
    assert main(["verify", FLOAT, "--quantize", str(tmp_path / "calibration.npz")]) == 0
    assert "agrees on host with onnxruntime" in capsys.readouterr().out


def test_half_precision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The C computes float16 in float32, and so does the reference."""
    value = helper.make_tensor_value_info
    weights = numpy_helper.from_array(np.linspace(-1, 1, 12).reshape(4, 3).astype(np.float16), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Sigmoid", ["a"], ["y"])],
        "half",
        [value("x", TensorProto.FLOAT16, [1, 4])],
        [value("y", TensorProto.FLOAT16, [1, 3])],
        [weights],
    )
    path = tmp_path / "half.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    assert main(["verify", str(path)]) == 0
    assert "agrees on host with onnxruntime" in capsys.readouterr().out


def test_a_model_that_onnx_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """TopK has two outputs; the compiler needs only the one that is used."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("TopK", ["x", "k"], ["y"])],
        "top",
        [value("x", TensorProto.FLOAT, [1, 4])],
        [value("y", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(np.array([2]), "k")],
    )
    path = tmp_path / "top.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    assert main(["verify", str(path)]) == 1
    assert "error: ONNX's shape inference refuses this model: " in capsys.readouterr().err


def test_against_another_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", DIGITS, "--against", FLOAT]) == 0
    assert main(["verify", DIGITS, "--against", FLOAT, "--snr", "90"]) == 3
    assert "dB" in capsys.readouterr().out


def test_against_a_model_of_another_kind(three_layers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", DIGITS, "--against", three_layers]) == 1
    assert "three.onnx takes" in capsys.readouterr().err


def test_tolerances_of_the_user() -> None:
    assert main(["verify", FLOAT, "--tolerance", "1e-12"]) == 3
    assert main(["verify", FLOAT, "--tolerance", "1e-3", "--samples", "1"]) == 0


def test_reference_must_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", DIGITS, "--reference", "litert"]) == 1
    assert "litert does not read model.onnx" in capsys.readouterr().err


def test_generated_inputs_are_repeatable_and_in_range() -> None:
    compiled = pipeline.compile_model(Path(DIGITS), pipeline.Options(target="host"))
    first, second = generated(compiled.graph, 4), generated(compiled.graph, 4)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a["image"], b["image"])
    lowest, highest = (f(sample["image"].min() for sample in first) for f in (min, max))
    assert 0 <= lowest < highest <= 1.01  # the model quantises images from 0 to 1


def test_generated_inputs_without_axes_are_arrays() -> None:
    """onnxruntime does not take numpy's numbers."""
    tensors = {kind: Tensor(kind.value, (), kind) for kind in (DType.INT64, DType.FLOAT32, DType.BOOL)}
    names = tuple(tensor.name for tensor in tensors.values())
    graph = Graph("g", {tensor.name: tensor for tensor in tensors.values()}, (), names, names)
    for sample in generated(graph, 4):
        for kind, tensor in tensors.items():
            assert isinstance(sample[tensor.name], np.ndarray)
            assert (sample[tensor.name].shape, sample[tensor.name].dtype) == ((), kind.numpy)


@pytest.mark.parametrize(
    "found,wanted,step,fine,distance",
    [
        (np.array([1, 2], np.int8), np.array([1, 3], np.int8), None, True, 1),
        (np.array([1, 2], np.int8), np.array([1, 4], np.int8), None, False, 2),
        (np.array([0.5, 1.0], np.float32), np.array([0.5, 1.5], np.float32), 0.5, True, 1),
        (np.array([10, 1.0], np.float32), np.array([10, 1.0001], np.float32), None, True, 1e-5),
        (np.array([np.nan], np.float32), np.array([np.nan], np.float32), None, True, 0),
        (np.array([np.nan], np.float32), np.array([1], np.float32), None, False, np.inf),
        (np.array([1.0], np.float32), np.array([1.0, 2.0], np.float32), None, False, np.inf),
    ],
)
def test_distance(
    found: np.ndarray, wanted: np.ndarray, step: float | None, fine: bool, distance: float
) -> None:
    difference = compare(found, wanted, step, Tolerance(1, 2e-5))
    assert difference.fine == fine
    assert difference.distance == pytest.approx(distance, rel=1e-2)


def test_signal_to_noise() -> None:
    assert signal_to_noise_db(np.array([1.0]), np.array([1.0])) == np.inf
    assert signal_to_noise_db(np.array([1.1]), np.array([1.0])) == pytest.approx(20)


@pytest.mark.parametrize("name", ["mlperf_kws_int8", "mww_hey_jarvis_v2_int8", "har_ashwin_int8"])
def test_tflite_against_litert(models_folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Google's own interpreter as the reference, state included."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    assert main(["verify", str(models_folder / f"{name}.tflite"), "--reference", "litert"]) == 0
    assert "agrees on host with ai-edge-litert" in capsys.readouterr().out


def test_sums_of_integers_are_not_blamed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LiteRT's reference kernel of SUM is wrong by up to the whole range."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    values = [i8("x", (1, 4, 6), Q(0.05, -10)), ints("axes", 2), i8("y", (1, 4), Q(0.31, 5))]
    call = Call("SUM", ["x", "axes"], ["y"], "ReducerOptions", {"KeepDims": False})
    path = tmp_path / "sum.tflite"
    path.write_bytes(write(Part(values, [call], ["x"], ["y"])))
    assert main(["verify", str(path)]) == 0
    assert "16 of 16 values equal" in capsys.readouterr().out


def test_handles_of_variables_are_not_read(models_folder: Path) -> None:
    """LiteRT reads them as strings and follows invalid pointers, which can crash."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    path = models_folder / "mww_hey_jarvis_v2_int8.tflite"
    graph = importers.load(path)
    (answer,) = LiteRt(importers.read_model(path), graph).run(generated(graph, 1))
    assert "model/stream/concat" in answer.inner
    assert not [name for name in answer.inner if name.endswith("/states")]


def test_tflite_without_litert(
    models_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The compiler's own operators are then the reference, and the output says so."""
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    model = str(models_folder / "mlperf_kws_int8.tflite")
    assert main(["verify", model, "--samples", "1"]) == 0
    printed = capsys.readouterr().out
    assert "with the compiler's own numpy operators" in printed
    assert "note: ai-edge-litert is not installed; pip install ai-edge-litert gives" in printed
    assert main(["verify", model, "--reference", "litert"]) == 1
    assert "pip install ai-edge-litert" in capsys.readouterr().err


@pytest.mark.parametrize("installed", [True, False])
def test_a_reference_that_cannot_be_imported(installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken installation is not called a missing one."""

    def broken(*_: object) -> None:
        raise ImportError("libfoo.so.1: cannot open shared object file")

    monkeypatch.setattr(compare_reference, "OnnxRuntime", broken)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if installed else None)
    file = pipeline.read_model(Path(DIGITS))
    found = compare_reference.find_reference(file, pipeline.read_graph(file), "auto")
    why = "is installed, but cannot be imported: libfoo" if installed else "is not installed; pip install"
    assert f"onnxruntime {why}" in found.hint
    with pytest.raises(ToolError, match="cannot be imported" if installed else "not installed"):
        compare_reference.find_reference(file, pipeline.read_graph(file), "onnxruntime")
