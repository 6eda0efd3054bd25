# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Counts what each stage of the compiler leaves. Imports quickly, because every compilation counts."""

from __future__ import annotations

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

    def __call__(self, name: str, graph: Graph) -> None:
        self.stages.append(_facts(name, graph))


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
