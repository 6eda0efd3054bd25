# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Counts what each stage of the compiler leaves. Imports quickly, because every compilation counts."""

from __future__ import annotations

from dataclasses import replace

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Graph


@dataclass(frozen=True)
class StageFacts:
    """The graph after a pass."""

    name: str  # of the pass; `import` is the graph as it was read
    layers: int  # that are left
    macs: int  # of one run
    constants_bytes: int  # of weights and tables


class Watch:
    """Called after each stage; records the size of the graph."""

    def __init__(self) -> None:
        self.stages: list[StageFacts] = []
        self._graph: Graph | None = None

    def __call__(self, name: str, graph: Graph) -> None:
        same = graph is self._graph  # as after most passes
        self.stages.append(replace(self.stages[-1], name=name) if same else _facts(name, graph))
        self._graph = graph


def _facts(name: str, graph: Graph) -> StageFacts:
    layers = list(graph.layers())
    constants: dict[str, Array] = {
        t.name: t.value for layer in layers for t in layer.inputs if t is not None and t.is_constant
    }
    return StageFacts(
        name,
        len(layers),
        sum(layer.op.macs(layer) for layer in layers),
        sum(array.nbytes for array in constants.values()),
    )
