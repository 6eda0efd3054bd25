# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers compute only the rows that something reads: of a sequence whose last step is used, not all steps."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field, replace
from math import prod

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Graph, Layer, Node, Tensor
from tinyml.ops.reshape import Reshape
from tinyml.ops.slice import Slice
from tinyml.passes._row_ties import Rows, Tie, narrowed, parts, reads, ties_of, whole
from tinyml.passes._row_windows import joined


def narrow_rows(graph: Graph) -> Graph:
    """slice(conv(conv(x))) → conv(conv(slice(x))), with strides where only some of the rows are read.

    A temporal convolutional network ends with its last step. Behind a dilated convolution, whole phases of
    the sequence are never read, and the layers before it need no dilation any more.
    """
    return _narrowed(graph, ())


def narrow_fed_rows(graph: Graph) -> Graph:
    """The same for a model whose inputs arrive in rows: the layers that read them get all of them.

    So do those after layers that put the elements in another order, or prepare them one by one.
    """
    fed = set(graph.inputs)
    for node in graph.nodes:
        if node.inputs and node.inputs[0] in fed and _is_preparation(graph.layer(node)):
            fed |= {*node.outputs}
    return _narrowed(graph, fed)


def _is_preparation(layer: Layer) -> bool:
    """Whether each element of the result comes from one of the first operand, and none is left out."""
    op, x = layer.op, layer.input(0)
    same = op.identity_of(layer) == 0 or op.elementwise or op.movement
    return same and len(layer.outputs) == 1 and layer.output.elements == x.elements


def _narrowed(graph: Graph, uncut: Collection[str]) -> Graph:
    """``uncut``: tensors of which no layer reads a part alone."""
    if not all(node.outputs for node in graph.nodes) or any(0 in t.shape for t in graph.tensors.values()):
        return graph  # rows are told apart by their first and last one
    ties = [ties_of(layer) for layer in graph.layers()]
    while True:
        needed = _needed(graph, ties)
        if all(
            needed[node.outputs[0]] == whole(graph.tensors[node.outputs[0]].shape) for node in graph.nodes
        ):
            return graph
        work = _Narrowing(graph, needed, uncut)
        barriers = [i for i, node in enumerate(graph.nodes) if not work.add(node, ties[i])]
        if not barriers:
            break
        for i in barriers:
            ties[i] = []
    result = work.graph()
    return result if _work(result) < _work(graph) else graph


def _needed(graph: Graph, ties: list[list[Tie]]) -> dict[str, Rows]:
    """By tensor, the rows that something reads; layers that would see only padding lose their ties."""
    kept = graph.kept()
    found: dict[str, Rows] = {name: whole(graph.tensors[name].shape) for name in kept}
    for i in reversed(range(len(graph.nodes))):
        node = graph.nodes[i]
        layer = graph.layer(node)
        for tensor in layer.outputs:
            found.setdefault(tensor.name, whole(tensor.shape))
        y = layer.output
        axes = {tie.out_axis for tie in ties[i]}
        rows = tuple(
            own if axis in axes else range(extent)
            for axis, (own, extent) in enumerate(zip(found[y.name], y.shape, strict=True))
        )
        if len(layer.outputs) > 1:
            found |= {tensor.name: whole(tensor.shape) for tensor in layer.outputs}
        else:
            found[y.name] = rows
        inputs = reads(layer, ties[i], found[y.name])
        if inputs is None:
            ties[i] = []
            found[y.name] = whole(y.shape)
            inputs = reads(layer, [], found[y.name])
            assert inputs is not None, "without ties, all is read"
        for name, own in zip(node.inputs, inputs, strict=True):
            if own is not None:
                before = found.get(name)
                found[name] = tuple(
                    joined(before[axis] if before else None, part) for axis, part in enumerate(own)
                )
    return found


@dataclass
class _Narrowing:
    """The graph that computes only the needed rows, node by node."""

    source: Graph
    needed: dict[str, Rows]
    uncut: Collection[str]
    nodes: list[Node] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)  # changed and new ones
    given: dict[str, Rows] = field(default_factory=dict)  # the rows of tensors that have fewer
    cuts: dict[tuple[str, Rows], str] = field(default_factory=dict)

    def add(self, node: Node, ties: list[Tie]) -> bool:
        """The next node on the rows that are needed; False if that is not possible, or costs memory."""
        layer = self.source.layer(node)
        y = layer.output
        rows = self.needed[y.name]
        if len(layer.outputs) > 1 or not ties:
            self.nodes.append(node)
            return True
        given = {i: self._given(x) for i, x in enumerate(layer.inputs) if x is not None}
        if isinstance(node.op, Reshape):  # takes no work: its readers choose among more rows without a copy
            own = {tie.out_axis: given[0][tie.axis] for tie in ties}
            rows = tuple(own.get(axis, needed) for axis, needed in enumerate(rows))
        taken = parts(layer, ties, rows, given)
        if rows == whole(y.shape) and all(
            own == given[i] == whole(layer.input(i).shape) for i, own in taken.items()
        ):
            self.nodes.append(node)
            return True
        if rows != whole(y.shape):
            self.given[y.name] = rows
            self.tensors[y.name] = replace(y, shape=tuple(len(own) for own in rows))
        op = narrowed(layer, ties, rows, taken)
        cuts = [self._cut(layer, i, taken) for i in range(len(layer.inputs))]
        if op is None or any(cut is None for cut in cuts):
            return False
        inputs = tuple(cut for cut in cuts if cut is not None)
        output = self.tensors.get(y.name, y)
        found = op.infer([self._tensor(name) if name else None for name in inputs])
        if found[0].shape != output.shape:
            return False
        if isinstance(op, Slice) and output.shape == self._tensor(inputs[0]).shape:
            op = Reshape(output.shape)
        unchanged = op == node.op and inputs == node.inputs
        self.nodes.append(node if unchanged else replace(node, op=op, inputs=inputs))
        return True

    def _given(self, tensor: Tensor) -> Rows:
        return self.given.get(tensor.name) or whole(tensor.shape)

    def _tensor(self, name: str) -> Tensor:
        return self.tensors.get(name) or self.source.tensors[name]

    def _cut(self, layer: Layer, index: int, taken: dict[int, Rows]) -> str | None:
        """The name of the part of an input that is read; None if it would be a copy of most of the input.

        A copy of half the rows takes no memory: the layer itself has half of its rows as well.
        """
        if index not in taken:
            return ""
        x, part = layer.input(index), taken[index]
        given = self._given(x)
        if part == given or isinstance(layer.op, Slice):
            return x.name
        if x.name in self.uncut:
            return None
        if (name := self.cuts.get((x.name, part))) is not None:
            return name
        starts = tuple(all_.index(own[0]) for all_, own in zip(given, part, strict=True))
        steps = tuple(
            own.step // all_.step if len(own) > 1 else 1 for all_, own in zip(given, part, strict=True)
        )
        op = Slice(starts, tuple(len(own) for own in part), steps)
        if x.is_constant:
            return self._constant(x, op, part)
        node = Node(f"{layer.name}/rows", op, (x.name,), (self._fresh(f"{x.name}/rows"),))
        cut = Tensor.of(node.outputs[0], replace(x.type, shape=op.extents))
        is_view = bool(op.views(Layer(node.name, op, (self._tensor(x.name),), (cut,))))
        if not is_view and 2 * cut.elements - cut.elements // max(op.extents) > x.elements:
            return None
        self.tensors[cut.name] = cut
        self.nodes.append(node)
        self.cuts[x.name, part] = cut.name
        return cut.name

    def _constant(self, x: Tensor, op: Slice, part: Rows) -> str | None:
        """Part of a constant; not of one that other layers read as well, which would be there twice."""
        if sum(x.name in node.inputs for node in self.source.nodes) > 1:
            return None
        (data,) = op.evaluate(Layer("", op, (x,), ()), [x.value])
        cut = Tensor.constant(self._fresh(f"{x.name}/rows"), data, x.quant)
        self.tensors[cut.name] = cut
        self.cuts[x.name, part] = cut.name
        return cut.name

    def _fresh(self, hint: str) -> str:
        name, count = hint, 0
        while name in self.source.tensors or name in self.tensors:
            count += 1
            name = f"{hint}.{count}"
        return name

    def graph(self) -> Graph:
        return self.source.with_nodes(self.nodes, self.tensors.values())


def _work(graph: Graph) -> int:
    """Multiply-accumulates and elements that are written."""
    return sum(
        layer.op.macs(layer) + sum(prod(y.shape) for y in layer.outputs)
        for layer in graph.layers()
        if not layer.op.views(layer)
    )
