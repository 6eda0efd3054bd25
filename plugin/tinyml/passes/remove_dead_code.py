# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Drop nodes whose results are not used."""

from __future__ import annotations

from tinyml.ir import Graph, Node


def remove_dead_code(graph: Graph) -> Graph:
    """Walk backwards from the outputs, and drop every node that is not reached."""
    needed = graph.kept()
    alive: list[Node] = []
    for node in reversed(graph.nodes):
        if any(name in needed for name in node.outputs):
            alive.append(node)
            needed.update(name for name in node.inputs if name)
    return graph.with_nodes(reversed(alive))
