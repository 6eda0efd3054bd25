# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Estimators of scikit-learn that compare with points: support vectors, neighbours, centres, isolation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytest.importorskip("skl2onnx", reason="skl2onnx makes the models")
pytest.importorskip("onnxruntime", reason="it is the reference")

from sklearn import cluster, datasets, ensemble, neighbors, svm

import tinyml
from tinyml.base.errors import TinymlError

IRIS = datasets.load_iris(return_X_y=True)
DIABETES = datasets.load_diabetes(return_X_y=True)
FOREST: dict[str, Any] = {"n_estimators": 5, "max_samples": 64, "random_state": 0}

CASES: dict[str, tuple[Any, Any, int]] = {
    "rbf": (svm.SVC(), IRIS, 150),
    "linear kernel": (svm.SVC(kernel="linear"), IRIS, 150),
    "polynomial": (svm.SVC(kernel="poly"), IRIS, 150),
    "sigmoid": (svm.SVC(kernel="sigmoid"), IRIS, 150),
    "two classes": (svm.SVC(), IRIS, 100),
    "nu": (svm.NuSVC(), IRIS, 150),
    "regression": (svm.SVR(C=100), DIABETES, 60),
    "one class": (svm.OneClassSVM(), IRIS, 150),
    "neighbours": (neighbors.KNeighborsClassifier(5), IRIS, 150),
    "mean of neighbours": (neighbors.KNeighborsRegressor(3), DIABETES, 60),
    "isolation": (ensemble.IsolationForest(**FOREST), IRIS, 150),
    "centres": (cluster.KMeans(3, n_init=1, random_state=0), IRIS, 150),
}


@pytest.mark.parametrize("case", CASES)
def test_equal_to_sklearn_and_onnxruntime(case: str) -> None:
    """Where a decision is close, float32 may take the other side: those rows are left out for sklearn."""
    estimator, (x, y), count = CASES[case]
    x, y = x[:count].astype(np.float32), y[:count]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(x, y)
        found = tinyml.evaluate(estimator, x)
        assert found.original is not None
        assert found.original.runtime.startswith("onnxruntime")
        label, *_ = tinyml.run(estimator, x).outputs.values()
    wanted = estimator.predict(x)
    if case in ("regression", "mean of neighbours"):
        np.testing.assert_allclose(label.reshape(-1), wanted, rtol=2e-4)
        assert found.original.outputs[0].snr_db > 80
        return
    clear = np.ones(count, bool)
    if case in ("one class", "isolation"):
        clear = np.abs(estimator.decision_function(x)) > 1e-4
    assert clear.sum() > 0.8 * count
    assert np.array_equal(label.reshape(-1)[clear], wanted[clear])
    if "neighbours" in case:  # which of several points at the same distance count is a matter of rounding
        assert found.original.changed is not None
        assert found.original.changed <= 2
    elif case not in ("one class", "sigmoid"):  # a sum that is zero but for rounding
        assert all(output.snr_db > 80 for output in found.original.outputs)


def test_probabilities_are_those_of_libsvm() -> None:
    """To the limit at which its iteration stops; tests/first_sight compares with onnxruntime."""
    x, y = IRIS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = svm.SVC(probability=True, random_state=0).fit(x.astype(np.float32), y)
        wanted = fitted.predict_proba(x[:20].astype(np.float32))
        compiled = tinyml.compile(fitted, target="host")
    outputs = tinyml.run(compiled, x[:20].astype(np.float32)).outputs
    found = np.asarray([*outputs.values()][-1]).reshape(wanted.shape)
    assert np.abs(found - wanted).max() < 0.01


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_neighbours_weighed_by_distance(scale: float) -> None:
    """On the points themselves, and beside them: the error of a distance is that of its last bits."""
    x, y = IRIS
    x = (x * scale + 7 * scale).astype(np.float32)  # far from the origin, where |x|² - 2xp + |p|² would fail
    beside = (x + np.random.default_rng(0).normal(0, 1e-3 * scale, x.shape)).astype(np.float32)
    rows = np.concatenate([x, beside])
    classifier = neighbors.KNeighborsClassifier(5, weights="distance").fit(x, y)
    label, scores = tinyml.run(classifier, rows).outputs.values()
    expected = classifier.predict_proba(rows)
    assert np.abs(scores.reshape(expected.shape) - expected).max() < 1e-4
    assert np.array_equal(label.reshape(-1), classifier.predict(rows))
    regressor = neighbors.KNeighborsRegressor(5, weights="distance").fit(x, y + x[:, 0] / scale)
    (value,) = tinyml.run(regressor, rows).outputs.values()
    np.testing.assert_allclose(value.reshape(-1), regressor.predict(rows), rtol=1e-4)


def encoder(**attributes: Any) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.INT64, [1, 6])
    kind = TensorProto.FLOAT if "values_floats" in attributes else TensorProto.INT64
    y = helper.make_tensor_value_info("y", kind, [1, 6])
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets, ir_version=9)


@pytest.mark.parametrize(
    "attributes,wanted",
    [
        ({"values_floats": [0.5, 1.5, 2.5], "default_float": 9.0}, [9.0, 9.0, 0.5, 9.0, 1.5, 2.5]),
        ({"values_int64s": [7, 8, 9]}, [-1, -1, 7, -1, 8, 9]),
    ],
)
def test_label_encoder(attributes: dict[str, Any], wanted: list[float]) -> None:
    model = encoder(keys_int64s=[-3, 2, 5], **attributes)
    x = np.array([[-(2**40), 2**40, -3, 0, 2, 5]], np.int64)
    assert tinyml.run(model, {"x": x})["y"].reshape(-1).tolist() == wanted


@pytest.mark.parametrize(
    "attributes",
    [
        {"keys_strings": ["a"], "values_int64s": [1]},
        {"keys_int64s": [0, 10**7], "values_int64s": [1, 2]},
    ],
)
def test_tables_that_cannot_be(attributes: dict[str, Any]) -> None:
    with pytest.raises(TinymlError):
        tinyml.compile(encoder(**attributes))
