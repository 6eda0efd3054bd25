# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a graph: the nodes between tensors that two graphs have in common, perhaps in another layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Graph, Layer, Node, Tensor
from tinyml.ir.interpreter import evaluate, interpret

SHIFT = 128  # from int8 to uint8
SIGNED = "/s8"  # ends the name of an input or output whose bytes have a sign inside of the model
NHWC = "/nhwc"  # ends the name of a tensor that passes have transposed


class Cuts(dict[str, str]):
    """Tensors of the optimised graph that the imported one has too: their names there.

    Those in ``moved`` have their channels last, the others the layout of the imported graph. Those in
    ``shifted`` are int8 here and uint8 there, with the same meaning.
    """

    def __init__(self) -> None:
        super().__init__()
        self.moved: set[str] = set()
        self.shifted: set[str] = set()

    def to_theirs(self, name: str, array: Array) -> Array:
        if name in self.shifted and array.dtype == np.int8:
            array = (array.astype(np.int16) + SHIFT).astype(np.uint8)
        return np.moveaxis(array, -1, 1) if name in self.moved else array

    def to_mine(self, name: str, array: Array) -> Array:
        if name in self.shifted and array.dtype == np.uint8:
            array = (array.astype(np.int16) - SHIFT).astype(np.int8)
        return np.moveaxis(array, 1, -1) if name in self.moved else array


def cuts_of(
    imported: Graph, optimised: Graph, inputs: Mapping[str, Array], values: Mapping[str, Array]
) -> Cuts:
    """``values``: tensors of the imported graph for some inputs, which tell layouts of one shape apart."""
    cuts = Cuts()
    unclear = []
    for name, tensor in optimised.tensors.items():
        moves = name.endswith(NHWC)
        base = name.removesuffix(NHWC)
        base = base if base in imported.tensors else base.removesuffix(SIGNED)
        other = imported.tensors.get(base)
        if tensor.is_constant or other is None or other.is_constant:
            continue
        shifted = _is_shifted(tensor, other)
        if (tensor.dtype, tensor.quant) != (other.dtype, other.quant) and not shifted:
            continue
        moves = moves and len(other.shape) > 2
        if tensor.shape == (_as_nhwc(other.shape) if moves else other.shape):
            cuts[name] = base
            cuts.shifted |= {name} if shifted else set()
            if moves:
                cuts.moved.add(name)
                unclear += [name] if tensor.shape == other.shape else []
    if unclear and set(inputs) == set(optimised.inputs):
        (mine,) = interpret(optimised, [inputs])
        for name in unclear:
            kept, moved = values[cuts[name]], cuts.to_mine(name, values[cuts[name]])
            if _apart(mine[name], kept) < _apart(mine[name], moved):
                cuts.moved.discard(name)
    return cuts


def _is_shifted(mine: Tensor, theirs: Tensor) -> bool:
    """Whether bytes without a sign became bytes with one, each 128 less."""
    if (mine.dtype, theirs.dtype) != (DType.INT8, DType.UINT8) or mine.quant is None or theirs.quant is None:
        return False
    zeros = tuple(zero - SHIFT for zero in theirs.quant.zero_points)
    return mine.quant == replace(theirs.quant, zero_points=zeros)


def _as_nhwc(shape: Sequence[int]) -> tuple[int, ...]:
    return (shape[0], *shape[2:], shape[1])


def _apart(x: Array, y: Array) -> float:
    return float(np.abs(x.astype(np.float64) - y.astype(np.float64)).sum())


@dataclass(frozen=True)
class Slice:
    """The nodes that compute ``output`` from ``inputs``."""

    graph: Graph
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    output: str

    def run(self, values: Mapping[str, Array], until: Node | None = None) -> Array:
        """The output, or the first operand of ``until``."""
        known = dict(values)
        for node in self.nodes:
            layer = self.graph.layer(node)
            if until is not None and node is until:
                first = layer.input(0)
                return first.value if first.is_constant else known[first.name]
            for tensor, array in zip(layer.outputs, evaluate(layer, known), strict=True):
                known[tensor.name] = array
        return known[self.output]

    @property
    def layers(self) -> list[Layer]:
        return [self.graph.layer(node) for node in self.nodes]


def slice_of(graph: Graph, output: str, cuts: set[str]) -> Slice:
    """What computes ``output``, back to tensors in ``cuts`` and to the inputs of the graph."""
    producers = {name: node for node in graph.nodes for name in node.outputs}
    needed: set[int] = set()  # nodes; several can have one name
    inputs: dict[str, None] = {}
    waiting = [output]
    while waiting:
        name = waiting.pop()
        if (name in cuts and name != output) or name not in producers:
            if not graph.tensors[name].is_constant:
                inputs[name] = None
            continue
        node = producers[name]
        if id(node) not in needed:
            needed.add(id(node))
            waiting += [one for one in node.inputs if one]
    chosen = tuple(node for node in graph.nodes if id(node) in needed)
    return Slice(graph, chosen, tuple(inputs), output)
