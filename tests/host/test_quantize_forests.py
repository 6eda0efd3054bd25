# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Forests of trees with int16 limits and integer leaves: how they are stored, and that the C agrees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

import tinyml
from tests.ops.trees import FEATURES, ML, forest
from tests.support.quantizing import saved
from tinyml import harness
from tinyml.base.errors import ConfigError
from tinyml.ir import Array, DType, Layer
from tinyml.ops.classical.trees import LIMITS, WEIGHTS, Trees
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.measure import EXACT
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import Request

FAR = np.array([0, 0, 101325, 0], np.float32)
"""A feature, such as a pressure, whose limits are far from zero and close to each other."""


def ensemble(
    kind: str, nodes: list[onnx.NodeProto] | None = None, x: int = TensorProto.FLOAT, **attributes: Any
) -> onnx.ModelProto:
    """A classifier with the outputs label and scores, or a regressor with the output scores."""
    outputs = ["label", "scores"] if "Classifier" in kind else ["scores"]
    text = TensorProto.STRING if "classlabels_strings" in attributes else TensorProto.INT64
    node = helper.make_node(kind, ["x"], [*outputs], "trees", domain=ML, **attributes)
    graph = helper.make_graph(
        [node, *(nodes or [])],
        "forest",
        [helper.make_tensor_value_info("x", x, [1, FEATURES])],
        [
            helper.make_tensor_value_info(name, text if name == "label" else TensorProto.FLOAT, None)
            for name in outputs
        ],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def classifier(**more: Any) -> onnx.ModelProto:
    attributes = forest(20, 5, "class", [0, 1, 2], ["BRANCH_LEQ", "BRANCH_GT"], **more)
    if "classlabels_strings" not in attributes:
        attributes["classlabels_int64s"] = [0, 1, 2]
    return ensemble("TreeEnsembleClassifier", **attributes)


def shifted(model: onnx.ModelProto, offsets: Array) -> onnx.ModelProto:
    """The same trees for features that are larger by their offsets."""
    node = model.graph.node[0]
    found = {attribute.name: attribute for attribute in node.attribute}
    limits = np.asarray(found["nodes_values"].floats) + offsets[np.asarray(found["nodes_featureids"].ints)]
    del found["nodes_values"].floats[:]
    found["nodes_values"].floats.extend(limits.tolist())
    return model


def quantized(
    model: onnx.ModelProto, folder: Path, x: Array | None = None, labels: Array | None = None, **settings: Any
) -> Quantized:
    onnx.save(model, folder / "forest.onnx")
    rows = x if x is not None else features()
    arrays: dict[str, Any] = {"x": rows[:, None], **({} if labels is None else {"labels": labels})}
    np.savez(folder / "calib.npz", **arrays)
    return quantize(folder / "forest.onnx", replace(Request(folder / "calib.npz"), **settings))


def features(rows: int = 60) -> Array:
    return np.random.default_rng(8).uniform(-2, 2, (rows, FEATURES)).astype(np.float32)


def trees_of(compiled: Compiled) -> Layer:
    (layer,) = (layer for layer in compiled.graph.layers() if isinstance(layer.op, Trees))
    return layer


def check_c(result: Quantized, folder: Path, x: Array) -> Compiled:
    """The C computes what onnxruntime computes with the quantised file: the same decisions and scores."""
    compiled = compile_model(saved(result, folder), Options("forest", "host"))
    (name,) = compiled.graph.inputs
    found = harness.run_files(compiled.files, "host", [{name: row[None]} for row in x]).outputs
    session = Session(result.model)
    for row, ours in zip(x, found, strict=True):
        wanted = session.run({"x": row[None]})
        np.testing.assert_allclose(ours["scores"], wanted["scores"], rtol=1e-6, atol=1e-7)
        if wanted.get("label", np.zeros(0, object)).dtype.kind == "i":
            np.testing.assert_array_equal(ours["label"], wanted["label"])
    return compiled


@pytest.mark.parametrize("leaves,stored", [("int16", DType.INT16), ("int8", DType.UINT8)])
def test_classifier(leaves: str, stored: DType, tmp_path: Path) -> None:
    result = quantized(classifier(low=0.0), tmp_path, leaves=leaves)
    report = result.report
    assert [layer.kind for layer in report.layers] == ["int16" if leaves == "int16" else "int16, int8 leaves"]
    assert 40 < report.decibels < EXACT
    assert report.method == ""
    assert report.agreement > 0.9
    compiled = check_c(result, tmp_path, features(12))
    layer = trees_of(compiled)
    assert layer.input(0).dtype is DType.INT16
    assert (layer.input(LIMITS).dtype, layer.input(WEIGHTS).dtype) == (DType.INT16, stored)
    scale_and_zero_point = 6  # which are constants of the file, not of the C
    assert report.int8_bytes == compiled.summary["weights_bytes"] + scale_and_zero_point < report.float_bytes
    plain = compile_model(tmp_path / "forest.onnx", Options("forest", "host"))
    assert plain.summary["weights_bytes"] == report.float_bytes


def test_whole_numbers_are_decided_alike(tmp_path: Path) -> None:
    """Limits are multiples of a half; steps are powers of two, so that no decision can change."""
    x = np.random.default_rng(3).integers(-4, 5, (60, FEATURES)).astype(np.float32) / 2
    result = quantized(classifier(pure=True), tmp_path, x)
    assert result.report.agreement == 1.0
    assert result.report.decibels > 80


def test_limits_far_from_zero_keep_their_resolution(tmp_path: Path) -> None:
    x = features() + FAR
    result = quantized(shifted(classifier(low=0.0), FAR), tmp_path, x)
    assert result.report.agreement == 1.0
    assert result.report.decibels > 60
    assert result.model.graph.node[0].op_type == "Sub"
    check_c(result, tmp_path, x[:12])


def test_regressor(tmp_path: Path) -> None:
    attributes = forest(30, 4, "target", [0], ["BRANCH_LT"], n_targets=1, base_values=[0.5])
    result = quantized(ensemble("TreeEnsembleRegressor", **attributes), tmp_path, leaves="int8")
    assert 30 < result.report.decibels < EXACT
    assert trees_of(check_c(result, tmp_path, features(12))).input(WEIGHTS).dtype is DType.INT8


def test_features_that_are_integers(tmp_path: Path) -> None:
    x = np.random.default_rng(3).integers(-4, 5, (40, FEATURES))
    attributes = forest(9, 4, "class", [0, 1, 2], ["BRANCH_LT"], classlabels_int64s=[0, 1, 2])
    result = quantized(ensemble("TreeEnsembleClassifier", x=TensorProto.INT64, **attributes), tmp_path, x)
    assert result.report.agreement == 1.0
    check_c(result, tmp_path, x[:12])


def test_names_of_classes_and_probabilities_by_name(tmp_path: Path) -> None:
    """As scikit-learn's exporter writes them: a label that is text, and a list of mappings."""
    names = ["low", "middle", "high"]
    model = classifier(low=0.0, classlabels_strings=names)
    model.graph.node[0].output[1] = "array"
    model.graph.node.append(
        helper.make_node("ZipMap", ["array"], ["scores"], domain=ML, classlabels_strings=names)
    )
    labels = np.random.default_rng(1).integers(0, 3, 60)
    result = quantized(model, tmp_path, labels=labels)
    assert result.report.accuracy_float == pytest.approx(result.report.accuracy_int8, abs=0.1)
    compiled = check_c(result, tmp_path, features(4))
    assert compiled.graph.labels == tuple(names)


def test_missing_values_are_lost_with_a_warning(tmp_path: Path) -> None:
    result = quantized(classifier(tracks=True), tmp_path)
    assert any("missing values" in warning for warning in result.report.warnings)
    check_c(result, tmp_path, features(3))


def test_kept_float(tmp_path: Path) -> None:
    result = quantized(classifier(), tmp_path, keep_float=("trees",))
    assert [layer.kind for layer in result.report.layers] == ["float"]
    assert result.report.decibels == EXACT


def test_integer_interface(tmp_path: Path) -> None:
    """Limits of all features have one scale here, so that the application can write int16 itself."""
    result = quantized(classifier(low=0.0), tmp_path, io="int8")
    compiled = compile_model(saved(result, tmp_path), Options("forest", "host"))
    (name,) = compiled.graph.inputs
    given = compiled.graph.tensors[name]
    assert given.dtype is DType.INT16
    assert given.quant is not None
    stored = np.rint(features(5) / given.quant.scale).astype(np.int16)
    found = harness.run_files(compiled.files, "host", [{name: row[None]} for row in stored]).outputs
    for row, ours in zip(stored, found, strict=True):
        wanted = Session(result.model).run({"x": row[None]})
        np.testing.assert_allclose(ours["scores"], wanted["scores"], rtol=1e-6, atol=1e-7)


def test_in_python_and_refused(tmp_path: Path) -> None:
    onnx.save(classifier(), tmp_path / "forest.onnx")
    small = tinyml.quantize(tmp_path / "forest.onnx", features()[:, None], leaves="int8")
    assert small.report.layers[0].kind == "int16, int8 leaves"
    with pytest.raises(ConfigError, match="always compare int16 features"):
        tinyml.quantize(tmp_path / "forest.onnx", features()[:, None], int16=["trees"])
    with pytest.raises(ConfigError, match="leaves of trees cannot be 'int4'"):
        tinyml.quantize(tmp_path / "forest.onnx", features()[:, None], leaves="int4")  # type: ignore[arg-type]
