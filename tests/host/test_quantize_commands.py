# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Quantising from the command line, a manifest, a build; and the guide, as written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.support.quantizing import FLOAT, GUIDE, digits, snippet, write_calibration
from tinyml.base.errors import ConfigError
from tinyml.quantize import cache
from tinyml.quantize.engine import Quantized, quantize
from tinyml.settings.quantize_request import KEYS, Request
from tinyml.verbs import cli

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
pytest.importorskip("sklearn", reason="the digits data come with scikit-learn")


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_calibration(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither reads results of other runs nor leaves its own."""
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path / "cache")


def test_compile_quantises_once(
    calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The result is kept by content: the second build does not calibrate, new data do."""
    calls = []

    def counted(*arguments: object, **named: object) -> Quantized:
        calls.append(arguments)
        return quantize(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(cache, "quantize", counted)
    data = tmp_path / "calib.npz"
    data.write_bytes(calibration.read_bytes())
    command = [
        "compile",
        str(FLOAT),
        "-o",
        str(tmp_path / "out"),
        "--name",
        "digits",
        "--quantize",
        str(data),
    ]
    command += ["--quantize", "method=minmax", "--depfile", str(tmp_path / "out.d")]
    assert cli.main(command) == 0
    assert "digits: int8:" in capsys.readouterr().out
    first = (tmp_path / "out" / "digits.c").read_text()
    assert "int8 calibrated on calib.npz" in first
    assert str(data) in (tmp_path / "out.d").read_text()
    assert cli.main(command) == 0
    assert len(calls) == 1
    assert (tmp_path / "out" / "digits.c").read_text() == first
    images, _, held_back = digits()
    np.savez(data, image=images[held_back][:50])
    assert cli.main(command) == 0
    assert len(calls) == 2


def test_verb_prints_and_saves(calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, report = tmp_path / "int8.onnx", tmp_path / "report.json"
    arguments = ["--calibration", str(calibration), "-o", str(model), "--report", str(report)]
    assert cli.main(["quantize", str(FLOAT), *arguments, "--method", "minmax", "--io", "int8"]) == 0
    said = capsys.readouterr().out
    assert "accuracy 100.00 % ->" in said
    assert "conv2" in said
    assert json.loads(report.read_text())["method"] == "minmax"
    assert onnx.load(model).graph.input[0].type.tensor_type.elem_type == TensorProto.INT8


@pytest.mark.parametrize(
    "change,message",
    [
        (["--calibration", "nothing.npz"], "there is no calibration data nothing.npz"),
        (["-o", "int8.tflite"], "does not end in .onnx"),
        (["--report", "."], "cannot write .: it is a folder"),
        (["--range", "1"], "is not a range"),
        (["--labels", "nothing.npy"], "there is no label file nothing.npy"),
        (["--keep-float", "conv7"], "there is no layer called 'conv7'"),
        (["--shape", "image=1x3x8x8"], "contradicts the model"),
    ],
)
def test_verb_refuses_in_words(
    change: list[str], message: str, calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    arguments = ["quantize", str(FLOAT), "--calibration", str(calibration), "-o", "int8.onnx", *change]
    assert cli.main(arguments) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.glob("int8*")) == []


def test_add_writes_the_manifest(
    calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tinyml.projects import cmake, manifest

    app = tmp_path / "app"
    (app / "src").mkdir(parents=True)
    (app / "CMakeLists.txt").write_text(
        "find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})\nproject(app)\n"
    )
    monkeypatch.chdir(app)
    options = ["--quantize", str(calibration), "--quantize", "io=int8", "--quantize", "method=minmax"]
    assert cli.main(["add", str(FLOAT), "--name", "digits", *options]) == 0
    assert "int8:" in capsys.readouterr().out
    (entry,) = manifest.load(app / "tinyml.yaml").models
    assert entry.quantize == {"calibration": "models/calib.npz", "io": "int8", "method": "minmax"}
    assert (app / "models" / "calib.npz").read_bytes() == calibration.read_bytes()
    call = cmake.calls(app / "tinyml.yaml")
    assert f"[=[calibration={(app / 'models' / 'calib.npz').as_posix()}]=]" in call


@pytest.mark.parametrize(
    "text,message",
    [
        ("quantize: {io: int8}", "lacks 'calibration'"),
        ("quantize: {calibration: /abs/c.npz}", "absolute path"),
        ("quantize: {calibration: c.npz, methods: x}", "did you mean 'method'"),
        ("quantize: {calibration: c.npz, method: x}", "unknown calibration method 'x'"),
        ("quantize: [c.npz]", "must name calibration data"),
    ],
)
def test_manifest_refuses_in_words(text: str, message: str) -> None:
    from tinyml.projects import manifest

    with pytest.raises(ConfigError) as refusal:
        manifest.parse(f"models:\n  - name: kws\n    file: kws.onnx\n    {text}\n", "tinyml.yaml")
    assert message in str(refusal.value)
    assert "tinyml.yaml:4:5: model 1" in str(refusal.value)


def test_platformio_option(tmp_path: Path) -> None:
    from tinyml.projects.platformio.boards import Board
    from tinyml.projects.platformio.project import read_models

    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.onnx").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "calib.npz").touch()
    options = {"custom_tinyml_quantize": "\ndata/calib.npz\nio=int8"}
    (model,) = read_models(tmp_path, options, Board(), cmsis_nn=False)
    assert model.options.quantize == Request(tmp_path / "data" / "calib.npz", io="int8")
    (plain,) = read_models(tmp_path, {}, Board(), cmsis_nn=False)
    assert plain.key("x") != model.key("x")


# The guide, as written.


def test_guide_works_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "CMakeLists.txt").write_text("find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "model.onnx").write_bytes(FLOAT.read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(snippet("calibration"), {})
    program, *arguments = snippet("quantize").split()
    assert program == "tinyml"
    assert cli.main(arguments) == 0
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    shown = re.search(r"```\n(layer .*?)```", GUIDE, re.DOTALL)
    assert shown
    for line in shown[1].splitlines():  # figures may differ in the last digit on another machine
        words = re.sub(r"[\d.,]+", "#", " ".join(line.split()))
        assert words in [re.sub(r"[\d.,]+", "#", other) for other in said], line
    assert (tmp_path / "model_int8.onnx").is_file()
    assert snippet("add").split()[:2] == ["west", "tinyml"]
    assert cli.main(snippet("add").split()[2:]) == 0
    shown = re.search(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    assert shown
    assert (tmp_path / "tinyml.yaml").read_text().endswith(shown[1])


def test_guide_lists_every_key() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|$", GUIDE, re.MULTILINE))
    assert {key: rows.get(key) for key in KEYS} == KEYS


@pytest.mark.parametrize("content", [None, b"", b"this is no model"], ids=["missing", "empty", "text"])
def test_files_that_are_not_models_are_reported(
    content: bytes | None, calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m.onnx"
    if content is not None:
        model.write_bytes(content)
    options = ["--calibration", str(calibration), "-o", str(tmp_path / "int8.onnx")]
    assert cli.main(["quantize", str(model), *options]) == 1
    said = capsys.readouterr().err
    assert ("there is no model file" if content is None else "is not a model") in said
