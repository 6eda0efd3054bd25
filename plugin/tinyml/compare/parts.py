# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a graph: the nodes between tensors that two graphs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tinyml.ir import Array, Graph, Layer, Node
from tinyml.ir.interpreter import evaluate


@dataclass(frozen=True)
class Slice:
    """The nodes that compute ``output`` from ``inputs``."""

    graph: Graph
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    output: str

    def run(self, values: Mapping[str, Array], until: Node | None = None) -> Array:
        """The output, or the first operand of ``until``."""
        known = dict(values)
        for node in self.nodes:
            layer = self.graph.layer(node)
            if until is not None and node is until:
                first = layer.input(0)
                return first.value if first.is_constant else known[first.name]
            for tensor, array in zip(layer.outputs, evaluate(layer, known), strict=True):
                known[tensor.name] = array
        return known[self.output]

    @property
    def layers(self) -> list[Layer]:
        return [self.graph.layer(node) for node in self.nodes]


def slice_of(graph: Graph, output: str, cuts: set[str]) -> Slice:
    """What computes ``output``, back to tensors in ``cuts`` and to the inputs of the graph."""
    producers = {name: node for node in graph.nodes for name in node.outputs}
    needed: set[int] = set()  # nodes; several can have one name
    inputs: dict[str, None] = {}
    waiting = [output]
    while waiting:
        name = waiting.pop()
        if (name in cuts and name != output) or name not in producers:
            if not graph.tensors[name].is_constant:
                inputs[name] = None
            continue
        node = producers[name]
        if id(node) not in needed:
            needed.add(id(node))
            waiting += [one for one in node.inputs if one]
    chosen = tuple(node for node in graph.nodes if id(node) in needed)
    return Slice(graph, chosen, tuple(inputs), output)
