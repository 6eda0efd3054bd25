# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Factors and offsets of normalisations in the dense layers behind them: the same function."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

from tests.support.onnx_models import model, node
from tinyml.quantize.biases import plain_biases
from tinyml.quantize.norm_factors import NORMALS, fold_norm_factors
from tinyml.reference.session import Session

F = np.float32
RNG = np.random.default_rng(39)
FACTORS, OFFSETS = RNG.uniform(0.5, 2.0, 6).astype(F), RNG.normal(0, 1, 6).astype(F)
W, B = RNG.normal(0, 1, (6, 4)).astype(F), RNG.normal(0, 1, 4).astype(F)
NORM = node("LayerNormalization", "x factors offsets", "n", axis=-1)
RMS = node("RMSNormalization", "x factors", "n", axis=-1)
PLAIN = node("RMSNormalization", "x ones", "m", axis=-1)
ONES = np.ones(6, F)
X = RNG.normal(0, 1, (5, 6)).astype(F)


def made(*nodes: Any, y: str = "y", **more: Any) -> onnx.ModelProto:
    constants = {"factors": FACTORS, "offsets": OFFSETS, "w": W, "b": B, **more}
    return onnx.load_from_string(model(list(nodes), {"x": [5, 6]}, y, opset=23, **constants))


def run(file: onnx.ModelProto) -> Any:
    return Session(file).run({"x": X})["y"]


def factors_of(file: onnx.ModelProto) -> Any:
    (norm,) = (n for n in file.graph.node if n.op_type in NORMALS)
    (found,) = (t for t in file.graph.initializer if t.name == norm.input[1])
    return numpy_helper.to_array(found), len(norm.input)


FOLDED = {
    "one": made(NORM, node("Gemm", "n w b", "y")),
    "no_bias": made(NORM, node("Gemm", "n w", "y")),
    "rows": made(NORM, node("Gemm", "n wt b", "y", transB=1), wt=np.ascontiguousarray(W.T)),
    "no_offsets": made(node("LayerNormalization", "x factors", "n", axis=-1), node("Gemm", "n w b", "y")),
    "two_that_share_weights": made(
        NORM, node("Gemm", "n w b", "a"), node("Gemm", "n w b", "c"), node("Mul", "a c", "y")
    ),
    "another_shape": made(
        NORM,
        node("Reshape", "n shape", "r"),
        node("Gemm", "r w b", "y"),
        shape=np.array([-1, 6]),
    ),
    "rms": made(RMS, node("Gemm", "n w b", "y")),
    "a_product_of_matrices": made(RMS, node("MatMul", "n w", "y")),
    "factors_in_a_layer_of_their_own": made(
        PLAIN, node("Mul", "m factors", "n"), node("MatMul", "n w", "y"), ones=ONES
    ),
    "one_factor_before": made(
        PLAIN,
        node("Mul", "single m", "n"),
        node("Gemm", "n w b", "y"),
        ones=2 * ONES,
        single=np.array([1.5], F),
    ),
}
KEPT = {
    "offsets_that_a_product_of_matrices_has_no_bias_for": made(NORM, node("MatMul", "n w", "y")),
    "a_product_that_others_read": made(
        PLAIN, node("Mul", "m factors", "n"), node("Add", "m n", "s"), node("MatMul", "s w", "y"), ones=ONES
    ),
    "factors_of_rows": made(PLAIN, node("Mul", "m column", "y"), ones=ONES, column=np.ones((5, 1), F) * 2),
    "read_by_an_addition": made(NORM, node("Add", "n x", "a"), node("Gemm", "a w b", "y")),
    "also_read_by_an_addition": made(
        NORM, node("Gemm", "n square", "g"), node("Add", "n g", "y"), square=np.ascontiguousarray(W @ W.T)
    ),
    "an_output": made(NORM, y="n"),
    "a_factor_of_the_product": made(NORM, node("Gemm", "n w b", "y", alpha=0.5)),
    "one_factor_for_all_elements": made(
        node("LayerNormalization", "x single offsets", "n", axis=-1),
        node("Gemm", "n w b", "y"),
        single=np.array([1.5], F),
    ),
    "rows_of_another_width": made(
        NORM,
        node("Reshape", "n shape", "r"),
        node("Gemm", "r v", "y"),
        shape=np.array([10, 3]),
        v=W[:3],
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_folded(name: str) -> None:
    file = FOLDED[name]
    wanted = run(file)
    fold_norm_factors(file)
    onnx.checker.check_model(file)
    factors, operands = factors_of(file)
    np.testing.assert_array_equal(factors, np.ones(6, F))
    assert operands == 2
    np.testing.assert_allclose(run(file), wanted, rtol=1e-5, atol=1e-5)
    read = {name for each in file.graph.node for name in each.input}
    assert {tensor.name for tensor in file.graph.initializer} <= read


def test_names_that_are_taken() -> None:
    taken: dict[str, Any] = {"y/normalised_weights": W}
    file = made(NORM, node("Gemm", "n y/normalised_weights b", "y"), **taken)
    wanted = run(file)
    fold_norm_factors(file)
    np.testing.assert_allclose(run(file), wanted, rtol=1e-5, atol=1e-4)


def test_branches_that_read_a_normalisation() -> None:
    file = made(NORM, node("Gemm", "n w b", "y"))
    branch = onnx.helper.make_graph([node("Neg", "n", "z")], "branch", [], [])
    file.graph.node.append(
        onnx.helper.make_node("If", ["cond"], ["z"], then_branch=branch, else_branch=branch)
    )
    before = file.SerializeToString()
    fold_norm_factors(file)
    assert file.SerializeToString() == before


def test_constants_that_only_branches_read() -> None:
    """The branches of an If read tensors from outside, at any depth."""
    inner = onnx.helper.make_graph([node("Neg", "deep", "i")], "inner", [], [])
    nested = onnx.helper.make_node("If", ["cond"], ["i"], then_branch=inner, else_branch=inner)
    branch = onnx.helper.make_graph([node("Neg", "outside", "z"), nested], "branch", [], [])
    file = made(node("Gemm", "x w b", "y"), outside=B, deep=B, unread=B)
    file.graph.node.append(
        onnx.helper.make_node("If", ["cond"], ["z"], then_branch=branch, else_branch=branch)
    )
    plain_biases(file)
    assert {"outside", "deep", "w", "b"} == {tensor.name for tensor in file.graph.initializer}


def test_nodes_without_names() -> None:
    gemms = (node("Gemm", "n w b", "a"), node("Gemm", "n v b", "c"), node("Mul", "a c", "y"))
    file = made(NORM, *gemms, v=2 * W)
    for each in file.graph.node:
        each.name = ""
    wanted = run(file)
    fold_norm_factors(file)
    np.testing.assert_allclose(run(file), wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str) -> None:
    file = KEPT[name]
    before = [each.SerializeToString() for each in file.graph.node]
    fold_norm_factors(file)
    assert [each.SerializeToString() for each in file.graph.node] == before
