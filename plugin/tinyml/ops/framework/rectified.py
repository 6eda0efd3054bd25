# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which tensors have many zeros and nothing below: without an FPU, products of zeros take half as long."""

from __future__ import annotations

from tinyml.ir import Graph, Op

POOLS = ("AveragePool", "MaxPool")


def rectified(graph: Graph) -> frozenset[str]:
    """The tensors that a layer has limited to zero, as ReLU does, and what is moved or pooled of them."""
    found: set[str] = set()
    for node in graph.nodes:
        passed_on = node.op.movement or node.op.kind in POOLS
        if ends_at_zero(node.op) or (passed_on and node.inputs[0] in found):
            found.update(node.outputs)
    return frozenset(found)


def ends_at_zero(op: Op) -> bool:
    low = getattr(op, "low", None) if op.kind == "Clamp" else getattr(op, "clamp", (None,))[0]
    return bool(low == 0)
