# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models of scikit-learn as skl2onnx exports them, labels and probabilities: equal to onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("skl2onnx", reason="skl2onnx makes the models")
pytest.importorskip("onnxruntime", reason="it is the reference")

from skl2onnx import to_onnx
from sklearn import datasets, ensemble, linear_model, naive_bayes, neural_network, pipeline, preprocessing

from tinyml import harness
from tinyml.base.errors import ConfigError
from tinyml.compare.reference import OnnxRuntime
from tinyml.importers import load, read_model
from tinyml.pipeline import Options, compile_model
from tinyml.verbs import cli

SMALL: dict[str, Any] = {"n_estimators": 6, "max_depth": 4, "random_state": 0}

MODELS: dict[str, tuple[Any, Any]] = {
    "forest": (ensemble.RandomForestClassifier(**SMALL), datasets.load_iris),
    "forest of two": (ensemble.RandomForestClassifier(**SMALL), datasets.load_breast_cancer),
    "boosted": (ensemble.GradientBoostingClassifier(**SMALL), datasets.load_wine),
    "boosted of two": (ensemble.GradientBoostingClassifier(**SMALL), datasets.load_breast_cancer),
    "forest of numbers": (ensemble.RandomForestRegressor(**SMALL), datasets.load_diabetes),
    "boosted numbers": (ensemble.GradientBoostingRegressor(**SMALL), datasets.load_diabetes),
    "logistic": (
        pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
        datasets.load_wine,
    ),
    "logistic of two": (
        pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
        datasets.load_breast_cancer,
    ),
    "ridge": (
        pipeline.make_pipeline(preprocessing.MinMaxScaler(), linear_model.Ridge()),
        datasets.load_diabetes,
    ),
    "network": (
        neural_network.MLPClassifier((8,), max_iter=2000, random_state=0, tol=0.01),
        datasets.load_iris,
    ),
    "bayes": (naive_bayes.GaussianNB(), datasets.load_iris),
}


def exported(name: str, path: Path, words: bool = False) -> np.ndarray[Any, Any]:
    """Fit, write the file, and return some samples."""
    estimator, dataset = MODELS[name]
    x, y = dataset(return_X_y=True)
    x = x.astype(np.float32)
    estimator.fit(x, np.array(["low", "middle", "high"])[y] if words else y)
    path.write_bytes(to_onnx(estimator, x[:1], target_opset=17).SerializeToString())
    chosen: np.ndarray[Any, Any] = x[::9]
    return chosen


@pytest.mark.parametrize("name", MODELS)
def test_model(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    samples = [{"X": row[None]} for row in exported(name, path)]
    compiled = compile_model(path, Options("model", "host"))
    found = harness.run_files(compiled.files, "host", samples).outputs
    wanted = OnnxRuntime(read_model(path), load(path)).run(samples)
    for ours, theirs in zip(found, wanted, strict=True):
        for output, expected in zip(compiled.graph.outputs, theirs.outputs, strict=True):
            assert ours[output].dtype == expected.dtype
            np.testing.assert_allclose(ours[output], expected, rtol=1e-5, atol=1e-5)


def test_labels_that_are_words_are_numbers(tmp_path: Path) -> None:
    """In the order of the model's list; the reference has texts, which C cannot be compared with."""
    path = tmp_path / "model.onnx"
    samples = [{"X": row[None]} for row in exported("forest", path, words=True)]
    compiled = compile_model(path, Options("model", "host"))
    label, chances = compiled.graph.outputs
    for out in harness.run_files(compiled.files, "host", samples).outputs:
        assert out[label].tolist() == [int(out[chances].argmax())]
    with pytest.raises(ConfigError, match="is text"):
        OnnxRuntime(read_model(path), load(path)).run(samples)


def test_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Probabilities that ZipMap makes a list of mappings are compared as the array they are."""
    exported("forest", tmp_path / "model.onnx")
    assert cli.main(["verify", str(tmp_path / "model.onnx")]) == 0
    assert "agrees on host" in capsys.readouterr().out
