# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Factors of keys at their queries: the same scores, and keys as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

from tests.support.onnx_models import model, node
from tinyml.quantize.score_factors import move_key_factors
from tinyml.reference.session import Session

F = np.float32
RNG = np.random.default_rng(5)
SAMPLE = {"q": RNG.normal(0, 1, (2, 3, 4)).astype(F), "k": RNG.normal(0, 1, (2, 5, 4)).astype(F)}
SHAPES = {name: list(value.shape) for name, value in SAMPLE.items()}
QUERIES = node("Mul", "q a", "qa")
TURNED = node("Transpose", "kb", "t", perm=[0, 2, 1])
PRODUCT = node("MatMul", "qa t", "y")
A, B = np.array(0.5, F), np.array([0.7], F)


def made(*nodes: Any, y: str = "y", **more: Any) -> onnx.ModelProto:
    return onnx.load_from_string(model(list(nodes), SHAPES, y, **{"a": A, "b": B, **more}))


MOVED = {
    "before_the_transposition": made(QUERIES, node("Mul", "k b", "kb"), TURNED, PRODUCT),
    "on_the_left": made(node("Mul", "a q", "qa"), node("Mul", "b k", "kb"), TURNED, PRODUCT),
    "after_the_transposition": made(
        QUERIES,
        node("Transpose", "k", "kt", perm=[0, 2, 1]),
        node("Mul", "kt b", "t"),
        PRODUCT,
        node("Relu", "a", "unused"),
    ),
}
KEPT = {
    "keys_that_are_an_output": made(QUERIES, node("Mul", "k b", "kb"), TURNED, PRODUCT, y="y kb"),
    "keys_that_are_read_twice": made(
        QUERIES, node("Mul", "k b", "kb"), TURNED, PRODUCT, node("Relu", "kb", "z"), y="y z"
    ),
    "a_factor_for_each_element": made(
        QUERIES, node("Mul", "k row", "kb"), TURNED, PRODUCT, row=np.arange(4).astype(F)
    ),
    "queries_without_a_factor": made(node("Relu", "q", "qa"), node("Mul", "k b", "kb"), TURNED, PRODUCT),
}


@pytest.mark.parametrize("name", MOVED)
def test_moved(name: str) -> None:
    file = MOVED[name]
    wanted = Session(file).run(SAMPLE)["y"]
    move_key_factors(file)
    (product,) = [each for each in file.graph.node if each.op_type == "Mul"]
    assert "q" in product.input
    np.testing.assert_allclose(Session(file).run(SAMPLE)["y"], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str) -> None:
    file = KEPT[name]
    before = [each.SerializeToString() for each in file.graph.node]
    move_key_factors(file)
    assert [each.SerializeToString() for each in file.graph.node] == before
