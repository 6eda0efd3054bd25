# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`quantize --weights float16`: a float model whose weights take half the bytes, and what that costs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

from tests.support import loop_models
from tests.support.onnx_models import model, node
from tests.support.quantizing import FLOAT, digits, run_host, saved, write_calibration
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.base.errors import ConfigError
from tinyml.ir import Array
from tinyml.pipeline import Options, compile_model
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.report import Report
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import NO_DATA, Goal, Request, from_settings, settings
from tinyml.verbs.cli import main

RNG = np.random.default_rng(2)


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> Request:
    return Request(write_calibration(tmp_path_factory.mktemp("data")), weights="float16", samples=100)


@pytest.fixture(scope="module")
def halved(request_: Request) -> Quantized:
    return quantize(FLOAT, request_)


def stored(found: onnx.ModelProto) -> dict[str, Array]:
    """The float16 initialisers."""
    tensors = (t for t in found.graph.initializer if t.data_type == TensorProto.FLOAT16)
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}


def halved_model(tmp_path: Path, content: bytes, width: int = 8, **choices: object) -> Quantized:
    (tmp_path / "m.onnx").write_bytes(content)
    np.savez(tmp_path / "c.npz", x=RNG.normal(0, 1, (20, 1, width)).astype(np.float32))
    request = Request(tmp_path / "c.npz", weights="float16", **choices)  # type: ignore[arg-type]
    return quantize(tmp_path / "m.onnx", request)


def weights(*shape: int) -> Array:
    return RNG.normal(0, 0.3, shape).astype(np.float32)


def test_weights_are_float16_and_nothing_else_changes(halved: Quantized) -> None:
    onnx.checker.check_model(halved.model, full_check=True)
    assert len(stored(halved.model)) == 3
    operators = [n.op_type for n in halved.model.graph.node]
    assert operators[:3] == ["Cast"] * 3
    assert not {"Cast", "QuantizeLinear", "DequantizeLinear"} & {*operators[3:]}
    count = sum(values.size for values in stored(halved.model).values())
    assert halved.report.float_bytes - halved.report.int8_bytes == 2 * count


def test_the_report_states_the_loss(halved: Quantized) -> None:
    report = halved.report
    assert 60 < report.decibels < 120
    assert report.agreement == 1.0
    kinds = {layer.name: layer.kind for layer in report.layers}
    assert [kinds[name] for name in ("conv1", "conv2", "dense")] == ["float16 weights"] * 3
    assert kinds["pool"] == "float"
    assert not report.advice()
    assert Report.from_json(report.as_json()) == report


def test_onnxruntime_and_the_compiled_model_agree(halved: Quantized, tmp_path: Path) -> None:
    compiled = compile_model(saved(halved, tmp_path), Options("digits", "host", bands=False))
    kernels = [one.kernel for one in compiled.selected if one.layer.op.macs(one.layer) > 0]
    assert len(kernels) == 3
    assert all(kernel.weights_are_float16 for kernel in kernels)
    images, _, held_back = digits()
    rows = images[held_back][:12]
    found = run_host(compiled, rows)
    expected = np.concatenate([Session(halved.model).run({"image": row[None]})["logits"] for row in rows])
    np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-4, atol=1e-4)


def test_a_build_does_it_too(request_: Request) -> None:
    compiled = compile_model(FLOAT, Options("digits", "host", quantize=request_, bands=False))
    assert sum(one.kernel.weights_are_float16 for one in compiled.selected) == 3
    assert "float16 weights, compared on calib.npz" in compiled.files["digits.c"]


def test_the_same_file_again(halved: Quantized, request_: Request) -> None:
    again = quantize(FLOAT, request_).model
    assert again.SerializeToString(deterministic=True) == halved.model.SerializeToString(deterministic=True)


TINY = np.full((8, 8), 1e-9, np.float32)


def test_advice_is_for_models_that_stay_float(tmp_path: Path) -> None:
    """`--auto` is for integers."""
    content = model([node("MatMul", "x a", "p"), node("Add", "p b", "y")], {"x": (1, 8)}, "y",
                    a=weights(8, 8) * 1e-4, b=weights(8))  # fmt: skip
    report = replace(halved_model(tmp_path, content).report, decisions={"y": 0.5}, outputs={"y": 9.0})
    assert len(report.advice()) == 2
    assert all("--keep-float" in line and "--auto" not in line for line in report.advice())


def test_layers_that_keep_float32_say_why(tmp_path: Path) -> None:
    """A weight out of range, a layer that the user names, weights that are computed."""
    nodes = [
        node("MatMul", "x a", "large"),
        node("MatMul", "x b", "named"),
        node("MatMul", "x c", "small"),
        node("MatMul", "x d", "tiny"),
        node("Sum", "large named small tiny", "s"),
        node("Transpose", "s", "t"),
        node("MatMul", "s t", "y"),
    ]
    large = weights(8, 8)
    large[3, 3] = 7e4
    content = model(nodes, {"x": (1, 8)}, "y", a=large, b=weights(8, 8), c=weights(8, 8), d=TINY)
    result = halved_model(tmp_path, content, keep_float=("named",))
    found = {layer.name: (layer.kind, layer.why) for layer in result.report.layers}
    assert found["small"] == ("float16 weights", "")
    assert found["large"] == ("float", "it has a weight of 7e+04, and float16 ends at 65504")
    assert found["tiny"] == ("float", "its weights are so small that float16 rounds them by 100 %")
    assert found["named"] == ("float", "--keep-float names it")
    assert found["y"] == ("float", "its weights are not constants")
    (only,) = stored(result.model).values()
    assert only.shape == (8, 8)


def test_shared_weights_are_stored_once(tmp_path: Path) -> None:
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h w", "y")]
    result = halved_model(tmp_path, model(nodes, {"x": (1, 8)}, "y", w=weights(8, 8)))
    assert len(stored(result.model)) == 1
    assert [n.op_type for n in result.model.graph.node] == ["Cast", "MatMul", "MatMul"]
    assert len(result.model.graph.initializer) == 1


def test_weights_that_another_operator_reads_stay_beside(tmp_path: Path) -> None:
    nodes = [node("MatMul", "x w", "h"), node("Add", "h w", "y")]
    result = halved_model(tmp_path, model(nodes, {"x": (1, 8)}, "y", w=weights(8, 8)))
    types = sorted(tensor.data_type for tensor in result.model.graph.initializer)
    assert types == [TensorProto.FLOAT, TensorProto.FLOAT16]


def test_float_tflite_models(tmp_path: Path) -> None:
    values = [
        Value("x", (1, 8)),
        Value.constant("w", weights(40, 8)),
        Value("y", (1, 40)),
    ]
    calls = [Call("FULLY_CONNECTED", ["x", "w", ""], ["y"], "FullyConnectedOptions")]
    (tmp_path / "m.tflite").write_bytes(write(Part(values, calls, ["x"], ["y"])))
    np.savez(tmp_path / "c.npz", x=RNG.normal(0, 1, (20, 1, 8)).astype(np.float32))
    result = quantize(tmp_path / "m.tflite", Request(tmp_path / "c.npz", weights="float16"))
    assert [values.shape for values in stored(result.model).values()] == [(40, 8)]


def test_a_model_without_such_layers_stays_as_it_is(tmp_path: Path) -> None:
    content = model([node("Relu", "x", "y")], {"x": (1, 8)}, "y")
    result = halved_model(tmp_path, content)
    assert not stored(result.model)
    assert "no layer has float16 weights: the model stays as it is" in result.report.warnings


@pytest.mark.parametrize(
    "choices, word",
    [({"io": "int8"}, "io int8"), ({"int16": ("conv1",)}, "int16"), ({"auto": Goal(points=1)}, "auto")],
)
def test_choices_about_integers_have_no_meaning(
    request_: Request, choices: dict[str, object], word: str
) -> None:
    with pytest.raises(ConfigError, match=f"computes in float, so {word} has no meaning"):
        replace(request_, **choices)  # type: ignore[arg-type]


def test_data_is_not_required(halved: Quantized, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is the same; the report has no figures, and says why."""
    written, report = tmp_path / "f16.onnx", tmp_path / "r.json"
    words = ["quantize", str(FLOAT), "-o", str(written), "--report", str(report), "--weights"]
    assert main([*words, "float16"]) == 0
    said = capsys.readouterr().out
    assert "result: the loss is not known: there was no data" in said
    assert " dB" not in said
    assert "warning" not in said
    assert stored(onnx.load(written)).keys() == stored(halved.model).keys()
    found = Report.from_json(json.loads(report.read_text()))
    assert found.samples == 0
    assert {layer.name: layer.kind for layer in found.layers} == {
        layer.name: layer.kind for layer in halved.report.layers
    }
    with pytest.raises(SystemExit):
        main([*words, "int8"])
    assert "required: --calibration" in capsys.readouterr().err


def test_loops_do_not_require_data_either(tmp_path: Path) -> None:
    found = quantize(loop_models.file(loop_models.gated_scan(70)), Request(NO_DATA, weights="float16"))
    (loop,) = (layer for layer in found.report.layers if layer.op_type == "Scan")
    assert loop.kind == "float16 weights"
    assert all(layer.decibels is None for layer in found.report.layers)


def test_in_tinyml_yaml_too(tmp_path: Path) -> None:
    given = from_settings(settings({"weights": "float16"}, "here"), tmp_path)
    assert not given.measures
    assert given.files == []
    assert given.describe() == "float16 weights"
    given.check_files()
    for more in ({"weights": "int8"}, {}):
        with pytest.raises(ConfigError, match="lacks 'calibration'"):
            settings(more, "here")
    with pytest.raises(ConfigError, match="labels has no meaning"):
        from_settings(settings({"weights": "float16", "labels": "l.npy"}, "here"), tmp_path)
