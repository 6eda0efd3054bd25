# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which node `verify` blames, and that it tells a node that differs from one that enlarges rounding."""

from __future__ import annotations

import numpy as np

from tinyml.compare.bisect import first_wrong_node
from tinyml.compare.difference import Tolerance
from tinyml.compare.reference import Answer
from tinyml.ir import Array, DType, Graph, Node, Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.unary import Unary

X = np.array([1.0, 0.5, 1e-6], np.float32)
SAMPLES = [{"x": X, "b": np.zeros(3, np.float32)}]
TOLERANCE = Tolerance(0, 1e-5)


def graph() -> Graph:
    """log(x + b)"""
    tensors = {name: Tensor(name, (3,), DType.FLOAT32) for name in ("x", "b", "sum", "y")}
    nodes = (Node("add", Binary("add"), ("x", "b"), ("sum",)), Node("log", Unary("log"), ("sum",), ("y",)))
    return Graph("logarithm", tensors, nodes, ("x", "b"), ("y",))


def blamed(total: Array, logarithm: Array) -> str:
    answer = Answer([logarithm], {"add": total, "log": logarithm})
    found = first_wrong_node(graph(), SAMPLES, [answer], TOLERANCE)
    assert found is not None
    return found


def test_a_node_that_enlarges_rounding() -> None:
    total = X + np.float32(2e-6)  # equal within the tolerance
    text = blamed(total, np.log(total))
    assert text.startswith("Unary 'log' is the first node that differs")
    assert "on the reference's own input it computes the same" in text


def test_a_node_that_differs_itself() -> None:
    text = blamed(X, np.log(X) + np.float32(0.1))
    assert text.startswith("Unary 'log' is the first node that differs")
    assert "own input" not in text


def test_a_node_on_the_inputs_of_the_model() -> None:
    text = blamed(X + np.float32(0.1), np.log(X))
    assert text.startswith("Binary 'add' is the first node that differs")
    assert "own input" not in text
