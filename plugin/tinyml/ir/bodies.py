# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Graphs inside operators: what is done to a graph is done to them as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tinyml.ir.graph import Graph
from tinyml.ir.op import Node


def in_bodies(graph: Graph, change: Callable[[Graph], Graph]) -> Graph:
    """The graph with ``change`` applied to the graphs inside its operators, the innermost ones first."""

    def changed(node: Node) -> Node:
        body: Graph | None = node.op.inner_graph
        if body is None:
            return node
        after = change(in_bodies(body, change))
        return node if after.is_unchanged(body) else replace(node, op=node.op.with_inner_graph(after))

    if all(node.op.inner_graph is None for node in graph.nodes):
        return graph
    return graph.with_nodes(changed(node) for node in graph.nodes)
