# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The Python API: every kind of model goes in, and the results are those of the command line."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tinyml
from tests.support.quantizing import FLOAT, digits, write_calibration
from tinyml.verbs import cli

INT8 = FLOAT.parent / "model.onnx"


def child(code: str) -> str:
    """The output of a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_everything_exported_exists_and_is_documented() -> None:
    for name in tinyml.__all__:
        assert name == "__version__" or getattr(tinyml, name).__doc__, name
    assert set(tinyml.__all__) <= set(dir(tinyml))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tinyml.nothing  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    loaded = child("import sys, tinyml; print([m for m in ('numpy', 'onnx', 'rich') if m in sys.modules])")
    assert loaded == "[]\n"


def test_functions_survive_the_import_of_subpackages_with_their_names() -> None:
    code = "import tinyml, tinyml.settings.quantize_request; print(callable(tinyml.quantize))"
    assert child(code) == "True\n"
    assert (
        child("from tinyml.settings.quantize_request import KEYS; from tinyml import *; quantize.__call__")
        == ""
    )


@pytest.mark.parametrize("form", ["path", "text", "bytes", "proto"])
def test_every_form_of_a_model_gives_the_same_code(form: str) -> None:
    sources: dict[str, Any] = {
        "path": INT8,
        "text": str(INT8),
        "bytes": INT8.read_bytes(),
        "proto": onnx.load(INT8),
    }
    model = tinyml.load(sources[form], name="digits")
    assert [str(port) for port in (*model.inputs, *model.outputs)] == [
        "image: 1x1x8x8 float32",
        "logits: 1x10 float32",
    ]
    compiled = tinyml.compile(model, target="cortex-m4")
    wanted = tinyml.compile(INT8, name="digits", target="cortex-m4")
    assert compiled.files["digits_weights.h"] == wanted.files["digits_weights.h"]
    assert (compiled.arena_bytes, compiled.weights_bytes) == (wanted.arena_bytes, wanted.weights_bytes)


def test_compile_writes_what_the_command_writes(tmp_path: Path) -> None:
    compiled = tinyml.compile(INT8, name="digits", target="cortex-m4")
    compiled.write(tmp_path / "api", report=True)
    words = ["compile", str(INT8), "--name", "digits", "--target", "cortex-m4", "--report"]
    assert cli.main([*words, "-o", str(tmp_path / "command")]) == 0
    ours, theirs = (
        {path.name: path.read_text() for path in (tmp_path / folder).iterdir()}
        for folder in ("api", "command")
    )
    assert ours == theirs
    assert json.loads(ours["digits.json"])["arena_bytes"] == compiled.arena_bytes
    assert compiled.macs == compiled.report().macs > 0


def test_results_are_frozen_and_show_pictures() -> None:
    compiled = tinyml.compile(INT8, name="digits")
    with pytest.raises(dataclasses.FrozenInstanceError):
        compiled.model = compiled.model  # type: ignore[misc]
    assert "arena_bytes=" in repr(compiled)
    shown = compiled._repr_html_()
    assert "Memory plan" in shown
    assert shown.startswith("<iframe")
    assert "logits: 1x10 float32" in tinyml.load(INT8)._repr_html_()


def test_run_takes_one_row_or_many() -> None:
    images, labels, held_back = digits()
    images, labels = images[held_back][:50], labels[held_back][:50]
    compiled = tinyml.compile(INT8, target="host")
    result = tinyml.run(compiled, images)
    assert result["logits"].shape == (50, 10)
    assert (result["logits"].argmax(axis=1) == labels).mean() > 0.9
    one = tinyml.run(compiled, {"image": images[:1]})
    assert np.array_equal(one["logits"], result["logits"][:1])
    assert one.instructions is None
    assert "logits" in one._repr_html_()
    assert tinyml.run(compiled)["logits"].shape == (1, 10)


def test_quantize(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
    images, labels, held_back = digits()
    images, labels = images[~held_back][:200], labels[~held_back][:200]
    quantized = tinyml.quantize(FLOAT, images, labels=labels, method="minmax")
    assert quantized.report.accuracy_int8 is not None
    assert quantized.report.accuracy_int8 > 0.95
    assert "conv1" in quantized._repr_html_()
    words = ["quantize", str(FLOAT), "--calibration", str(write_calibration(tmp_path)), "--method", "minmax"]
    assert cli.main([*words, "-o", str(tmp_path / "int8.onnx")]) == 0
    quantized.save(tmp_path / "api.onnx")
    assert (tmp_path / "api.onnx").read_bytes() == (tmp_path / "int8.onnx").read_bytes()
    assert tinyml.compile(quantized).weights_bytes < tinyml.compile(FLOAT).weights_bytes
    assert tinyml.compile(FLOAT, calibration=images).quantization is not None


def test_quantised_inputs_take_real_numbers_and_stored_integers(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
    images, _, held_back = digits()
    model = tinyml.quantize(FLOAT, images[~held_back][:50], method="minmax", io="int8")
    compiled = tinyml.compile(model, target="host")
    (port,) = compiled.summary["inputs"]
    stored = np.rint(images[:8] / np.float32(port["scale"])) + port["zero_point"]
    stored = stored.clip(-128, 127).astype(np.int8)
    (output,) = (port.name for port in compiled.outputs)
    assert np.array_equal(tinyml.run(compiled, images[:8])[output], tinyml.run(compiled, stored)[output])


@pytest.mark.parametrize(
    "call,error,message",
    [
        (lambda: tinyml.load("nothing.onnx"), tinyml.ModelError, "there is no model file nothing.onnx"),
        (lambda: tinyml.load(b"nonsense"), tinyml.ModelError, r"^model \(in memory\) is not a model"),
        (
            lambda: tinyml.quantize(FLOAT, np.zeros((3, 4), np.float32)),
            tinyml.ConfigError,
            "^calibration: the data for 'image' has shape 3x4",
        ),
        (lambda: tinyml.run(FLOAT, "no.npz"), tinyml.ConfigError, "^there is no data no.npz"),
        (
            lambda: tinyml.connect("qemu-cortex-m44"),
            tinyml.ConfigError,
            "no serial port qemu-cortex-m44; did you mean qemu-cortex-m4?",
        ),
        (lambda: tinyml.cost(FLOAT, "M4"), tinyml.ConfigError, "did you mean cortex-m4?"),
        (lambda: tinyml.load(7), tinyml.ConfigError, "builtins.int is not a model\n.*a path, bytes"),
        (lambda: tinyml.compile(INT8, target="z80"), tinyml.ConfigError, "z80"),
        (lambda: tinyml.run(INT8, np.zeros((1, 3))), tinyml.ConfigError, "has shape 1x3"),
        (lambda: tinyml.run(INT8, on="moon"), tinyml.ConfigError, "moon"),
        (lambda: tinyml.quantize(FLOAT, "no.npz"), tinyml.ConfigError, "no calibration data no.npz"),
    ],
)
def test_mistakes(call: Any, error: type[tinyml.TinymlError], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_scikit_learn() -> None:
    pytest.importorskip("skl2onnx", reason="skl2onnx exports the estimators")
    from sklearn import datasets, linear_model

    x, y = datasets.load_iris(return_X_y=True)
    estimator = linear_model.LogisticRegression(max_iter=500)
    with pytest.raises(tinyml.ConfigError, match="is not fitted"):
        tinyml.load(estimator)
    estimator.fit(x, y)
    result = tinyml.run(estimator, x.astype(np.float32))
    assert np.array_equal(result["output_label"], estimator.predict(x))


def test_names_of_classes_are_in_the_header(tmp_path: Path) -> None:
    pytest.importorskip("skl2onnx", reason="skl2onnx exports the estimators")
    from sklearn import datasets, linear_model

    x, y = datasets.load_iris(return_X_y=True)
    words = np.array(["low", 'a "b"', "high"])[y]
    model = linear_model.LogisticRegression(max_iter=500).fit(x, words)
    listed = '#define IRIS_CLASSES 3\n#define IRIS_LABELS \\\n\t{ \\\n\t\t"a \\"b\\"", \\\n\t\t"high", \\\n'
    compiled = tinyml.compile(model, name="iris", target="host")
    assert listed in compiled.files["iris.h"]
    compiled.write(tmp_path)
    runtime = Path(tinyml.__file__).parent / "runtime" / "include"
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "iris.h"\nstatic const char *const names[] = IRIS_LABELS;\n'
        "int main(void) { for (int i = 0; i < IRIS_CLASSES; i++) { puts(names[i]); } return 0; }\n"
    )
    gcc = ["gcc", "-Wall", "-Wextra", "-Werror", f"-I{runtime}", "main.c", "-o", "main"]
    subprocess.run(gcc, cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == model.classes_.tolist()
    given = tinyml.compile(INT8, name="digits", classes=tuple("abcdefghij"))
    assert "#define DIGITS_CLASSES 10" in given.files["digits.h"]
    with pytest.raises(tinyml.ConfigError, match="2 names of classes, but no output has 2"):
        tinyml.compile(INT8, classes=("yes", "no"))


def test_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    torch.manual_seed(1)
    parts = [torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten()]
    module = torch.nn.Sequential(*parts, torch.nn.Linear(4 * 36, 3))
    module[1].eval()
    example = torch.rand(1, 1, 8, 8)
    with pytest.raises(tinyml.ConfigError, match="needs example inputs"):
        tinyml.load(module)
    model = tinyml.load(module, example, name="net")
    assert [part.training for part in module] == [True, False, True, True, True]
    module.eval()
    wanted = module(example).detach().numpy()
    (found,) = tinyml.run(model, example.numpy()).outputs.values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    pytest.importorskip("onnxscript", reason="PyTorch's exporter of programs needs it")
    program = torch.export.export(module, (example,))
    (found,) = tinyml.run(program, example.numpy()).outputs.values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


class Frame:
    """Like a DataFrame of pandas: an array to numpy, and an iterator over the names of its columns."""

    def __init__(self, rows: np.ndarray[Any, Any]) -> None:
        self.rows = rows

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return self.rows if dtype is None else self.rows.astype(dtype)

    def __iter__(self) -> Iterator[str]:
        return iter([f"column{index}" for index in range(self.rows.shape[1])])


def test_data_frames() -> None:
    """Rows of a table are samples; with pandas, its own DataFrame is tried as well."""
    sklearn = pytest.importorskip("sklearn.linear_model")
    rows = np.random.default_rng(3).normal(size=(40, 3))
    labels = (rows[:, 0] > 0).astype(np.int64)
    model = sklearn.LogisticRegression().fit(rows, labels)
    frames: list[Any] = [Frame(rows)]
    if importlib.util.find_spec("pandas"):
        frames.append(importlib.import_module("pandas").DataFrame(rows))
    for frame in frames:
        assert tinyml.evaluate(model, frame, labels).accuracy == model.score(rows, labels)


def test_what_is_printed() -> None:
    """In a terminal, a run shows its outputs, and a quantised model its decibels."""
    result = tinyml.run(INT8)
    assert repr(result).startswith("<RunResult on host, arena ")
    assert all(f"; {name} 1x" in repr(result) for name in result.outputs)
    rows = np.random.default_rng(1).uniform(size=(20, 1, 8, 8)).astype(np.float32)
    int8 = tinyml.quantize(FLOAT, rows)
    assert re.fullmatch(r"<QuantizedModel \w+: [\d.]+ dB at the outputs.*>", repr(int8))
