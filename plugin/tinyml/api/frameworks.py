# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models of training frameworks as ONNX. A framework is only used if the caller has imported it."""

from __future__ import annotations

import importlib.util
import io
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np

from tinyml.api import exporters
from tinyml.api.from_jax import from_jax
from tinyml.base.errors import ConfigError, ModelError, ToolError
from tinyml.reference.session import quiet

OPSET = 17
"""Of exported models: every operator that the exporters write has a reader."""

ML_OPSET = 3
"""Of ai.onnx.ml in them: skl2onnx exports some estimators for no later one."""


def to_onnx(model: Any, example: Any = None) -> bytes | None:
    """The bytes of an ONNX or TFLite file; None if ``model`` is not a model of a known framework."""
    for module, convert in (
        ("onnx", _proto),
        ("keras", exporters.from_keras),
        ("torch", _torch),
        ("xgboost", exporters.from_xgboost),  # some of these are estimators of scikit-learn, too
        ("lightgbm", exporters.from_lightgbm),
        ("catboost", exporters.from_catboost),
        ("sklearn.base", _sklearn),
        ("jax", from_jax),  # last: a plain function may be one of JAX
    ):
        if module in sys.modules and (content := convert(sys.modules[module], model, example)) is not None:
            return content
    return None


def _proto(onnx: Any, model: Any, _example: Any) -> bytes | None:
    if not isinstance(model, onnx.ModelProto):
        return None
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _torch(torch: Any, model: Any, example: Any) -> bytes | None:
    program = "torch.export" in sys.modules and isinstance(model, torch.export.ExportedProgram)
    if not program and not isinstance(model, torch.nn.Module):
        return None
    modern = importlib.util.find_spec("onnxscript") is not None
    if program and not modern:
        raise ToolError("exporting a torch.export program requires onnxscript", "pip install onnxscript")
    if isinstance(example, FunctionType):  # data that has an example
        example = example()
    if not program and example is None:
        raise ConfigError(
            "a PyTorch module needs example inputs: they determine the shapes",
            "tinyml.load(module, torch.zeros(1, 3, 32, 32)), or its shape, or a tuple of tensors; quantize() "
            "and compile(calibration=...) take the first sample of arrays and of .npz and .npy files",
        )
    inputs = _examples(torch, example)
    try:
        with warnings.catch_warnings(), quiet():
            warnings.simplefilter("ignore")
            if program:
                return _bytes(torch.onnx.export(model, dynamo=True))
            with _evaluation(model):
                if modern:
                    return _bytes(torch.onnx.export(model, inputs, dynamo=True))
                stream = io.BytesIO()
                torch.onnx.export(model, inputs, stream, opset_version=OPSET, dynamo=False)
                return stream.getvalue()
    except Exception as error:
        raise ModelError(
            f"PyTorch cannot export this module: {innermost(error)}",
            "torch.onnx.export(...) shows the details; tinyml.load() takes the file it writes",
        ) from error


def _examples(torch: Any, example: Any) -> tuple[Any, ...]:
    """Tensors from what a user may give: tensors, arrays, or one shape; one for each input."""
    if isinstance(example, tuple | list) and example and all(isinstance(size, int) for size in example):
        return (torch.zeros(*example),)
    given = example if isinstance(example, tuple) else (example,)
    return tuple(torch.from_numpy(item.copy()) if isinstance(item, np.ndarray) else item for item in given)


def innermost(error: BaseException) -> str:
    """What went wrong first: PyTorch wraps it in exceptions that say only which step failed."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _bytes(program: Any) -> bytes:
    content: bytes = program.model_proto.SerializeToString(deterministic=True)
    return content


@contextmanager
def _evaluation(module: Any) -> Iterator[None]:
    """The module as it computes after training; every part gets its mode back."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _sklearn(base: Any, model: Any, _example: Any) -> bytes | None:
    if not isinstance(model, base.BaseEstimator):
        return None
    try:
        from skl2onnx import to_onnx as convert
    except ImportError:
        raise ToolError(
            "a scikit-learn estimator needs skl2onnx", "pip install 'west-tinyml[sklearn]'"
        ) from None
    features = getattr(model, "n_features_in_", None)
    if features is None:
        raise ConfigError(f"{type(model).__name__} is not fitted", "call its fit() first")
    row = np.zeros((1, int(features)), np.float32)
    try:
        opsets = {"": OPSET, "ai.onnx.ml": ML_OPSET}
        made = convert(model, row, target_opset=opsets, options=_neighbours())
        content: bytes = _right_distances(made).SerializeToString(deterministic=True)
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"skl2onnx cannot export {type(model).__name__}: {first}") from error
    return content


def _neighbours() -> dict[Any, Any]:
    """Options of skl2onnx: distances as one operator, not as a loop over all neighbours."""
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    return {kind: {"optim": "cdist"} for kind in (KNeighborsClassifier, KNeighborsRegressor)}


def _right_distances(model: Any) -> Any:
    """skl2onnx changes the sign of the neighbours' distances before it takes at least 1e-6 of each.

    All neighbours have the same weight then. Here that maximum gets the distances themselves.
    """
    from onnx import numpy_helper

    made = {name: node for node in model.graph.node for name in node.output}
    values = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "Max":
            continue
        for index, name in enumerate(node.input):
            source = made.get(name)
            if source is None or source.op_type != "Mul":
                continue
            distances, factor = source.input
            negated = factor in values and numpy_helper.to_array(values[factor]).tolist() == [-1.0]
            if negated and distances in made and made[distances].op_type == "TopK":
                node.input[index] = distances
    return model
