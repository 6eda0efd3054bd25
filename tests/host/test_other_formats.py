# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Files and objects of training frameworks: what is no ONNX or TFLite file says how it becomes one."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyml
from tinyml.base.errors import ConfigError
from tinyml.verbs.cli import main
from tools.environment import ROOT


def archive(*names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name in names:
            file.writestr(name, "{}")
    return stream.getvalue()


def cut_off() -> bytes:
    return (ROOT / "samples" / "digits" / "model.onnx").read_bytes()[:1000]


FILES = {
    "m.h5": (b"\x89HDF\r\n\x1a\n", "an HDF5 file", 'tf.keras.models.load_model("m.h5")'),
    "m.keras": (
        archive("metadata.json", "config.json", "model.weights.h5"),
        "a Keras file",
        "from_keras_model",
    ),
    "m.pt": (archive("m/data.pkl", "m/version"), "a PyTorch file", 'torch.load("m.pt", weights_only=False)'),
    "script.pt": (archive("m/data.pkl", "m/code/__torch__.py"), "TorchScript", 'torch.jit.load("script.pt")'),
    "m.pt2": (archive("m/archive_format", "m/data.pkl"), "torch.export", 'torch.export.load("m.pt2")'),
    "old.pth": (
        pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2),
        "a PyTorch file of the old format",
        'torch.load("old.pth"',
    ),
    "m.pkl": (pickle.dumps({"a": 1}), "a pickled Python object", "tinyml.load(model).save"),
    "m.json": (b'{"learner":{}}', "a model of XGBoost", "onnxmltools.convert_xgboost"),
    "m.zip": (archive("other"), "it is a zip archive", "give an ONNX (.onnx)"),
    "junk.pt": (
        bytes(range(128, 228)),
        "100 bytes that begin with 80 81 82 83 84 85 86 87, which is no file of PyTorch either",
        "give an ONNX (.onnx)",
    ),
    "junk.h5": (bytes(3000), "3,000 bytes, all zero, which is no file of Keras either", "give an ONNX"),
    "notes.onnx": (
        b"to do:\n  train it",
        "a text file that begins with 'to do: train it', neither ONNX nor TensorFlow Lite",
        "give an ONNX",
    ),
    "half.onnx": (cut_off(), "it begins as ONNX does, but is cut off or damaged", "export the model again"),
    "page.tflite": (b"\n<!DOCTYPE html><html>", "a web page (a download that failed?)", "give an ONNX"),
    "broken.pt": (b"PK\x03\x04 and nothing", "cannot be read", "give an ONNX (.onnx)"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_how_it_is_converted(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, what, lines = FILES[name]
    (tmp_path / name).write_bytes(content)
    assert main(["report", str(tmp_path / name)]) == 1
    said = capsys.readouterr().err
    assert what in said
    assert lines in said


def test_a_saved_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "saved_model.pb").touch()
    assert main(["report", str(tmp_path)]) == 1
    assert "TFLiteConverter.from_saved_model(" in capsys.readouterr().err


X = np.random.default_rng(1).normal(size=(80, 4)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] > 0).astype(int)


def check(model: Any, expected: Any) -> None:
    """The compiled C gives the probabilities of the library."""
    compiled = tinyml.compile(model, shapes={tinyml.load(model).inputs[0].name: (1, 4)}, target="host")
    found = tinyml.run(compiled, X[:8]).outputs
    scores = next(array for array in found.values() if array.dtype == np.float32 and array.shape[-1] == 2)
    np.testing.assert_allclose(scores.reshape(8, 2), expected, atol=1e-5)


@pytest.mark.parametrize("library, kind", [("xgboost", "XGBClassifier"), ("lightgbm", "LGBMClassifier")])
def test_boosted_trees(library: str, kind: str) -> None:
    module = pytest.importorskip(library)
    pytest.importorskip("onnxmltools")
    model = getattr(module, kind)(n_estimators=5)
    with pytest.raises(ConfigError, match="is not fitted"):
        tinyml.load(model)
    model.fit(X, Y)
    check(model, model.predict_proba(X[:8]))


def test_catboost() -> None:
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(iterations=5, verbose=False, allow_writing_files=False)
    model.fit(X, Y)
    check(model, model.predict_proba(X[:8]))


def test_keras() -> None:
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu")])
    compiled = tinyml.compile(model, target="host")
    (found,) = tinyml.run(compiled, X[:1]).outputs.values()
    np.testing.assert_allclose(found, np.asarray(model(X[:1])), atol=1e-5)
