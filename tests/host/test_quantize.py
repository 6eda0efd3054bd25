# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""From float to int8: the result is int8 and close to float, and the report says how close."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.quantizing import FLOAT, SAMPLE, digits, kinds, run_host, saved, write_calibration
from tinyml.base import late
from tinyml.base.errors import ConfigError
from tinyml.ir import DType
from tinyml.pipeline import Options, compile_model
from tinyml.quantize.engine import Quantized, quantize
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import Goal, Request

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
pytest.importorskip("sklearn", reason="the digits data come with scikit-learn")


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_calibration(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def quantized(calibration: Path) -> Quantized:
    return quantize(FLOAT, Request(calibration))


def test_digits_lose_less_than_half_a_point(quantized: Quantized, tmp_path: Path) -> None:
    """As compiled C on images that were used neither to train nor to calibrate."""
    images, labels, held_back = digits()
    accuracy = []
    for model in (FLOAT, saved(quantized, tmp_path)):
        found = run_host(compile_model(model, Options("digits", "host")), images[held_back])
        accuracy.append(100 * float(np.mean(found.argmax(axis=1) == labels[held_back])))
    assert accuracy[0] > 97
    assert accuracy[0] - accuracy[1] <= 0.5


def test_every_layer_of_digits_is_int8(quantized: Quantized, tmp_path: Path) -> None:
    compiled = compile_model(saved(quantized, tmp_path), Options("digits", "cortex-m3"))
    found = kinds(compiled)
    assert found[0] == ("Quantize", "int8")
    assert found[-1] == ("Dequantize", "float32")
    assert {dtype for _, dtype in found[:-1]} == {"int8"}
    assert [kind for kind, _ in found if kind in ("Conv", "Dense")] == ["Conv", "Conv", "Dense"]
    assert all(layer.kind == "int8" for layer in quantized.report.layers)


def test_scheme_is_what_cmsis_nn_runs(quantized: Quantized, tmp_path: Path) -> None:
    """Weights int8 per channel around zero, biases int32, activations with a zero point."""
    compiled = compile_model(saved(quantized, tmp_path), Options("digits", "cortex-m3"))
    for layer in compiled.graph.layers():
        if layer.op.kind not in ("Conv", "Dense"):
            continue
        weights, bias = layer.input(1), layer.input(2)
        assert weights.quant is not None
        assert weights.dtype is DType.INT8
        assert len(weights.quant.scales) == weights.shape[0]
        assert set(weights.quant.zero_points) == {0}
        assert bias.dtype is DType.INT32
        assert layer.output.quant is not None
        assert not layer.output.quant.per_channel


def test_report_measures_what_it_says(quantized: Quantized) -> None:
    """The end-to-end figure again, computed here from the two models' answers."""
    images, _, held_back = digits()
    seen = images[~held_back][:200]
    answers = []
    for model in (FLOAT, quantized.model):
        session = Session(model)
        answers.append(np.concatenate([session.run({"image": i[np.newaxis]})["logits"] for i in seen]))
    noise = np.square(answers[1].astype(np.float64) - answers[0]).sum()
    moved = np.square(answers[0].astype(np.float64) - answers[0].mean(axis=0, dtype=np.float64)).sum()
    decibels = 10 * np.log10(moved * len(seen) / (len(seen) - 1) / noise)
    report = quantized.report
    assert report.decibels == pytest.approx(decibels, abs=1e-3)
    assert report.decibels > 35
    assert report.samples == 200
    assert report.accuracy_float == 1.0  # these were trained on
    assert report.agreement == np.mean(answers[0].argmax(axis=1) == answers[1].argmax(axis=1))
    assert report.methods[report.method] == max(report.methods.values())
    assert set(report.methods) == {"minmax", "entropy", "percentile"}
    assert report.int8_bytes < report.float_bytes / 3


def test_report_survives_json(quantized: Quantized) -> None:
    from tinyml.quantize.report import Report

    again = Report.from_json(json.loads(json.dumps(quantized.report.as_json())))
    assert again.as_json() == quantized.report.as_json()
    assert again.headline() == quantized.report.headline()


def test_int8_interface_computes_the_same(quantized: Quantized, calibration: Path, tmp_path: Path) -> None:
    images, _, held_back = digits()
    inner = quantize(FLOAT, Request(calibration, method=quantized.report.method, io="int8"))
    compiled = compile_model(saved(inner, tmp_path), Options("digits", "host"))
    x, y = (compiled.graph.tensors[names[0]] for names in (compiled.graph.inputs, compiled.graph.outputs))
    assert (x.dtype, y.dtype) == (DType.INT8, DType.INT8)
    assert x.quant is not None
    assert y.quant is not None
    stored = np.clip(
        np.rint(images[held_back][:16] / np.float32(x.quant.scale)) + x.quant.zero_point, -128, 127
    )
    found = run_host(compiled, stored.astype(np.int8)).astype(np.float32)
    real = (found - y.quant.zero_point) * np.float32(y.quant.scale)
    float_io = compile_model(saved(quantized, tmp_path), Options("digits", "host"))
    np.testing.assert_allclose(real, run_host(float_io, images[held_back][:16]), atol=1e-5)


def test_kept_layers_stay_float_with_their_activation(calibration: Path, tmp_path: Path) -> None:
    result = quantize(FLOAT, Request(calibration, method="minmax", keep_float=("conv1",)))
    assert result.report.kept_float == ("conv1",)
    compiled = compile_model(saved(result, tmp_path), Options("digits", "host"))
    convolutions = [layer for layer in compiled.graph.layers() if layer.op.kind == "Conv"]
    assert [layer.output.dtype for layer in convolutions] == [DType.FLOAT32, DType.INT8]
    images, labels, held_back = digits()
    found = run_host(compiled, images[held_back][:100]).argmax(axis=1)
    assert np.mean(found == labels[held_back][:100]) > 0.95


def test_unknown_layer_is_refused_with_a_suggestion(calibration: Path) -> None:
    with pytest.raises(ConfigError, match=r"no layer called 'conv9'.*\n.*did you mean conv"):
        quantize(FLOAT, Request(calibration, method="minmax", keep_float=("conv9",)))


def test_auto_keeps_just_enough(calibration: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A goal above what int8 gives costs layers; each of them is needed, unless more of them are cheaper."""
    monkeypatch.setattr(late, "instructions", lambda model, core: None)  # nothing is known about costs
    plain = quantize(FLOAT, Request(calibration, method="minmax", samples=64))
    goal = Goal(decibels=plain.report.decibels + 2)
    request = Request(calibration, method="minmax", samples=64, auto=goal)
    result = quantize(FLOAT, request)
    floats, wide = result.report.kept_float, result.report.int16
    assert result.report.decibels >= plain.report.decibels + 2
    assert 0 < len(floats) + len(wide) < len(result.report.layers)
    for name in (*floats, *wide):
        fewer = replace(
            request,
            auto=None,
            keep_float=tuple(other for other in floats if other != name),
            int16=tuple(other for other in wide if other != name),
        )
        assert quantize(FLOAT, fewer).report.decibels < plain.report.decibels + 2


def test_auto_keeps_nothing_where_int8_is_good_enough(calibration: Path) -> None:
    result = quantize(FLOAT, Request(calibration, method="minmax", samples=64, auto=Goal(points=0.5)))
    assert result.report.kept_float == ()


def test_models_that_are_int8_already_are_refused(calibration: Path) -> None:
    with pytest.raises(ConfigError, match="is quantised already"):
        quantize(SAMPLE / "model.onnx", Request(calibration))


def test_wrong_labels_are_doubted(tmp_path: Path) -> None:
    images, labels, held_back = digits()
    np.savez(tmp_path / "c.npz", image=images[~held_back][:32], labels=9 - labels[~held_back][:32])
    report = quantize(FLOAT, Request(tmp_path / "c.npz", method="minmax")).report
    assert "the float model itself is correct on only" in "\n".join(report.advice())
