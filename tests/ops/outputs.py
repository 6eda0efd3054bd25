# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Outputs of models that are also inputs, constants, other outputs or operands, under names that clash."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.support.cases import Case, Const, onnx_nodes_case
from tests.support.data import real

X, Y, C, D = (real(2, 3, seed=seed) for seed in range(4))

CASES: list[Case] = [
    onnx_nodes_case("input", [helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["y", "x"]),
    onnx_nodes_case(
        "constant", [helper.make_node("Relu", ["x"], ["y"])], {"x": X, "c": Const(C)}, ["c", "y"]
    ),
    onnx_nodes_case(
        "copies",
        [
            helper.make_node("Identity", ["x"], ["a"]),
            helper.make_node("Identity", ["a"], ["b"]),
            helper.make_node("Relu", ["a"], ["c"]),
            helper.make_node("Relu", ["b"], ["d"]),
        ],
        {"x": X},
        ["d", "a", "c", "b"],
    ),
    onnx_nodes_case(
        "operand",
        [
            helper.make_node("Relu", ["x"], ["a"]),
            helper.make_node("Neg", ["a"], ["b"]),
            helper.make_node("Concat", ["a", "a", "b"], ["c"], axis=0),
        ],
        {"x": X},
        ["c", "a", "b"],
    ),
    onnx_nodes_case(
        "absent",
        [
            helper.make_node("LayerNormalization", ["x", "c"], ["y", "", ""]),
            helper.make_node("Clip", ["y", "", "high"], ["z"]),
        ],
        {"x": X, "c": Const(C[0]), "high": Const(np.float32(0.1))},
        ["z"],
    ),
    onnx_nodes_case(
        "name_of_another_constant",
        [helper.make_node("Add", ["x", "c/inner"], ["y"]), helper.make_node("Add", ["y", "c"], ["z"])],
        {"x": X, "c": Const(C), "c/inner": Const(D)},
        ["z", "c"],
    ),
    onnx_nodes_case(
        "name_of_a_constant",
        [helper.make_node("Add", ["x", "x/out"], ["y"])],
        {"x": X, "x/out": Const(C)},
        ["y", "x"],
    ),
    onnx_nodes_case(
        "name_of_another_input",
        [helper.make_node("Add", ["x", "x/out"], ["y"])],
        {"x": X, "x/out": Y},
        ["x/out", "y", "x"],
    ),
]
