# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which nodes are needed only if a condition holds at run time: those behind one operand of a Choose.

A graph computes both branches of an If. Operators have no side effects, so a node whose results only the
branch that is not taken would use may be skipped. That is found here, after all passes, from the graph alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from tinyml.ir.graph import Graph
from tinyml.ir.op import Node

Literal = tuple[str, bool]  # a tensor with one truth value, and the value that it must have
Guard = frozenset[Literal]

ALWAYS: Guard = frozenset()


def guards(graph: Graph) -> list[Guard]:
    """For each node of the graph, what must hold for its results to be used; nothing for most."""
    if not any(node.op.chooses for node in graph.nodes):
        return [ALWAYS] * len(graph.nodes)
    needed: dict[str, Guard] = dict.fromkeys(graph.kept(), ALWAYS)
    found: list[Guard] = []
    for node in reversed(graph.nodes):
        own = _common(needed[name] for name in node.outputs if name in needed)
        found.append(own)
        for index, name in enumerate(node.inputs):
            if name:
                use = own | _chosen(node, index)
                needed[name] = needed[name] & use if name in needed else use
    return found[::-1]


def conditions_of(graph: Graph) -> list[list[Literal]]:
    """For each node of the graph, the conditions of its guard that are computed before it.

    They are in the order in which they are computed: an inner one may be skipped with its branch. A condition
    that is computed after a node cannot spare it.
    """
    position = {name: step for step, node in enumerate(graph.nodes) for name in node.outputs}

    def place(literal: Literal) -> int:
        return position.get(literal[0], -1)

    return [
        sorted((one for one in guard if place(one) < step), key=lambda one: (place(one), one))
        for step, guard in enumerate(guards(graph))
    ]


def _chosen(node: Node, index: int) -> Guard:
    if not node.op.chooses or index == 0:
        return ALWAYS
    return frozenset({(node.inputs[0], index == 1)})


def _common(guards: Iterable[Guard]) -> Guard:
    """What holds in all cases; always, for results that nothing uses."""
    known = list(guards)
    return frozenset.intersection(*known) if known else ALWAYS
