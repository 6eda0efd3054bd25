# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the readers of tree ensembles refuse, and how they round limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.ops.trees import FEATURES, ML, forest
from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.importers import onnx_graph
from tinyml.ir import Graph
from tinyml.ops.classical.trees import STARTS, TARGETS, WEIGHTS, Trees
from tinyml.ops.classical.trees_onnx import at_most


def read(
    mode: str = "BRANCH_LEQ", kind: int = TensorProto.FLOAT, features: int = FEATURES, **more: Any
) -> Graph:
    attributes = forest(1, 2, "target", [0], [mode], n_targets=1, **more)
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, **attributes)
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("x", kind, [1, features])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 1)]
    return onnx_graph.read(helper.make_model(graph, opset_imports=imports), "trees", {})


@pytest.mark.parametrize(
    "change,message",
    [
        ({"mode": "BRANCH_EQ"}, "has nodes of mode BRANCH_EQ"),
        ({"kind": TensorProto.DOUBLE}, "FloatTensorType"),
        ({"aggregate_function": "MAX"}, "aggregates its trees by MAX"),
        ({"post_transform": "PROBIT"}, "post_transform PROBIT"),
    ],
)
def test_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        read(**change)


def test_features_that_are_not_there() -> None:
    with pytest.raises(ModelError, match="uses features"):
        read(features=1)


@pytest.mark.parametrize("labels", [{}, {"classlabels_int64s": [0]}], ids=["none", "one of two"])
def test_classes_without_names(labels: dict[str, Any]) -> None:
    attributes = forest(1, 2, "class", [0, 1], ["BRANCH_LEQ"], **labels)
    node = helper.make_node("TreeEnsembleClassifier", ["x"], ["label", "y"], domain=ML, **attributes)
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 1)]
    with pytest.raises(ModelError, match=f"names {len(labels)} classes, and has scores of class 1"):
        onnx_graph.read(helper.make_model(graph, opset_imports=imports), "trees", {})


def test_nodes_in_a_circle() -> None:
    attributes = forest(1, 1, "target", [0], ["BRANCH_LEQ"])
    attributes["nodes_modes"][1] = "BRANCH_LEQ"
    attributes["nodes_truenodeids"][1] = attributes["nodes_falsenodeids"][1] = 1
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, n_targets=1, **attributes)
    graph = helper.make_graph(
        [node],
        "circle",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 1)]
    with pytest.raises(ModelError, match="not a tree"):
        onnx_graph.read(helper.make_model(graph, opset_imports=imports), "circle", {})


@pytest.mark.parametrize("limit", [0.1, 1.0, -2.5, 1 / 3, 1e-40, 16777217.0])
def test_limits_divide_floats_as_doubles_do(limit: float) -> None:
    """x <= limit and x < limit for every float near a limit that is a double."""
    near = np.float32(limit)
    for x in (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))):
        assert (x <= at_most(limit, False)) == (float(x) <= limit)
        assert (x <= at_most(limit, True)) == (float(x) < limit)


def test_zero_weights_are_dropped_and_equal_leaves_are_stored_once() -> None:
    """64 leaves with three weights each, of which only three leaves differ."""
    attributes = forest(8, 3, "class", [0, 1, 2], ["BRANCH_LEQ"], classlabels_int64s=[0, 1, 2], pure=True)
    node = helper.make_node("TreeEnsembleClassifier", ["x"], ["label", "y"], domain=ML, **attributes)
    graph = helper.make_graph(
        [node],
        "forest",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 1)]
    read = onnx_graph.read(helper.make_model(graph, opset_imports=imports), "forest", {})
    (layer,) = (layer for layer in read.layers() if isinstance(layer.op, Trees))
    assert layer.input(WEIGHTS).value.tolist() == [0.125] * 3
    assert sorted(layer.input(TARGETS).value.tolist()) == [0, 1, 2]
    assert layer.input(STARTS).value.tolist() == [0, 1, 2, 3]
