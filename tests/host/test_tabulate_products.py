# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A product with a single number is a table, with the same results for every byte."""

from __future__ import annotations

import numpy as np
import pytest

import tinyml.ops.catalog  # noqa: F401  the parser knows operators that are imported
from tests.support.interpret import interpret
from tinyml.ir import Graph
from tinyml.ir.text_parser import parse
from tinyml.ir.verifier import verify
from tinyml.ops.elementwise.lookup import Lookup
from tinyml.passes.tabulate_products import tabulate_products

ONES = "const int8[4x1x1] q(0.00392157, -128) {127 127 127 127}"
TABULATED = {
    "attention_to_one_key": (
        "input x: int8[4x1x256] q(0.02, 5)",
        f"y: int8[4x1x256] q(0.021, -7) = MatMul({ONES}, x; round_once=True)",
    ),
    "as_tensorflow_lite_rounds": (
        "input x: int8[4x1x256] q(0.02, 5)",
        f"y: int8[4x1x256] q(0.017, 9) = MatMul({ONES}, x; round_once=False)",
    ),
    "the_number_on_the_right": (
        "input x: int8[4x256x1] q(0.02, 5)",
        f"y: int8[4x256x1] q(0.03, -7) = MatMul(x, {ONES}; round_once=True)",
    ),
}
KEPT = {
    "two_numbers": (
        "input x: int8[2x1x256] q(0.02, 5)",
        "y: int8[2x1x256] q(0.02, -7) = MatMul(const int8[2x1x1] q(0.01, 0) {3 4}, x; round_once=True)",
    ),
    "two_keys": (
        "input x: int8[1x2x256] q(0.02, 5)",
        "y: int8[1x1x256] q(0.02, -7) = MatMul(const int8[1x1x2] q(0.01, 0) {3 3}, x; round_once=True)",
    ),
    "rows_that_are_repeated": (
        "input x: int8[1x1x256] q(0.02, 5)",
        "y: int8[1x2x256] q(0.02, -7) = MatMul(const int8[1x2x1] q(0.01, 0) {3 3}, x; round_once=True)",
    ),
    "floats": (
        "input x: float32[1x1x256]",
        "y: float32[1x1x256] = MatMul(const float32[1x1x1] {3}, x; round_once=False)",
    ),
}


def graph_of(lines: tuple[str, ...]) -> Graph:
    graph = parse("graph g\n" + "".join(f"  {line}\n" for line in (*lines, "output y")))
    verify(graph, "parse")
    return graph


@pytest.mark.parametrize("name", TABULATED)
def test_the_table_computes_the_same(name: str) -> None:
    before = graph_of(TABULATED[name])
    after = tabulate_products(before)
    verify(after, "tabulate_products")
    (node,) = after.nodes
    assert isinstance(node.op, Lookup)
    every = {"x": np.tile(np.arange(-128, 128).astype(np.int8), 4).reshape(before.tensors["x"].shape)}
    found, wanted = interpret(after, every)["y"], interpret(before, every)["y"]
    assert len(set(wanted.reshape(-1).tolist())) > 100
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", KEPT)
def test_stays(name: str) -> None:
    before = graph_of(KEPT[name])
    assert tabulate_products(before).is_unchanged(before)
