"""A graph being rewritten: what a pass needs to find patterns and replace nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tinyml.ir import Array, Graph, Layer, Node, Op, Quant, Tensor, TensorType


class Editor:
    """Mutable working copy of a graph. Start from a graph, edit, and take ``graph()`` at the end."""

    def __init__(self, graph: Graph) -> None:
        self._source = graph
        self.nodes: list[Node] = list(graph.nodes)
        self.tensors: dict[str, Tensor] = dict(graph.tensors)
        self.outputs: list[str] = list(graph.outputs)
        self.states = list(graph.states)
        self._index()

    def _index(self) -> None:
        self._producers = {name: node for node in self.nodes for name in node.outputs}
        self._readers: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name:
                    self._readers.setdefault(name, []).append(node)
        self._kept = {*self.outputs, *(state.update for state in self.states)}

    # --- looking -------------------------------------------------------------------------------

    def producer(self, name: str) -> Node | None:
        """The node that computes a tensor; None for inputs, states and constants."""
        return self._producers.get(name)

    def readers(self, name: str) -> list[Node]:
        return self._readers.get(name, [])

    def is_kept(self, name: str) -> bool:
        """Whether somebody outside the nodes looks at the tensor (an output or a state update)."""
        return name in self._kept

    def only_reader(self, name: str) -> Node | None:
        """The one node that reads a tensor nobody else looks at."""
        readers = self.readers(name)
        return readers[0] if len(readers) == 1 and not self.is_kept(name) else None

    def layer(self, node: Node) -> Layer:
        return Layer(
            node.name,
            node.op,
            tuple(self.tensors[name] if name else None for name in node.inputs),
            tuple(self.tensors[name] for name in node.outputs),
        )

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
        """Put ``new`` nodes where (the last of) the ``old`` ones stood."""
        olds = [old] if isinstance(old, Node) else list(old)
        place = max(self.nodes.index(node) for node in olds)
        self.nodes[place : place + 1] = [*new]
        gone = {id(node) for node in olds}
        self.nodes = [node for node in self.nodes if id(node) not in gone]
        self._index()

    def substitute(self, old: str, new: str) -> None:
        """Everybody who read tensor ``old`` reads ``new`` from now on."""
        self.nodes = [
            replace(node, inputs=tuple(new if name == old else name for name in node.inputs))
            if old in node.inputs
            else node
            for node in self.nodes
        ]
        self.outputs = [new if name == old else name for name in self.outputs]
        self.states = [replace(s, update=new) if s.update == old else s for s in self.states]
        self._index()

    def retype(self, name: str, type_: TensorType) -> None:
        """Give a computed tensor another shape, type or quantisation."""
        self.tensors[name] = Tensor.of(name, type_)

    def graph(self) -> Graph:
        source = replace(self._source, outputs=tuple(self.outputs), states=tuple(self.states))
        return source.with_nodes(self.nodes, self.tensors.values())
