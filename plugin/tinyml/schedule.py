"""The order of execution, chosen for peak memory."""

from __future__ import annotations

from tinyml.ir import Graph


def schedule(graph: Graph) -> Graph:
    """The graph with its nodes in the order in which they will run."""
    return graph
