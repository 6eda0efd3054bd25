# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers that depend on the bytes of one tensor become one table, with the same results for every byte."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tinyml.ops.catalog  # noqa: F401  the parser knows operators that are imported
from tests.support.interpret import interpret
from tinyml.ir import Graph
from tinyml.ir.text_parser import parse
from tinyml.ir.verifier import verify
from tinyml.ops.elementwise.lookup import Lookup
from tinyml.passes.tabulate_functions import MOST, tabulate_functions

FREE = "clamp=-infxinf"
HALF = "const int8[1] q(0.01, -20) {30}"


def binary(name: str, function: str, left: str, right: str, quant: str = "q(0.03, -7)") -> str:
    options = f"{FREE}, function={function}, round_once=True"
    return f"{name}: int8[1x256] {quant} = Binary({left}, {right}; {options})"


def real(name: str, function: str, left: str, right: str) -> str:
    return f"{name}: float32[1x256] = Binary({left}, {right}; {FREE}, function={function}, round_once=False)"


INPUT = "input x: int8[1x256] q(0.02, 5)"
PRODUCT = binary("a", "mul", "x", HALF)
SHIFTED = binary("b", "add", "a", "const int8[scalar] q(0.02, 3) {-40}", "q(0.05, 2)")
TABULATED: dict[str, tuple[str, ...]] = {
    "a_chain": (INPUT, PRODUCT, binary("y", "add", "a", HALF), "output y"),
    "the_tensor_read_twice": (INPUT, PRODUCT, SHIFTED, binary("y", "mul", "x", "b"), "output y"),
    "exact_floats_between_bytes": (
        INPUT,
        "r: float32[1x256] = Dequantize(x)",
        real("s", "div", "r", "const float32[scalar] {1.4142135}"),
        "b: int8[1x256] q(0.02, -3) = Quantize(s; dtype=int8, quant=q(0.02, -3), halves_to_even=True)",
        binary("y", "mul", "x", "b"),
        "output y",
    ),
}
KEPT: dict[str, tuple[str, ...]] = {
    "one_layer": (INPUT, binary("y", "mul", "x", HALF), "output y"),
    "two_tensors": (
        INPUT,
        "input z: int8[1x256] q(0.02, 5)",
        PRODUCT,
        binary("y", "mul", "a", "z"),
        "output y",
    ),
    "a_result_that_is_an_output": (INPUT, PRODUCT, binary("y", "add", "a", HALF), "output y", "output a"),
    "a_constant_for_each_element": (
        INPUT,
        PRODUCT,
        binary("y", "add", "a", "const int8[1x256] q(0.01, 2)"),
        "output y",
    ),
    "functions_of_floats": (  # no two libraries compute the same exponential
        INPUT,
        "r: float32[1x256] = Dequantize(x)",
        "s: float32[1x256] = Unary(r; function=exp, parameters=)",
        "y: int8[1x256] q(0.02, -3) = Quantize(s; dtype=int8, quant=q(0.02, -3), halves_to_even=True)",
        "output y",
    ),
    "results_that_are_not_numbers": (  # 0 / 0: the byte that they become depends on the CPU
        INPUT,
        "r: float32[1x256] = Dequantize(x)",
        real("s", "div", "r", "r"),
        "y: int8[1x256] q(0.02, -3) = Quantize(s; dtype=int8, quant=q(0.02, -3), halves_to_even=True)",
        "output y",
    ),
}


def graph_of(lines: tuple[str, ...]) -> Graph:
    graph = parse("graph g\n" + "".join(f"  {line}\n" for line in lines))
    verify(graph, "parse")
    return graph


@pytest.mark.parametrize("name", TABULATED)
def test_one_table_computes_the_same(name: str) -> None:
    before = graph_of(TABULATED[name])
    after = tabulate_functions(before)
    verify(after, "tabulate_functions")
    (node,) = after.nodes
    assert isinstance(node.op, Lookup)
    assert node.inputs == ("x",)
    every = {"x": np.arange(-128, 128).astype(np.int8).reshape(1, 256)}
    found, wanted = interpret(after, every)["y"], interpret(before, every)["y"]
    assert len(set(wanted.reshape(-1).tolist())) > 20
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", KEPT)
def test_stays(name: str) -> None:
    before = graph_of(KEPT[name])
    assert tabulate_functions(before).is_unchanged(before)


def test_long_chains_become_several_tables() -> None:
    names = ["x", *(f"t{i}" for i in range(2 * MOST)), "y"]
    lines = (binary(b, "mul", a, HALF) for a, b in pairwise(names))
    before = graph_of((INPUT, *lines, "output y"))
    after = tabulate_functions(before)
    assert 1 < len(after.nodes) <= 3
    every = {"x": np.arange(-128, 128).astype(np.int8).reshape(1, 256)}
    np.testing.assert_array_equal(interpret(after, every)["y"], interpret(before, every)["y"])
