# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Graphs: a whole model, with its nodes in order and the state that persists between runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir.op import Layer, Node
from tinyml.ir.tensor import Array, Tensor


@dataclass(frozen=True)
class State:
    """Memory that persists from one run to the next."""

    tensor: str  # read: the value from the previous run
    update: str  # the tensor whose value it takes at the end of the run
    initial: Array | None = field(default=None, compare=False)  # None: all elements zero_point or 0


@dataclass(frozen=True)
class Count:
    """An output with fewer results than room: the first along ``axis``, as many as another output says."""

    output: str
    axis: int
    count: str


@dataclass(frozen=True)
class Graph:
    """A whole model. Nodes are in an order in which they can run."""

    name: str
    tensors: Mapping[str, Tensor]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    states: tuple[State, ...] = ()
    notes: tuple[str, ...] = ()  # what users must know about how the model was read
    labels: tuple[str, ...] = ()  # names of the classes, in the order of their numbers
    open_inputs: tuple[str, ...] = ()  # whose shape the file leaves open; --shape sets it
    counts: tuple[Count, ...] = ()  # of outputs; those of the file come first, then their numbers
    longest_loop: int = 0  # steps of one that was unrolled

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensors", MappingProxyType(dict(self.tensors)))

    def layer(self, node: Node) -> Layer:
        return Layer.of(node, self.tensors)

    def layers(self) -> Iterator[Layer]:
        return iter(self._layers)

    @cached_property
    def _layers(self) -> tuple[Layer, ...]:
        """Stages ask for all layers again and again, most often of a graph that none of them changed."""
        return tuple(self.layer(node) for node in self.nodes)

    def producers(self) -> dict[str, Node]:
        """Tensor name -> the node that computes it."""
        return {name: node for node in self.nodes for name in node.outputs}

    def consumers(self) -> dict[str, list[Node]]:
        """Tensor name -> the nodes that read it, in order (graph outputs are not nodes)."""
        readers: dict[str, list[Node]] = {name: [] for name in self.tensors}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name:
                    readers[name].append(node)
        return readers

    def kept(self) -> set[str]:
        """Tensors that are used outside the nodes: outputs and state updates."""
        return {*self.outputs, *(state.update for state in self.states)}

    def is_unchanged(self, since: Graph) -> bool:
        """Whether it has the very parts of another graph, so that what was checked there holds here too."""
        if self is since:
            return True
        texts = [(g.inputs, g.outputs, g.notes, g.labels, g.open_inputs, g.counts) for g in (self, since)]
        if texts[0] != texts[1]:
            return False
        pairs = ((self.nodes, since.nodes), (self.states, since.states))
        return (
            all(len(own) == len(others) for own, others in pairs)
            and all(one is other for own, others in pairs for one, other in zip(own, others, strict=True))
            and self.tensors.keys() == since.tensors.keys()
            and all(tensor is since.tensors[name] for name, tensor in self.tensors.items())
        )

    def padded(self, outputs: Sequence[Array]) -> list[Array]:
        """Outputs of another runtime, which have as many results as there are, as those of this graph."""
        found = dict(zip(self.outputs, outputs, strict=False))
        for known in self.counts:
            array = np.asarray(found[known.output])
            room = self.tensors[known.output].shape[known.axis] - array.shape[known.axis]
            found[known.count] = np.array([array.shape[known.axis]], np.int64)
            if room > 0:
                missing = [(0, room if axis == known.axis else 0) for axis in range(array.ndim)]
                found[known.output] = np.pad(array, missing)
        return [found[name] for name in self.outputs if name in found]

    @cached_property
    def uses_all_tensors(self) -> bool:
        """Whether ``with_nodes`` with its own nodes would drop none."""
        return self.tensors.keys() <= self._used_with(self.nodes)

    def _used_with(self, nodes: Iterable[Node]) -> set[str]:
        used = {name for node in nodes for name in (*node.inputs, *node.outputs) if name}
        return used | {*self.inputs, *self.kept(), *(state.tensor for state in self.states)}

    def with_nodes(self, nodes: Iterable[Node], new: Iterable[Tensor] = ()) -> Graph:
        """The same graph with other nodes and ``new`` or replaced tensors; unused tensors go."""
        nodes = tuple(nodes)
        table = {**self.tensors, **{tensor.name: tensor for tensor in new}}
        used = self._used_with(nodes)
        return replace(self, nodes=nodes, tensors={k: v for k, v in table.items() if k in used})
