# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What each pass saved, for the report: nodes, multiply-accumulates and bytes of constants."""

from __future__ import annotations

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Graph


@dataclass(frozen=True)
class Size:
    """The size of a graph."""

    nodes: int
    macs: int
    weights_bytes: int

    @staticmethod
    def of(graph: Graph) -> Size:
        used = {name for node in graph.nodes for name in node.inputs if name}
        constants = [t for name, t in graph.tensors.items() if name in used and t.is_constant]
        macs = sum(layer.op.macs(layer) for layer in graph.layers())
        return Size(len(graph.nodes), macs, sum(t.bytes for t in constants))


@dataclass(frozen=True)
class Saving:
    """A graph before and after one pass."""

    step: str
    before: Size
    after: Size

    def __bool__(self) -> bool:
        """Whether anything was saved (a pass may also only rearrange)."""
        return self.before != self.after


class Ledger:
    """Records what each stage changed, from the graph after it."""

    def __init__(self) -> None:
        self._graph: Graph | None = None
        self._last: Size | None = None
        self.entries: list[Saving] = []

    def note(self, stage: str, graph: Graph) -> None:
        if graph is self._graph:
            return
        self._graph, size = graph, Size.of(graph)
        if self._last is not None:
            entry = Saving(stage, self._last, size)
            if entry:
                self.entries.append(entry)
        self._last = size
