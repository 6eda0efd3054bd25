# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Kernels with less working memory, where that makes the arena smaller: part of ``optimize: ram``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tinyml.base import limits
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Graph, Layer
from tinyml.memory.bands.banded import Banded
from tinyml.memory.bands.chains import Choice
from tinyml.memory.plan import lower_bound_bytes
from tinyml.memory.select import Selected, memory_bytes, rivals
from tinyml.ops.framework.kernel import Kernel, Library

WORTHWHILE_BYTES = 64
"""What slower kernels must save together: a run twice as long is too much for less."""


@dataclass(frozen=True)
class LessScratch:
    """Replaces kernels by others that take at most ``slower`` times as many instructions."""

    target: Target
    libraries: frozenset[Library]
    slower: float
    io_outside: bool

    def everywhere(self, choice: Choice) -> Choice:
        """The kernels with the least memory."""
        graph, selected = choice
        return graph, tuple(self._leanest(one) for one in selected)

    def undone(self, choice: Choice, before: Choice) -> Choice:
        """The kernels of ``before`` again wherever the arena stays about as small with them."""
        fast = {id(node.op): one.kernel for node, one in zip(before[0].nodes, before[1], strict=True)}
        size = lower_bound_bytes(*choice, self.io_outside) + WORTHWHILE_BYTES - 1
        for step, one in enumerate(choice[1]):
            for kernels in _attempts(one, fast):
                limits.check_time()
                other = self._with_kernels(choice[1][step], kernels)
                if other is None:
                    continue
                tried = _with(*choice, step, other)
                if lower_bound_bytes(*tried, self.io_outside, size) <= size:
                    choice = tried
                    if len(kernels) > 1:
                        break
        return choice

    def _with_kernels(self, one: Selected, kernels: Mapping[int, Kernel[Any]]) -> Selected | None:
        """A layer with another kernel, or a chain with other kernels of some links."""
        op = one.layer.op
        if not isinstance(op, Banded):
            return self._selected(one.layer, kernels[0])
        links = tuple(replace(link, kernel=kernels.get(i, link.kernel)) for i, link in enumerate(op.links))
        layer = replace(one.layer, op=replace(op, links=links))
        return self._selected(layer, one.kernel) if one.kernel.refusal(layer) is None else None

    def _leanest(self, one: Selected) -> Selected:
        others = rivals(one.kernel, one.layer, self.target, self.libraries, self.slower)
        kernels = (one.kernel, *(other for other in others if other.in_bands or not one.kernel.in_bands))
        kernel = min(kernels, key=lambda kernel: memory_bytes(kernel, one.layer, self.target))
        return self._selected(one.layer, kernel)

    def _selected(self, layer: Layer, kernel: Kernel[Any]) -> Selected:
        return Selected(layer, kernel, kernel.scratch_bytes(layer, self.target))


def _attempts(one: Selected, fast: Mapping[int, Kernel[Any]]) -> list[dict[int, Kernel[Any]]]:
    """Kernels to return to, by link: all of them, then one at a time. Some cannot be in bands."""
    op = one.layer.op
    banded = isinstance(op, Banded)
    now = [(link.op, link.kernel) for link in op.links] if isinstance(op, Banded) else [(op, one.kernel)]
    before = {i: fast.get(id(op), kernel) for i, (op, kernel) in enumerate(now)}
    changed = {
        i: kernel
        for i, kernel in before.items()
        if kernel is not now[i][1] and (kernel.in_bands or not banded)
    }
    return [changed, *({i: kernel} for i, kernel in changed.items() if len(changed) > 1)] if changed else []


def _with(graph: Graph, selected: tuple[Selected, ...], step: int, one: Selected) -> Choice:
    """The same layers, one of them with another kernel."""
    node = replace(graph.nodes[step], op=one.layer.op)
    return (
        replace(graph, nodes=(*graph.nodes[:step], node, *graph.nodes[step + 1 :])),
        (*selected[:step], one, *selected[step + 1 :]),
    )
