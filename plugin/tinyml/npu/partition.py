# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which operators go to the NPU together: as many as possible that need no CPU operator in between."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol, TypeVar

from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers.tflite_file import Subgraph


@dataclass(frozen=True)
class Part:
    """Operators by their number in the file, and the tensors that go in and out."""

    operators: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def partition(graph: Subgraph, on_npu: Collection[int]) -> list[Part]:
    """Parts of operators that are connected and between which no CPU operator has to run.

    Each operator gets a level, which grows wherever a tensor passes between CPU and NPU. Operators of one
    level never wait for each other's results by way of the other side.
    """
    levels = _levels(graph, on_npu)
    roots = {index: index for index in on_npu}

    def root(index: int) -> int:
        while roots[index] != index:
            index = roots[index]
        return index

    makers = {tensor: i for i, op in enumerate(graph.operators) for tensor in op.outputs}
    for index in sorted(on_npu):
        for tensor in graph.operators[index].inputs:
            maker = makers.get(tensor)
            if maker in roots and levels[maker] == levels[index]:
                roots[root(index)] = root(maker)
    members: dict[int, list[int]] = {}
    for index in sorted(on_npu):
        members.setdefault(root(index), []).append(index)
    return [_part(graph, found) for found in sorted(members.values())]


def _levels(graph: Subgraph, on_npu: Collection[int]) -> list[int]:
    made: dict[int, int] = {}
    levels: list[int] = []
    for index, op in enumerate(graph.operators):
        own = [made[tensor] for tensor in op.inputs if tensor in made]
        level = max((levels[m] + ((m in on_npu) != (index in on_npu)) for m in own), default=0)
        levels.append(level)
        made.update(dict.fromkeys(op.outputs, index))
    return levels


def _part(graph: Subgraph, members: Sequence[int]) -> Part:
    inside = [graph.operators[i] for i in members]
    made = {tensor for op in inside for tensor in op.outputs}
    taken = dict.fromkeys(t for op in inside for t in op.inputs if t >= 0 and t not in made)
    others = [op for i, op in enumerate(graph.operators) if i not in set(members)]
    used = {t for op in others for t in op.inputs} | {*graph.outputs}
    return Part(
        tuple(members),
        tuple(t for t in taken if graph.tensors[t].data is None),
        tuple(dict.fromkeys(t for op in inside for t in op.outputs if t in used)),
    )


class Step(Protocol):
    """Anything that computes tensors from others, by number or by name."""

    @property
    def inputs(self) -> Sequence[Any]: ...

    @property
    def outputs(self) -> Sequence[Any]: ...


S = TypeVar("S", bound=Step)


def in_order(steps: Sequence[S]) -> list[S]:
    """An order in which all can run, as near to the given one as possible."""
    waiting, ordered = [*steps], list[S]()
    makers = {tensor for step in waiting for tensor in step.outputs}
    done: set[Any] = set()
    while waiting:
        ready = next(one for one in waiting if all(t in done or t not in makers for t in one.inputs))
        waiting.remove(ready)
        ordered.append(ready)
        done.update(ready.outputs)
    return ordered
