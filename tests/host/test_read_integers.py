# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Trees behind a Dequantize compare the stored integers, with the same results."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.ops.trees import FEATURES, ML, forest
from tests.support.interpret import interpret
from tinyml.importers import onnx_graph
from tinyml.ir import DType, Graph, Quant
from tinyml.ir.verifier import verify
from tinyml.ops.classical.tree_integers import integer_limits, integer_weights
from tinyml.ops.classical.trees import LIMITS, WEIGHTS, Trees
from tinyml.passes.read_integers import read_integers


def behind_dequantize(scale: float, pure: bool) -> Graph:
    attributes = forest(8, 3, "target", [0, 1], ["BRANCH_GT", "BRANCH_LEQ"], n_targets=2, pure=pure)
    constants = {"scale": np.float32(scale), "zero": np.int8(5)}
    graph = helper.make_graph(
        [
            helper.make_node("DequantizeLinear", ["x", *constants], ["real"]),
            helper.make_node("TreeEnsembleRegressor", ["real"], ["y"], domain=ML, **attributes),
        ],
        "trees",
        [helper.make_tensor_value_info("x", TensorProto.INT8, [7, FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [7, 2])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 1)]
    return onnx_graph.read(helper.make_model(graph, opset_imports=imports), "trees", {})


@pytest.mark.parametrize("pure", [True, False], ids=["integer weights", "real weights"])
def test_same_results(pure: bool) -> None:
    before = behind_dequantize(0.0625, pure)
    after = read_integers(before)
    verify(after, "read_integers")
    (layer,) = after.layers()
    assert isinstance(layer.op, Trees)
    assert layer.input(LIMITS).dtype is DType.INT16
    assert layer.input(WEIGHTS).dtype is (DType.UINT8 if pure else DType.FLOAT32)
    (name,) = before.inputs
    x = {name: np.random.default_rng(2).integers(-128, 128, (7, FEATURES)).astype(np.int8)}
    np.testing.assert_array_equal(interpret(before, x)["y"], interpret(after, x)["y"])


def test_limits_below_all_integers_stay_real() -> None:
    """No stored integer stands for a number below the limits: there is none to compare with."""
    after = read_integers(behind_dequantize(1e-5, pure=True))
    assert [node.op.kind for node in after.nodes] == ["Dequantize", "Trees"]


@pytest.mark.parametrize("scale,zero", [(0.1, 0), (0.0625, 3), (1 / 3, -7)])
def test_integer_limits_decide_as_real_ones(scale: float, zero: int) -> None:
    """For every stored integer, also where the limit is exactly what one stands for."""
    stored = np.arange(-128, 128)
    real = (stored - zero).astype(np.float32) * np.float32(scale)
    up = np.nextafter(real, np.float32(np.inf))
    limits = np.concatenate([real, up, np.nextafter(real, np.float32(-np.inf))[1:], [1e9]]).astype(np.float32)
    found = integer_limits(limits, np.ones(len(limits), bool), Quant.per_tensor(scale, zero), DType.INT8)
    assert found is not None
    for limit, whole in zip(limits, found, strict=True):
        np.testing.assert_array_equal(real <= limit, stored <= whole)


def test_without_an_integer_form() -> None:
    below = np.array([-200.0], np.float32)
    assert integer_limits(below, np.ones(1, bool), Quant.per_tensor(1, 0), DType.INT8) is None
    assert integer_limits(below, np.ones(1, bool), Quant.per_tensor(1, 0), DType.INT16) is not None
    starts, targets = np.array([0, 1, 2]), np.array([0, 0])
    assert integer_weights(np.array([0.1, 0.25], np.float32), starts, targets, 1) is None
    exact = integer_weights(np.array([0.75, -0.25], np.float32), starts, targets, 1)
    assert exact is not None
    assert exact.values.tolist() == [3, -1]
    assert exact.scale == 0.25
    many = 1 << 24  # trees, whose sums float32 does not hold exactly
    assert integer_weights(np.array([0.75, -0.25], np.float32), starts, targets, many) is None
