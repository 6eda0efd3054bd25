# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`io: int8`: a quantised model with a float interface takes and gives integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tinyml
from tests.support.quantizing import FLOAT, digits, write_calibration
from tinyml import harness
from tinyml.base.errors import ConfigError
from tinyml.compare import check
from tinyml.compare.reference import Answer
from tinyml.datasets.arrays import quantized, real
from tinyml.datasets.generated_samples import generated
from tinyml.pipeline import Options, compile_model
from tinyml.projects import cmake, edit, manifest
from tinyml.settings.quantize_request import Request
from tinyml.verbs import cli


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_calibration(tmp_path_factory.mktemp("data"))


def options(calibration: Path, io: str, target: str = "host") -> Options:
    return Options("model", target, quantize=Request(calibration), io=io)


def test_the_integers_are_those_inside_the_model(calibration: Path) -> None:
    """The same model with a float interface quantises the same inputs and gives the same reals."""
    before, after = (compile_model(FLOAT, options(calibration, io)) for io in ("arena", "int8"))
    assert [t["dtype"] for t in before.summary["inputs"]] == ["float32"]
    ports = [*after.summary["inputs"], *after.summary["outputs"]]
    assert [t["dtype"] for t in ports] == ["int8", "int8"]
    assert [t["name"] for t in ports] == [before.graph.inputs[0], before.graph.outputs[0]]
    assert "_INPUT_SCALE" in after.files["model.h"]
    assert len(after.selected) == len(before.selected) - 2
    x, y = (after.graph.tensors[name] for name in (after.graph.inputs[0], after.graph.outputs[0]))
    images = digits()[0][:4]
    floats = [{x.name: image.reshape(x.shape)} for image in images]
    integers = [{x.name: quantized(sample[x.name], x)} for sample in floats]
    ours = harness.run_files(after.files, "host", integers).outputs
    theirs = harness.run_files(before.files, "host", floats).outputs
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(real(found[y.name], y), expected[y.name], rtol=1e-6)


def test_in_the_callers_memory_too(calibration: Path) -> None:
    found = compile_model(FLOAT, options(calibration, "caller,int8"))
    assert found.summary["inputs"][0]["dtype"] == "int8"
    assert "io caller,int8" in found.files["model.c"]


def test_verify_compares_with_the_floats_of_the_reference(calibration: Path) -> None:
    model = check.subject(FLOAT, options(calibration, "int8"))
    samples = generated(model.compiled.graph, 2)
    verdict = check.check(model, harness.Standalone("host"), samples)
    assert verdict.fine
    assert verdict.values == 20


def test_verify_and_evaluate_take_floats(calibration: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = [str(FLOAT), "--quantize", str(calibration), "--io", "int8", "--on", "host"]
    assert cli.main(["verify", *told, "--input", str(calibration)]) == 0
    assert cli.main(["evaluate", *told, "--data", str(calibration), "--labels", "labels"]) == 0
    assert "accuracy" in capsys.readouterr().out


def test_a_wrong_layer_is_still_found(calibration: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for the cause runs earlier stages of the graph, whose interface is float."""
    model = check.subject(FLOAT, options(calibration, "int8"))
    samples = generated(model.compiled.graph, 1)
    answer = check._as_compiled
    monkeypatch.setattr(
        check,
        "_as_compiled",
        lambda found, graph: Answer([value ^ 64 for value in answer(found, graph).outputs], found.inner),
    )
    verdict = check.check(model, harness.Standalone("host"), samples)
    assert not verdict.fine
    assert verdict.causes[1].startswith("the graph as it was imported differs in output")


def test_a_model_without_quantised_ports_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no input or output can become int8: image \(float32\)"):
        tinyml.compile(FLOAT, io="int8")


def test_the_manifest(tmp_path: Path) -> None:
    (entry,) = manifest.parse("models: [{name: a, file: a.onnx, io: int8}]", "x").models
    assert str(entry.io) == "int8"
    assert manifest.parse(edit.add_model("", entry), "x").models == (entry,)
    path = tmp_path / "tinyml.yaml"
    path.write_text("models: [{name: a, file: a.onnx, io: int8}]")
    assert "[=[IO]=] [=[int8]=]" in cmake.calls(path)
    with pytest.raises(ConfigError, match="'io' cannot be 'int4'"):
        manifest.parse("models: [{name: a, file: a.onnx, io: int4}]", "x")
