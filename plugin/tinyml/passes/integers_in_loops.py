# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Give loops integers where their body quantises what it gets, and take integers that it dequantises.

A quantised body that was written for floats begins each turn with Quantize and ends it with Dequantize. What
a loop carries, reads and collects can be the integers themselves: then the conversions stand before the loop
and behind it, where they run once and other passes may remove them.
"""

from __future__ import annotations

from dataclasses import replace

from tinyml.ir import Graph, Node, Tensor
from tinyml.ops.framework.loop import Loop
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.reshape import Reshape
from tinyml.passes.editor import Editor


def integers_in_loops(graph: Graph) -> Graph:
    edit = Editor(graph)
    for node in edit.sweep():
        if isinstance(node.op, Loop):
            _move_conversions(edit, node, node.op)
    return edit.graph()


def _move_conversions(edit: Editor, node: Node, op: Loop) -> None:
    body = _Body(op.body)
    count = len(op.body.states)
    begins: dict[int, Quantize] = {}  # operands of the loop that become integers
    ends: set[int] = set()  # its results that do
    for place, state in enumerate(op.body.states):
        conversion, source = body.conversion(state.tensor), body.integers(state.update)
        if op.asks or conversion is None or source is None or not _fits(conversion, body.tensors[source]):
            continue  # a loop without a turn leaves the very floats that it got
        begins[place] = conversion
        ends.add(place)
        body.states[place] = replace(state, tensor=body.skip(state.tensor), update=body.end(source))
    for place, name in enumerate(op.body.inputs):
        conversion = body.conversion(name)
        if conversion is not None:
            begins[count + place] = conversion
            body.inputs[place] = body.skip(name)
    for place, name in enumerate(op.body.outputs):
        source = body.integers(name)
        if source is not None:
            ends.add(count + place)
            body.outputs[place] = body.end(source)
    if not begins and not ends:
        return
    made = [
        edit.make(node.name, begins[place], [edit.tensors[name]]) if place in begins else None
        for place, name in enumerate(node.inputs)
    ]
    loop = replace(op, body=body.graph())
    operands = [
        edit.tensors[name] if new is None else new[1] for name, new in zip(node.inputs, made, strict=True)
    ]
    results = [
        edit.tensor(f"{name}/{type_.dtype.value}", type_).name if place in ends else name
        for place, (name, type_) in enumerate(zip(node.outputs, loop.infer(operands), strict=True))
    ]
    behind = [
        Node(node.name, Dequantize(), (results[place],), (node.outputs[place],)) for place in sorted(ends)
    ]
    inside = Node(node.name, loop, tuple(tensor.name for tensor in operands), tuple(results))
    edit.replace(node, [*(new[0] for new in made if new is not None), inside, *behind])


def _fits(conversion: Quantize, integers: Tensor) -> bool:
    """Whether a state can stay as it is left: Quantize undoes Dequantize where float32 holds all integers."""
    same = (conversion.dtype, conversion.quant) == (integers.dtype, integers.quant)
    return same and integers.dtype.bytes <= 2


class _Body:
    """The body of a loop being rewritten."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.tensors: dict[str, Tensor] = dict(graph.tensors)
        self.states, self.inputs, self.outputs = list(graph.states), list(graph.inputs), list(graph.outputs)
        self._readers, self._producers = graph.consumers(), graph.producers()
        self._skipped: dict[str, str] = {}  # results of conversions that are left out: what stands for them
        self._copies: list[Node] = []

    def conversion(self, name: str) -> Quantize | None:
        """The conversion that all readers of a tensor are; None if there is another reader."""
        readers = self._readers[name]
        ops = [node.op for node in readers]
        if not ops or name in self._graph.kept() or any(op != ops[0] for op in ops):
            return None
        if any(output in self._ends() for node in readers for output in node.outputs):
            return None
        first = ops[0]
        return first if isinstance(first, Quantize) and not first.quant.per_channel else None

    def integers(self, name: str) -> str | None:
        """The integers from which a tensor that leaves the body is made."""
        node = self._producers.get(name)
        while node is not None and isinstance(node.op, Reshape):
            name = node.inputs[0]
            if self.tensors[name].shape != self.tensors[node.outputs[0]].shape:
                return None
            node = self._producers.get(name)
        if node is None or not isinstance(node.op, Dequantize):
            return None
        found = self.tensors[node.inputs[0]]
        per_tensor = found.quant is not None and not found.quant.per_channel
        return found.name if per_tensor and not found.is_constant else None

    def skip(self, name: str) -> str:
        """Leave out the conversions of a tensor; returns the name of the integers that come instead."""
        outputs = [node.outputs[0] for node in self._readers[name]]
        self._skipped.update(dict.fromkeys(outputs, outputs[0]))
        return outputs[0]

    def end(self, name: str) -> str:
        """A tensor with these integers that nothing else uses as its end."""
        name = self._skipped.get(name, name)
        given = {*self.inputs, *(state.tensor for state in self.states)}
        if name in self._producers and name not in {*given, *self._skipped, *self._ends()}:
            return name
        tensor = self.tensors[name]
        copy, number = f"{name}/copy", 1
        while copy in self.tensors:
            copy, number = f"{name}/copy.{number}", number + 1
        self.tensors[copy] = Tensor.of(copy, tensor.type)
        self._copies.append(Node(self._graph.name, Reshape(tensor.shape), (name,), (copy,)))
        return copy

    def _ends(self) -> set[str]:
        return {*self.outputs, *(state.update for state in self.states)}

    def graph(self) -> Graph:
        nodes = [
            replace(node, inputs=tuple(self._skipped.get(name, name) for name in node.inputs))
            for node in self._graph.nodes
            if self._skipped.keys().isdisjoint(node.outputs)
        ]
        whole = replace(
            self._graph,
            tensors=self.tensors,
            inputs=tuple(self.inputs),
            outputs=tuple(self.outputs),
            states=tuple(self.states),
        )
        return whole.with_nodes([*nodes, *self._copies])
