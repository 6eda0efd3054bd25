# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A graph being rewritten: lets a pass find patterns and replace nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from tinyml.ir import Array, Graph, Layer, Node, Op, Quant, Tensor, TensorType


class Editor:
    """Mutable working copy of a graph. Start from a graph, edit it, and call ``graph()`` at the end.

    Every node has a slot, and its replacements take the same slot. Each edit updates producers and readers,
    so its cost depends on the size of the change, not of the graph.
    """

    def __init__(self, graph: Graph) -> None:
        self._source = graph
        self.tensors: dict[str, Tensor] = dict(graph.tensors)
        self.outputs: list[str] = list(graph.outputs)
        self.states = list(graph.states)
        self._slots: list[list[Node]]
        self._slot_of: dict[int, int]  # by id(node); equal nodes may occur twice
        self._producers: dict[str, Node]
        self._readers: dict[str, dict[int, Node]]
        self._kept: set[str] = set()
        self.nodes = list(graph.nodes)

    # --- looking -------------------------------------------------------------------------------

    @property
    def nodes(self) -> list[Node]:
        """All nodes in order. Assigning a list replaces them."""
        return [node for slot in self._slots for node in slot]

    @nodes.setter
    def nodes(self, nodes: Iterable[Node]) -> None:
        entered = list(nodes)
        self._slots = [[node] for node in entered]
        self._slot_of = {id(node): slot for slot, node in enumerate(entered)}
        self._producers = {name: node for node in entered for name in node.outputs}
        self._readers = {}
        for node in entered:
            for name in node.inputs:
                if name:
                    self._readers.setdefault(name, {})[id(node)] = node
        self._note_kept()

    def sweep(self) -> Iterator[Node]:
        """The nodes in order, including the effects of edits made during the sweep."""
        for slot in range(len(self._slots)):
            for node in list(self._slots[slot]):
                if self.has(node):
                    yield node

    def has(self, node: Node) -> bool:
        """Whether a node is still part of the graph."""
        return id(node) in self._slot_of

    def order(self, node: Node) -> tuple[int, int]:
        """By which nodes are sorted as they are computed."""
        slot = self._slot_of[id(node)]
        return slot, self._index_in(slot, node)

    def producer(self, name: str) -> Node | None:
        """The node that computes a tensor; None for inputs, states and constants."""
        return self._producers.get(name)

    def readers(self, name: str) -> list[Node]:
        return list(self._readers.get(name, {}).values())

    def is_kept(self, name: str) -> bool:
        """Whether the tensor is used outside the nodes, as an output or a state update."""
        return name in self._kept

    def only_reader(self, name: str) -> Node | None:
        """The only reader of a tensor that is not kept; None otherwise."""
        readers = self._readers.get(name, {})
        return next(iter(readers.values())) if len(readers) == 1 and not self.is_kept(name) else None

    def layer(self, node: Node) -> Layer:
        return Layer.of(node, self.tensors)

    # --- editing -------------------------------------------------------------------------------

    def fresh(self, hint: str) -> str:
        name, count = hint, 0
        while name in self.tensors:
            count += 1
            name = f"{hint}.{count}"
        return name

    def constant(self, hint: str, data: Array, quant: Quant | None = None) -> Tensor:
        tensor = Tensor.constant(self.fresh(hint), data, quant)
        self.tensors[tensor.name] = tensor
        return tensor

    def tensor(self, hint: str, type_: TensorType) -> Tensor:
        tensor = Tensor.of(self.fresh(hint), type_)
        self.tensors[tensor.name] = tensor
        return tensor

    def make(
        self, name: str, op: Op, inputs: Sequence[Tensor], type_: TensorType | None = None
    ) -> tuple[Node, Tensor]:
        """A new node with one new output, not yet part of the graph."""
        output = self.tensor(f"{name}/{op.kind}", type_ or op.infer(inputs)[0])
        return Node(name, op, tuple(t.name for t in inputs), (output.name,)), output

    def replace(self, old: Node | Sequence[Node], new: Iterable[Node]) -> None:
        """Put ``new`` nodes, of which some may be old ones, where (the last of) the ``old`` ones stood."""
        olds, news = [old] if isinstance(old, Node) else list(old), list(new)
        last = max(olds, key=self.order)
        slot = self._slot_of[id(last)]
        behind = len(self._slots[slot]) - self._index_in(slot, last) - 1
        for node in olds:
            self._leave(node)
        place = len(self._slots[slot]) - behind
        for number, node in enumerate(news):
            self._enter(node, slot, place + number)

    def remove(self, node: Node) -> None:
        self._leave(node)

    def remove_unread(self, node: Node) -> bool:
        """Remove a node if its results are unused; return whether it was removed."""
        unread = not any(self._readers.get(name) or self.is_kept(name) for name in node.outputs)
        if unread and self.has(node):
            self._leave(node)
        return unread

    def bypass(self, node: Node, index: int = 0) -> bool:
        """Remove a node whose only output equals its input ``index``; return whether that was possible.

        An output of the model keeps its name, so the producer of the input then computes it directly, and
        the other readers of the input read the output.
        """
        source, result = node.inputs[index], node.outputs[0]
        if not self.is_kept(result):
            self.remove(node)
            self.substitute(result, source)
            return True
        before = self.producer(source)
        if before is None or self.is_kept(source):
            return False
        outputs = tuple(result if name == source else name for name in before.outputs)
        self.remove(node)
        self.replace(before, [replace(before, outputs=outputs)])  # in its place: it may have other readers
        self.substitute(source, result)
        return True

    def substitute(self, old: str, new: str) -> None:
        """Make all readers of tensor ``old`` read ``new``."""
        for node in self.readers(old):
            inputs = tuple(new if name == old else name for name in node.inputs)
            self.replace(node, [replace(node, inputs=inputs)])
        self.outputs = [new if name == old else name for name in self.outputs]
        self.states = [replace(s, update=new) if s.update == old else s for s in self.states]
        self._note_kept()

    def retype(self, name: str, type_: TensorType) -> None:
        """Give a computed tensor another shape, type or quantisation."""
        self.tensors[name] = Tensor.of(name, type_)

    def graph(self) -> Graph:
        """The edited graph; the one it started from if nothing is different, as after most passes."""
        nodes = self.nodes
        if self._is_source(nodes):
            return self._source
        source = replace(self._source, outputs=tuple(self.outputs), states=tuple(self.states))
        return source.with_nodes(nodes, self.tensors.values())

    def _is_source(self, nodes: Sequence[Node]) -> bool:
        source = self._source
        pairs = ((nodes, source.nodes), (self.states, source.states))
        return (
            all(len(own) == len(others) for own, others in pairs)
            and all(one is other for own, others in pairs for one, other in zip(own, others, strict=True))
            and tuple(self.outputs) == source.outputs
            and len(self.tensors) == len(source.tensors)
            and all(source.tensors.get(name) is tensor for name, tensor in self.tensors.items())
            and source.uses_all_tensors
        )

    # --- bookkeeping ---------------------------------------------------------------------------

    def _index_in(self, slot: int, node: Node) -> int:
        return next(i for i, other in enumerate(self._slots[slot]) if other is node)

    def _enter(self, node: Node, slot: int, place: int = 0) -> None:
        self._slots[slot].insert(place, node)
        self._slot_of[id(node)] = slot
        for name in node.outputs:
            self._producers[name] = node
        for name in node.inputs:
            if name:
                self._readers.setdefault(name, {})[id(node)] = node

    def _leave(self, node: Node) -> None:
        slot = self._slot_of.pop(id(node))
        del self._slots[slot][self._index_in(slot, node)]
        for name in node.outputs:
            if self._producers.get(name) is node:
                del self._producers[name]
        for name in node.inputs:
            self._readers.get(name, {}).pop(id(node), None)

    def _note_kept(self) -> None:
        self._kept = {*self.outputs, *(state.update for state in self.states)}


def sweep_until_stable(edit: Editor, rule: Callable[[Editor, Node], bool]) -> None:
    """Apply a rule, which returns whether it changed something, to all nodes until nothing changes."""
    changed = True
    while changed:
        changed = False
        for node in edit.sweep():
            changed |= rule(edit, node)
