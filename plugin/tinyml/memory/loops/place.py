# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Gives each loop of a graph kernels for the layers of its body, an order of them, and a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

from tinyml.ir import Graph, Node
from tinyml.memory.loops.placed import PlacedLoop
from tinyml.memory.plan import Plan
from tinyml.memory.select import Selected
from tinyml.ops.framework.loop import Loop


def with_placed_loops(
    graph: Graph, lay_out: Callable[[Graph], tuple[Graph, tuple[Selected, ...], Plan]]
) -> Graph:
    """The graph with a ``PlacedLoop`` for each loop; ``lay_out`` places a body with the caller's buffers."""
    if not any(isinstance(node.op, Loop) for node in graph.nodes):
        return graph
    return graph.with_nodes(_placed(node, lay_out) for node in graph.nodes)


def _placed(node: Node, lay_out: Callable[[Graph], tuple[Graph, tuple[Selected, ...], Plan]]) -> Node:
    if not isinstance(node.op, Loop):
        return node
    body, selected, plan = lay_out(node.op.body)
    known = {field.name: getattr(node.op, field.name) for field in fields(Loop)}
    return replace(node, op=PlacedLoop(**{**known, "body": body}, selected=selected, plan=plan))
