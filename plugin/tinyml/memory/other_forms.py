# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers as other operators that compute the same, where these take clearly fewer instructions.

``Op.other_form`` says what they are: a convolution of one channel is also a depthwise one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tinyml.cores import core_data
from tinyml.cores.targets import Target
from tinyml.ir import Graph, Layer, Node, Tensor
from tinyml.memory.select import Selected, memory_bytes
from tinyml.ops.framework.kernel_costs import by_loops, instructions

CLEARLY = 0.9
"""The part of a layer's instructions that another form may take: figures are not exact."""

CODE_OF_A_PERCENT = 64
"""Bytes of code that may be linked for each percent of a run that is saved."""

Form = tuple[Node, Sequence[Tensor]]
Choose = Callable[[Graph], Sequence[Selected]]
"""Selects the kernels of a graph."""


def with_other_forms(
    graph: Graph,
    chosen: Sequence[Selected],
    choose: Choose,
    target: Target,
    room: float = math.inf,
    any_code: bool = False,
) -> Graph | None:
    """The graph with the other forms of those layers that clearly gain by it.

    ``chosen`` are the kernels of the graph. Layers that do not fit into ``room`` bytes of arena stay. None if
    there are none, or if they save too little of a run for the code that they link, unless ``any_code`` is
    allowed.
    """
    forms = (_form(graph.layer(node), node) for node in graph.nodes)
    others = {step: form for step, form in enumerate(forms) if form is not None}
    if not others:
        return None
    better = _in_place(graph, others)
    rivals = choose(better)
    saved = 0.0
    for step in list(others):
        now, then = _spent(chosen[step], target), _spent(rivals[step], target)
        fits = _bytes(rivals[step], target) <= room
        if not fits or now is None or then is None or then > CLEARLY * now:
            del others[step]
        else:
            saved += now - then
    mixed = [rivals[step] if step in others else one for step, one in enumerate(chosen)]
    grown = _code_bytes(mixed, target) - _code_bytes(chosen, target)
    total = sum(_spent(one, target) or 0 for one in chosen)
    if not others or (not any_code and grown * total > 100 * saved * CODE_OF_A_PERCENT):
        return None
    return _in_place(graph, others)


def _form(layer: Layer, node: Node) -> Form | None:
    """The other operator in place of a node, and its new constants."""
    found = layer.op.other_form(layer)
    if found is None:
        return None
    op, inputs = found
    known = {id(tensor) for tensor in layer.inputs}
    new = [tensor for tensor in inputs if tensor is not None and id(tensor) not in known]
    names = tuple("" if tensor is None else tensor.name for tensor in inputs)
    return replace(node, op=op, inputs=names), new


def _in_place(graph: Graph, others: Mapping[int, Form]) -> Graph:
    """The graph with other nodes at these steps."""
    nodes = [others[step][0] if step in others else node for step, node in enumerate(graph.nodes)]
    return graph.with_nodes(nodes, [tensor for _, new in others.values() for tensor in new])


def _spent(one: Selected, target: Target) -> float | None:
    """Instructions of a layer, by the loops of its kernel where these are described."""
    figures = core_data.measured(target.name)["instructions"].get("loops", {})
    found = by_loops(figures, one.kernel, one.layer, target)
    return instructions(one.kernel, one.layer, target) if found is None else found


def _bytes(one: Selected, target: Target) -> int:
    """What the arena holds while the layer runs, at least."""
    return one.layer.input(0).bytes + memory_bytes(one.kernel, one.layer, target)


def _code_bytes(chosen: Sequence[Selected], target: Target) -> int:
    functions = {name for one in chosen for name in one.kernel.functions(one.layer)}
    return core_data.linked_bytes(target.name, functions)
