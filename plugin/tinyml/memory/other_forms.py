# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers as other operators that compute the same, where these take clearly fewer instructions.

``Op.other_forms`` says what they are: a convolution of one channel is also a depthwise one, and groups of few
channels are also fewer groups with zeros among their weights.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tinyml.cores import core_data
from tinyml.cores.targets import Target
from tinyml.ir import Graph, Layer, Node, Tensor
from tinyml.memory.select import Selected, code_bytes, memory_bytes
from tinyml.ops.framework.kernel_costs import ROUGH, by_loops, instructions, weighted
from tinyml.ops.framework.work import work

CLEARLY = 0.9
"""The part of a layer's instructions that another form may take: figures are not exact."""

AN_ADDRESS = 0.05
"""What an instruction counts for more in kernels that gather, for each address. To load a vector from 16
addresses is one instruction, but it accesses memory 16 times: 1.8 for each instruction of such a kernel.
"""

ROUGH_ELEMENTS = {"outputs": 8.0}
"""Of layers that multiply nothing and have no figures, for each output: on a Cortex-M4 from 4 for a table to
20 for a normalisation.
"""

CODE_OF_A_PERCENT = 64
"""Bytes of code that may be linked for each percent of a run that is saved."""

PADDING_OF_A_PERCENT = 512
"""Bytes that the weights of a layer may take more for each percent of a run that the layer saves."""

Form = tuple[Node, Sequence[Tensor]]
Choose = Callable[[Graph], Sequence[Selected]]
"""Selects the kernels of a graph."""


class Rival(NamedTuple):
    """Another form of a layer, which saves so many instructions."""

    saved: float
    selected: Selected
    form: Form


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
    forms = [list(_forms(graph.layer(node), node)) for node in graph.nodes]
    if not any(forms):
        return None
    found: dict[int, list[Rival]] = {}
    spent = [_spent(one, target) for one in chosen]
    total = sum(_roughly(one) if now is None else now for one, now in zip(chosen, spent, strict=True))
    a_percent = 0.0 if any_code else total / 100
    for number in range(max(map(len, forms), default=0)):
        others = {step: some[number] for step, some in enumerate(forms) if number < len(some)}
        rivals = choose(_in_place(graph, others))
        for step, form in others.items():
            now, then = spent[step], _spent(rivals[step], target)
            then = None if then is None else then * (1 + AN_ADDRESS * rivals[step].kernel.gathers)
            clearly = then is not None and then <= CLEARLY * (now or 0)
            if then is None or not clearly or _bytes(rivals[step], target) > room:
                continue
            saved, padded = (now or 0) - then, rivals[step].kernel.padded_bytes(rivals[step].layer)
            if saved * PADDING_OF_A_PERCENT >= padded * a_percent:
                found.setdefault(step, []).append(Rival(saved, rivals[step], form))
    if not found:
        return None
    best = _worth_their_code(found, chosen, target, a_percent / CODE_OF_A_PERCENT)
    return _in_place(graph, {step: one.form for step, one in best.items()}) if best else None


def _worth_their_code(
    found: Mapping[int, Sequence[Rival]], chosen: Sequence[Selected], target: Target, least: float
) -> dict[int, Rival]:
    """The rivals that save most, at least ``least`` instructions for each byte of code that they link.

    While they save too little, all together or one kernel beside the others, the new kernel that saves least
    is left out.
    """

    def without(left_out: set[str]) -> tuple[dict[int, Rival], float]:
        """The best of the others, and what they save beyond what their code must."""
        best = {}
        for step, rivals in found.items():
            if some := [one for one in rivals if one.selected.kernel.name not in left_out]:
                best[step] = max(some, key=lambda one: one.saved)
        mixed = [best[step].selected if step in best else one for step, one in enumerate(chosen)]
        grown = code_bytes(mixed, target) - code_bytes(chosen, target)
        return best, sum(one.saved for one in best.values()) - grown * least

    left_out: set[str] = set()
    known = {one.kernel.name for one in chosen}
    while True:
        best, gained = without(left_out)
        saved: defaultdict[str, float] = defaultdict(float)
        for one in best.values():
            saved[one.selected.kernel.name] += one.saved
        ordered = sorted(saved, key=lambda name: (name in known, saved[name]))
        useless = [name for name in ordered if without({*left_out, name})[1] > max(gained, 0.0)]
        if gained >= 0 and not useless:
            return best
        left_out.add((useless or ordered)[0])


def _forms(layer: Layer, node: Node) -> Iterator[Form]:
    """The other operators in place of a node, and their new constants."""
    known = {id(tensor) for tensor in layer.inputs}
    for op, inputs in layer.op.other_forms(layer):
        new = [tensor for tensor in inputs if tensor is not None and id(tensor) not in known]
        names = tuple("" if tensor is None else tensor.name for tensor in inputs)
        yield replace(node, op=op, inputs=names), new


def _in_place(graph: Graph, others: Mapping[int, Form]) -> Graph:
    """The graph with other nodes at these steps."""
    nodes = [others[step][0] if step in others else node for step, node in enumerate(graph.nodes)]
    return graph.with_nodes(nodes, [tensor for _, new in others.values() for tensor in new])


def _spent(one: Selected, target: Target) -> float | None:
    """Instructions of a layer, by the loops of its kernel where these are described."""
    found = by_loops(core_data.loops(target.name), one.kernel, one.layer, target)
    return instructions(one.kernel, one.layer, target) if found is None else found


def _roughly(one: Selected) -> float:
    """Instructions of a layer whose kernel has no figures."""
    amounts = work(one.layer)
    return weighted(ROUGH if amounts["macs"] else ROUGH_ELEMENTS, amounts)


def _bytes(one: Selected, target: Target) -> int:
    """What the arena holds while the layer runs, at least."""
    return one.layer.input(0).bytes + memory_bytes(one.kernel, one.layer, target)
