# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions and dense layers of many geometries by every kernel that accepts them, not only the first.

``test_layers_by_others.py`` compares the same layers with somebody else's runtimes.

The cores' own kernels (DSP, Helium, CMSIS-NN) run other layers, in tests/standalone/test_kernels.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.depth import is_deep
from tests.support.any_plan import any_plan
from tests.support.batch import Item, run_batch
from tests.support.block_layers import KERNELS
from tests.support.layer_kinds import KINDS, REAL, as_kind, random_values, same
from tests.support.weighted_layers import Layers, sampled
from tinyml.cores.targets import find_target
from tinyml.emit.model import Provenance
from tinyml.ir import Array, Graph, Node, Op
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.ops.framework import kernel
from tinyml.ops.framework.kernel import Kernel, Library, kernels_of
from tinyml.pipeline import Options, compile_graph

COUNT = 50
FEWER = COUNT if is_deep() else 10
"""Of them in `make test`; all for a kernel that accepts none of these."""
HOST = find_target("host")


def accepted(graph: Graph, candidate: Kernel[Any], op: type[Op]) -> Graph:
    graph = replace(graph, nodes=tuple(map(preferring_few, graph.nodes)))
    nodes = [n for n in graph.nodes if type(n.op) is op and candidate.refusal(graph.layer(n)) is None]
    names = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    return replace(
        graph,
        nodes=tuple(nodes),
        tensors={name: t for name, t in graph.tensors.items() if name in names},
        inputs=tuple(name for name in graph.inputs if name in names),
        outputs=tuple(node.outputs[0] for node in nodes),
    )


def preferring_few(node: Node) -> Node:
    """The same layer, which kernels for few or short filters accept too."""
    return replace(node, op=replace(node.op, few=True)) if isinstance(node.op, Conv | Dense) else node


def pairs() -> Iterator[tuple[type[Op], Kernel[Any]]]:
    for op in (Conv, DepthwiseConv, Dense, ConvTranspose):
        for candidate in kernels_of(op):
            usable = candidate.library is not Library.CMSIS_NN and candidate.runs_on(HOST)
            # tests/standalone/test_block_weights.py and test_float16_sums.py run those
            if usable and candidate.name not in KERNELS and not candidate.adds_in_float16:
                yield op, candidate


Programs = tuple[list[Item], dict[str, tuple[Graph, dict[str, Array]]]]


def programs(op: type[Op], candidate: Kernel[Any], count: int) -> Programs:
    """The layers that a kernel accepts, of so many geometries, as C; and as graphs with their inputs."""
    rng = np.random.default_rng(1)
    items: list[Item] = []
    expected: dict[str, tuple[Graph, dict[str, Array]]] = {}
    for once in (False, True):
        layers = Layers()
        for name, case in sampled(count).items():
            layers.weighted(name, case, once)
        for kind in KINDS:
            graph = accepted(as_kind(layers.graph(), kind), candidate, op)
            if not graph.nodes or (once and kind in REAL):
                continue
            for part, first in enumerate(range(0, len(graph.nodes), 60)):
                chosen = replace(graph, nodes=graph.nodes[first : first + 60])
                chosen = accepted(chosen, candidate, op)
                feed = {name: random_values(rng, graph.tensors[name]) for name in chosen.inputs}
                name = f"{kind}_{int(once)}_{part}"
                origin = Provenance("layers", "0" * 64, "")
                options = Options(target="host", kernels="portable", bands=False)
                with any_plan():
                    compiled = compile_graph(chosen, name, origin, options)
                items.append(Item(name, compiled.files, [feed]))
                expected[name] = (chosen, feed)
    return items, expected


@pytest.mark.parametrize(
    "op,candidate", list(pairs()), ids=lambda value: getattr(value, "name", None) or value.__name__
)
def test_kernel(op: type[Op], candidate: Kernel[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernel._KERNELS, op, (candidate,))
    monkeypatch.setattr(type(candidate), "weight_bits", 8)  # taken without another kernel to compare with
    items, expected = programs(op, candidate, FEWER)
    if not items:
        items, expected = programs(op, candidate, COUNT)
    assert items, f"{candidate.name} accepts none of the layers"
    problems = []
    for name, outcome in run_batch(items, group=1).items():
        graph, feed = expected[name]
        if outcome.failure:
            problems.append(f"{name}: {outcome.failure}")
            continue
        for node in graph.nodes:
            values = [feed.get(n, graph.tensors[n].data) for n in node.inputs]
            (wanted,) = node.op.evaluate(graph.layer(node), values)
            if not same(outcome.outputs[0][node.outputs[0]], wanted):
                problems.append(f"{name}: {node.name}: {node.op}")
    assert not problems, "\n".join(problems)
