# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Record models of XGBoost, LightGBM and CatBoost, from their own exporters, with their own predictions.

These libraries are not installed with the tests. In an environment of its own:

    python3 -m venv /tmp/boosted
    /tmp/boosted/bin/pip install xgboost lightgbm catboost onnxmltools skl2onnx scikit-learn onnxruntime
    /tmp/boosted/bin/python -m tests.support.record_boosted

It writes tests/recorded/boosted.npz: per model the ONNX file, some rows, and what the library itself
predicts for them (``predict_proba`` of classifiers, ``predict`` of regressors). The script prints how far
onnxruntime is from that: what a converter loses is listed in ``LOST`` of tests/host/test_boosted.py.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tinyml.reference.session import Session

FEATURES, ROWS = 5, 40
RECORDED = Path(__file__).parents[1] / "recorded" / "boosted.npz"

Arrays = tuple[Any, Any]
Model = tuple[str, Any, bytes]


def data(classes: int, share: float = 0.5, seed: int = 0) -> Arrays:
    """Rows and labels; of two classes the second has this share. Without classes, labels are real numbers."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(240, FEATURES)).astype(np.float32)
    score = x[:, 0] + 0.5 * x[:, 1] ** 2 - x[:, 2] * x[:, 3] + 0.1 * random.normal(size=len(x))
    if classes == 0:
        return x, np.exp(0.3 * score)
    limits = np.quantile(score, [1 - share] if classes == 2 else np.arange(1, classes) / classes)
    return x, np.searchsorted(limits, score)


def xgboost_models() -> Iterator[Model]:
    import xgboost
    from onnxmltools import convert_xgboost

    def exported(name: str, model: Any, classes: int, share: float = 0.5) -> Model:
        model.fit(*data(classes, share))
        return name, model, convert_xgboost(model, initial_types=inputs()).SerializeToString()

    small = {"n_estimators": 6, "max_depth": 3}
    yield exported("xgboost_binary", xgboost.XGBClassifier(**small), 2)
    yield exported("xgboost_rare", xgboost.XGBClassifier(n_estimators=2, max_depth=2), 2, 0.9)
    yield exported("xgboost_frequent", xgboost.XGBClassifier(n_estimators=1, max_depth=1), 2, 0.1)
    yield exported("xgboost_base", xgboost.XGBClassifier(**small, base_score=0.3), 2)
    yield exported("xgboost_three", xgboost.XGBClassifier(**small), 3)
    yield exported("xgboost_regressor", xgboost.XGBRegressor(**small), 0)
    yield exported("xgboost_poisson", xgboost.XGBRegressor(**small, objective="count:poisson"), 0)
    yield exported("xgboost_logistic", xgboost.XGBRegressor(**small, objective="reg:logistic"), 2)


def lightgbm_models() -> Iterator[Model]:
    import lightgbm
    from onnxmltools import convert_lightgbm

    def exported(name: str, classes: int, share: float = 0.5, **more: Any) -> Model:
        kind = lightgbm.LGBMRegressor if classes == 0 else lightgbm.LGBMClassifier
        model = kind(n_estimators=5, num_leaves=6, min_child_samples=5, verbose=-1, **more)
        model.fit(*data(classes, share))
        file = convert_lightgbm(model, initial_types=inputs(), zipmap=False)
        return name, model, file.SerializeToString()

    bagged: dict[str, Any] = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}
    yield exported("lightgbm_binary", 2)
    yield exported("lightgbm_rare", 2, 0.9)
    yield exported("lightgbm_three", 3)
    yield exported("lightgbm_regressor", 0)
    yield exported("lightgbm_poisson", 0, objective="poisson")
    yield exported("lightgbm_dart", 2, boosting_type="dart")
    yield exported("lightgbm_forest", 2, **bagged)
    yield exported("lightgbm_forest_three", 3, **bagged)
    yield exported("lightgbm_forest_regressor", 0, **bagged)
    yield exported("lightgbm_one_against_all", 3, objective="multiclassova")


def catboost_models() -> Iterator[Model]:
    import catboost

    def exported(name: str, classes: int, share: float = 0.5, **more: Any) -> Model:
        kind = catboost.CatBoostRegressor if classes == 0 else catboost.CatBoostClassifier
        model = kind(iterations=6, depth=3, verbose=False, allow_writing_files=False, **more)
        model.fit(*data(classes, share))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            model.save_model(str(path), format="onnx")
            return name, model, path.read_bytes()

    yield exported("catboost_binary", 2)
    yield exported("catboost_rare", 2, 0.9)
    yield exported("catboost_three", 3)
    yield exported("catboost_regressor", 0)


def inputs() -> list[tuple[str, Any]]:
    from onnxmltools.convert.common.data_types import FloatTensorType

    return [("x", FloatTensorType([None, FEATURES]))]


FAMILIES: tuple[Callable[[], Iterator[Model]], ...] = (xgboost_models, lightgbm_models, catboost_models)


def predicted(model: Any, x: Any) -> Any:
    wanted = model.predict_proba(x) if hasattr(model, "predict_proba") else model.predict(x)
    return np.asarray(wanted, np.float32).reshape(len(x), -1)


def by_onnxruntime(content: bytes, x: Any) -> Any:
    found = [*Session(onnx.load_from_string(content)).run(_named(content, x)).values()][-1]
    if isinstance(found, list):  # a ZipMap's dictionaries
        found = [list(row.values()) for row in found]
    return np.asarray(found, np.float32).reshape(len(x), -1)


def _named(content: bytes, x: Any) -> dict[str, Any]:
    return {onnx.load_from_string(content).graph.input[0].name: x}


def main() -> None:
    warnings.simplefilter("ignore")
    x, _ = data(0, seed=1)
    x = x[:ROWS]
    arrays: dict[str, Any] = {"x": x}
    for family in FAMILIES:
        for name, model, content in family():
            wanted = predicted(model, x)
            found = by_onnxruntime(content, x)
            away = np.abs(found - wanted).max() if found.shape == wanted.shape else np.inf
            print(f"{name}: {len(content)} bytes, onnxruntime differs by {away:.3g}")
            arrays[f"{name}/model"] = np.frombuffer(content, np.uint8)
            arrays[f"{name}/wanted"] = wanted
    np.savez_compressed(RECORDED, **arrays)
    print(f"{RECORDED}: {RECORDED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
