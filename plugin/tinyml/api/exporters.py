# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Boosted trees and Keras models as ONNX, by the exporters that belong to them."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinyml.base.errors import ConfigError, ModelError, ToolError
from tinyml.reference.session import quiet

TREES_OPSET = 15  # the newest that onnxmltools writes for trees


def _onnxmltools(library: str) -> Any:
    try:
        import onnxmltools
    except ImportError:
        raise ToolError(f"a model of {library} needs onnxmltools", "pip install onnxmltools") from None
    return onnxmltools


def exported(library: str, model: Any, export: Callable[[], bytes]) -> bytes:
    """What an exporter raises, as one of our errors; what it prints is not for the user."""
    try:
        with warnings.catch_warnings(), quiet():
            warnings.simplefilter("ignore")
            return export()
    except (ConfigError, ToolError):
        raise
    except ImportError as error:
        raise ToolError(
            f"{library} cannot export {type(model).__name__}: {error}", "install what it names"
        ) from error
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"{library} cannot export {type(model).__name__}: {first}") from error


def _float_rows(features: Any, library: str) -> list[tuple[str, Any]]:
    """The one input of a converted model: rows of numbers."""
    if not features:
        raise ConfigError(f"this model of {library} is not fitted", "call its fit() first")
    from onnxmltools.convert.common.data_types import FloatTensorType

    return [("x", FloatTensorType([None, int(features)]))]


def from_xgboost(xgboost: Any, model: Any, _example: Any) -> bytes | None:
    """By onnxmltools; docs/tutorial_scikit_learn.md names what it loses."""
    booster = isinstance(model, xgboost.Booster)
    if not booster and not isinstance(model, xgboost.XGBModel):
        return None
    tools = _onnxmltools("XGBoost")

    def export() -> bytes:
        features = model.num_features() if booster else getattr(model, "n_features_in_", 0)
        rows = _float_rows(features, "XGBoost")
        made = tools.convert_xgboost(model, initial_types=rows, target_opset=TREES_OPSET)
        content: bytes = made.SerializeToString(deterministic=True)
        return content

    return exported("onnxmltools", model, export)


def from_lightgbm(lightgbm: Any, model: Any, _example: Any) -> bytes | None:
    """By onnxmltools, with probabilities as an array."""
    booster = isinstance(model, lightgbm.Booster)
    if not booster and not isinstance(model, lightgbm.LGBMModel):
        return None
    tools = _onnxmltools("LightGBM")

    def export() -> bytes:
        features = model.num_feature() if booster else getattr(model, "n_features_in_", 0)
        rows = _float_rows(features, "LightGBM")
        made = tools.convert_lightgbm(model, initial_types=rows, zipmap=False, target_opset=TREES_OPSET)
        content: bytes = made.SerializeToString(deterministic=True)
        return content

    return exported("onnxmltools", model, export)


def from_catboost(catboost: Any, model: Any, _example: Any) -> bytes | None:
    """By CatBoost itself."""
    if not isinstance(model, catboost.CatBoost):
        return None
    return exported("CatBoost", model, lambda: _written(".onnx", lambda path: _save_catboost(model, path)))


def _save_catboost(model: Any, path: Path) -> None:
    if not model.is_fitted():
        raise ConfigError("this model of CatBoost is not fitted", "call its fit() first")
    model.save_model(str(path), format="onnx")


def from_keras(keras: Any, model: Any, _example: Any) -> bytes | None:
    """By Keras 3's own export, which needs tf2onnx with TensorFlow and onnxscript with PyTorch."""
    if not isinstance(model, keras.Model):
        return None

    def save(path: Path) -> None:
        if not model.built:
            raise ConfigError(
                "this Keras model has no shapes yet", "model.build((None, 28, 28, 1)), or keras.Input(...)"
            )
        zeros = [keras.ops.zeros([size or 1 for size in one.shape], one.dtype) for one in model.inputs]
        model(zeros[0] if len(zeros) == 1 else zeros)  # some backends export only what has been called
        try:
            model.export(str(path), format="onnx", verbose=False)
        except (TypeError, ValueError) as error:
            if "format" not in str(error):
                raise
            raise ToolError(
                f"Keras {keras.__version__} does not export ONNX",
                "pip install 'keras>=3.8', or TensorFlow's converter: docs/tutorial_keras.md",
            ) from error

    return exported("Keras", model, lambda: _written(".onnx", save))


def _written(suffix: str, save: Callable[[Path], None]) -> bytes:
    """The bytes of a file that an exporter writes."""
    with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
        path = Path(folder) / f"model{suffix}"
        save(path)
        return path.read_bytes()
