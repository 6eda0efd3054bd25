# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Results whose number depends on data, such as the boxes of a detector: int8 and float may find more

Such outputs cannot be compared element by element. What they are selected from can.
"""

from __future__ import annotations

import onnx

SELECTING = {"NonMaxSuppression": 2, "NonZero": 1, "Compress": 1, "Unique": 1}
"""Operators, and how many of their operands are what they select from."""


def selected(model: onnx.ModelProto) -> set[str]:
    """Everything that is computed from results of such operators."""
    found: set[str] = set()
    for node in model.graph.node:
        if node.op_type in SELECTING or not found.isdisjoint(node.input):
            found.update(node.output)
    return found


def candidates(model: onnx.ModelProto) -> list[str]:
    """What the first of these operators select from: scores before boxes, whose places decide nothing."""
    behind = selected(model)
    computed = {name for node in model.graph.node for name in node.output}
    operands = [
        name
        for node in model.graph.node
        if node.op_type in SELECTING
        for name in reversed(node.input[: SELECTING[node.op_type]])
    ]
    return list(dict.fromkeys(name for name in operands if name in computed - behind))
