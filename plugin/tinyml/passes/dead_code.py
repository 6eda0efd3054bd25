# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Drop nodes whose results nobody reads, and nodes that do nothing."""

from __future__ import annotations

from tinyml.ir import Graph, Node


def remove_dead_code(graph: Graph) -> Graph:
    """Walk backwards from what is kept; whatever is not reached goes."""
    needed = graph.kept()
    alive: list[Node] = []
    for node in reversed(graph.nodes):
        if any(name in needed for name in node.outputs):
            alive.append(node)
            needed.update(name for name in node.inputs if name)
    return graph.with_nodes(reversed(alive))
