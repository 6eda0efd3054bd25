# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Masks between scores and softmax that widen the range of scores, so that int8 has few steps for the rest.

Such a sum stays float. The scores before it and the weights after it are int8, and the compiler computes a
softmax of both as a table if it can prove that the mask hides keys.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx

from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize.calibrate import Ranges
from tinyml.quantize.constants import constants

WIDER = 2.0
"""A range this many times as wide as that of the scores costs one of their eight bits, or more."""

COARSE = 16.0
"""In a narrower range, a step of int8 changes a weight by less than 6 %."""


def widened(model: onnx.ModelProto, ranges: Ranges) -> frozenset[str]:
    """Nodes from the scores to a softmax, if a mask between them takes their resolution."""
    fixed = constants(model).keys()
    producers = {name: node for node in model.graph.node for name in node.output}
    found: set[str] = set()
    for softmax in (node for node in model.graph.node if node.op_type == "Softmax"):
        passed, name = [softmax.name], softmax.input[0]
        while (node := producers.get(name)) is not None:
            scores = _scores(node, ranges, fixed)
            if scores is None:
                break
            passed.append(node.name)
            if not quantizing(node.op_type).moves and _widens(ranges.get(name), ranges.get(scores)):
                found.update(passed)
            name = scores
    return frozenset(found)


def _scores(node: onnx.NodeProto, ranges: Ranges, fixed: Collection[str]) -> str | None:
    """The scores that a node masks or moves; None if it does something else."""
    if node.op_type in ("Add", "Where"):
        scores = [name for name in node.input[-2:] if not _masks(name, ranges, fixed)]
        return scores[0] if len(scores) == 1 else None
    return node.input[0] if quantizing(node.op_type).moves and len(node.output) == 1 else None


def _masks(name: str, ranges: Ranges, fixed: Collection[str]) -> bool:
    """Whether this is a constant, or what keeps some scores and lowers the others."""
    return name in fixed or (name in ranges and ranges[name][0] < 0 == ranges[name][1])


def _widens(after: tuple[float, float] | None, before: tuple[float, float] | None) -> bool:
    if after is None or before is None:
        return False
    return after[1] - after[0] > max(COARSE, WIDER * (before[1] - before[0]))
