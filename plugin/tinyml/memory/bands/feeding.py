# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``io: rows``: the chain that computes the model's input as it arrives, which every such model needs.

``with_arrival`` puts an Arrival before the layer that reads the input. ``from_arrival`` joins it with the
layers after it: as many of them as the arena gains from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.base import limits
from tinyml.base.errors import UnsupportedError
from tinyml.cores.targets import Target
from tinyml.ir import Graph, Node, Tensor
from tinyml.memory.bands.arrival import Arrival
from tinyml.memory.bands.banded import WIDTH, row_window
from tinyml.memory.bands.chains import Choice, axis_of, chains_from, joined
from tinyml.memory.bands.join import (
    COLUMNS,
    FEW_POSITIONS,
    MANY,
    ROWS,
    Found,
    least_columns,
    one_more,
    widened,
)
from tinyml.memory.bands.row_arrangement import Arranged, with_arrangement
from tinyml.memory.plan import Plan, lower_bound_bytes, memory_peaks
from tinyml.memory.select import Selected
from tinyml.ops.framework.kernel import Library
from tinyml.settings.optimize import BALANCED_CHAINING, GOALS, Chaining, Goal

FEASIBLE = (
    "rows can be fed to a model with one input, an image or the steps of a sequence with a batch of 1, that "
    "a convolution or a pool reads first, perhaps after element-wise layers with constants for the channels; "
    "compile other models without `rows`"
)

MOVED = (
    "a layer that moves elements of the input may put its axes in another order, and nothing else; compile "
    "the model without `rows`"
)


def with_arrival(graph: Graph) -> Graph:
    """The graph with an Arrival between its input and the layer that reads it."""
    if len(graph.inputs) != 1:
        raise UnsupportedError(f"io rows: the model has {len(graph.inputs)} inputs", FEASIBLE)
    graph = _moved_first(graph)
    graph = with_arrangement(graph, _moves(graph))
    name = graph.inputs[0]
    while len(readers := _readers(graph, name)) == 1 and _keeps_order(graph, readers[0]):
        name = readers[0].outputs[0]
    tensor = graph.tensors[name]
    _check(graph, tensor, readers)
    arrived = replace(tensor, name=_unused(graph, f"{name}/rows"))
    arrival = Node(arrived.name, Arrival(), (name,), (arrived.name,))
    reader = replace(readers[0], inputs=tuple(arrived.name if i == name else i for i in readers[0].inputs))
    before = _reshapes(graph, name)
    rest = [reader if node is readers[0] else node for node in graph.nodes if node not in before]
    return replace(
        graph,
        nodes=(*before, arrival, *rest),
        tensors={**graph.tensors, arrived.name: arrived},
    )


def _moved_first(graph: Graph) -> Graph:
    """The graph with reshapes and transposes of the input before element-wise layers.

    A quantised ONNX model has them after its quantisation. Rows are those of the tensor after all of them.
    """
    name = graph.inputs[0]
    while len(readers := _readers(graph, name)) == 1:
        (first,) = readers
        (result,) = first.outputs if len(first.outputs) == 1 else ("",)
        after = _readers(graph, result)
        if _is_move(graph, first):
            name = result
        elif _is_scalar(graph, first) and len(after) == 1 and _is_move(graph, after[0]):
            swapped = _swapped(graph, first, after[0])
            if swapped is None:
                break
            graph, name = swapped, graph.inputs[0]
        elif _is_scalar(graph, first):
            name = result
        else:
            break
    return graph


def _moves(graph: Graph) -> list[Node]:
    """The layers that do no more than reshape and transpose the input."""
    found: list[Node] = []
    name = graph.inputs[0]
    while len(readers := _readers(graph, name)) == 1 and _is_move(graph, readers[0]):
        found.append(readers[0])
        name = readers[0].outputs[0]
    return found


def _is_scalar(graph: Graph, node: Node) -> bool:
    """Whether a layer does the same to every element of its first operand, or of each channel.

    Other operands are constants with several values along one axis at most.
    """
    x = graph.tensors[node.inputs[0]] if node.inputs else None
    if not node.op.elementwise or x is None or x.is_constant or len(node.outputs) != 1:
        return False
    y = graph.tensors[node.outputs[0]]
    if x.shape != y.shape or y.name in graph.kept() or _per_channel(x) or _per_channel(y):
        return False
    others = [graph.tensors.get(name) for name in node.inputs[1:]]
    return all(
        t is not None
        and t.is_constant
        and not _per_channel(t)
        and len(t.shape) <= len(x.shape)
        and sum(extent > 1 for extent in t.shape) <= 1
        for t in others
    )


def _per_channel(tensor: Tensor) -> bool:
    return tensor.quant is not None and tensor.quant.per_channel


def _swapped(graph: Graph, first: Node, move: Node) -> Graph | None:
    """The reshape or transpose after an element-wise layer before it; None if a constant cannot follow."""
    x, y = graph.tensors[first.inputs[0]], graph.tensors[move.outputs[0]]
    shaped = replace(x, name=_unused(graph, f"{x.name}/shaped"), shape=y.shape)
    constants: list[Tensor] = []
    for name in first.inputs[1:]:
        follows = _following(graph, graph.tensors[name], move)
        if follows is None:
            return None
        constants.append(replace(follows, name=_unused(graph, f"{name}/shaped")))
    before = replace(move, inputs=(x.name,), outputs=(shaped.name,))
    after = replace(first, inputs=(shaped.name, *(t.name for t in constants)), outputs=(y.name,))
    nodes = [other for node in graph.nodes for other in ([before, after] if node is first else [node])]
    return graph.with_nodes([node for node in nodes if node is not move], [shaped, *constants])


def _following(graph: Graph, constant: Tensor, move: Node) -> Tensor | None:
    """A constant operand with its values along the axis to which a layer moves their own."""
    layer = graph.layer(move)
    rank, shape = len(layer.input(0).shape), [1] * len(layer.output.shape)
    long = [axis + rank - len(constant.shape) for axis, extent in enumerate(constant.shape) if extent > 1]
    for axis in long:
        place = layer.op.carried_axis(layer, 0, axis)
        if place is None or layer.output.shape[place[0]] != constant.elements:
            return None
        shape[place[0]] = constant.elements
    return replace(constant, shape=tuple(shape), data=constant.value.reshape(shape))


def _readers(graph: Graph, name: str) -> list[Node]:
    return [node for node in graph.nodes if name in node.inputs]


def _keeps_order(graph: Graph, node: Node) -> bool:
    """Whether a layer gives the bytes that arrive other extents."""
    return isinstance(node.op, Arranged) or (node.op.movement and node.op.identity_of(graph.layer(node)) == 0)


def _is_move(graph: Graph, node: Node) -> bool:
    """Whether a layer may come before others: it has every element of its only operand once.

    What has a scale for each channel, or is an output, stays where it is.
    """
    if not _has_each_once(graph, node):
        return False
    x, y = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    return y.name not in graph.kept() and not _per_channel(x)


def _has_each_once(graph: Graph, node: Node) -> bool:
    """Whether a layer has every element of its only operand once, perhaps in another order."""
    if not node.op.movement or len(node.inputs) != 1 or len(node.outputs) != 1:
        return False
    x, y = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    if x.elements != y.elements:
        return False
    numbers = np.arange(x.elements)
    (moved,) = node.op.evaluate(graph.layer(node), [numbers.reshape(x.shape)])
    return np.array_equal(np.sort(moved.reshape(-1)), numbers)


def _reshapes(graph: Graph, name: str) -> list[Node]:
    """The layers between the input and a tensor with the same bytes."""
    found: list[Node] = []
    while name not in graph.inputs:
        found.insert(0, next(node for node in graph.nodes if name in node.outputs))
        name = found[0].inputs[0]
    return found


def _unused(graph: Graph, name: str) -> str:
    while name in graph.tensors:
        name += "_"
    return name


def _check(graph: Graph, tensor: Tensor, readers: Sequence[Node]) -> None:
    before = [name for node in _reshapes(graph, tensor.name) for name in node.inputs]
    what = f"io rows: the input {graph.inputs[0]!r}"
    is_kept = not graph.kept().isdisjoint({tensor.name, *before, *graph.inputs})
    if len(readers) != 1 or is_kept:
        kinds = [node.op.kind for node in readers] + ["the application"] * is_kept
        raise UnsupportedError(f"{what} is read {len(kinds)} times ({', '.join(kinds) or 'never'})", FEASIBLE)
    (reader,) = readers
    if row_window(graph.layer(reader), arrives=True) is None:
        shape = "x".join(map(str, tensor.shape))
        raise UnsupportedError(
            f"{what} ({shape}): {reader.op.kind} {reader.name!r} needs all of it",
            MOVED if reader.op.movement else FEASIBLE,
        )
    first = _first_but_elementwise(graph, tensor.name)
    if _has_each_once(graph, first) and not _keeps_order(
        graph, first
    ):  # what are rows now would be other elements
        raise UnsupportedError(
            f"{what}: {first.op.kind} {first.name!r} needs all of it, and cannot come before the layers that "
            "prepare the input",
            MOVED,
        )


def from_arrival(
    graph: Graph, selected: tuple[Selected, ...], target: Target, wanted: Chaining | None
) -> Choice:
    """The graph with the arrival joined with the layers after it, and other chains if they are ``wanted``."""
    chaining = wanted or BALANCED_CHAINING
    step = next(i for i, node in enumerate(graph.nodes) if node.op.by_rows)
    narrow: list[tuple[float, Choice]] = []
    longest = chaining.longest + 1 + _conversions(graph, graph.nodes[step].outputs[0])
    chains = list(chains_from(graph, selected, step, longest))
    whole = [chain for chain in chains if all(graph.nodes[i].op.elementwise for i in chain[1:])]
    for chain in [*(chain for chain in chains if chain not in whole), *whole]:
        limits.check_time()
        if narrow and chain in whole:  # it would leave all of the input in memory, converted
            break
        choice = _narrowest(graph, selected, chain, target)
        if choice is not None and _least_bytes(choice) < min((s for s, _ in narrow), default=MANY):
            if wanted:
                choice = _with_other_chains(choice, target, wanted)
            narrow.append((lower_bound_bytes(*choice), choice))
    if not narrow:
        first = _first_but_elementwise(graph, graph.nodes[step].outputs[0])
        kernel = selected[graph.nodes.index(first)].kernel
        if kernel.library is Library.CMSIS_NN:
            raise UnsupportedError(
                f"io rows: {kernel.name} of CMSIS-NN, the kernel of {first.op.kind} {first.name!r}, "
                "computes all rows at once",
                "kernels: portable",
            )
        raise UnsupportedError(
            f"io rows: {first.op.kind} {first.name!r}, the first layer that does more than convert elements, "
            "cannot be computed in bands of rows",
            FEASIBLE,
        )
    least = min(size for size, _ in narrow)
    shortest = next(choice for size, choice in narrow if size <= least * (1 + chaining.slack))
    return _first(widened(Found(shortest, least, MANY), target, False, chaining))


def rows_in_vain(fed: Plan, whole: Plan, goal: Goal) -> tuple[str, ...]:
    """A note if the arena of a model that is fed in rows is no smaller than with its input as a whole."""
    if fed.arena_bytes < whole.arena_bytes:
        return ()
    other = "" if goal.chaining == GOALS["ram"].chaining else "; `optimize: ram` joins more layers"
    return (
        f"`io: rows` saves no RAM in this model: the arena has {fed.arena_bytes:,} bytes, and "
        f"{whole.arena_bytes:,} without it, where it contains the input{other}",
    )


def _conversions(graph: Graph, name: str) -> int:
    """The number of element-wise layers that a tensor passes first."""
    count = 0
    while len(readers := _readers(graph, name)) == 1 and readers[0].op.elementwise:
        count, name = count + 1, readers[0].outputs[0]
    return count


def _first_but_elementwise(graph: Graph, name: str) -> Node:
    """The layer that keeps a tensor from being used by rows: conversions before it would not."""
    node = _readers(graph, name)[0]
    while node.op.elementwise and (readers := _readers(graph, node.outputs[0])):
        node = readers[0]
    return node


def _narrowest(
    graph: Graph, selected: tuple[Selected, ...], chain: Sequence[int], target: Target
) -> Choice | None:
    """A chain in the narrowest bands that are worth their calls; in narrower ones if the input is short.

    Of a short input that is only converted, nothing would be gained.
    """
    sizes: Sequence[int] = ROWS[-1:]
    if axis_of(selected, chain) == WIDTH:
        few = least_columns(selected, chain, FEW_POSITIONS)
        computes = not all(graph.nodes[step].op.elementwise for step in chain[1:])
        sizes = [size for size in COLUMNS if size <= few] if computes else [few]
    choices = (joined(graph, selected, chain, size, target) for size in sizes)
    return next((choice for choice in choices if choice is not None), None)


def _least_bytes(choice: Choice) -> int:
    """What the chain needs at least, whatever other layers are joined."""
    step = next(i for i, node in enumerate(choice[0].nodes) if node.op.by_rows)
    return memory_peaks(*choice).least_bytes[step]


def _with_other_chains(choice: Choice, target: Target, chaining: Chaining) -> Choice:
    while (better := one_more(choice, target, False, chaining)) is not None:
        choice = better.choice
    return choice


def _first(choice: Choice) -> Choice:
    """The chain before all other layers that do anything: it depends on nothing else, and rows come first."""
    graph, selected = choice
    arrival = next(i for i, node in enumerate(graph.nodes) if node.op.by_rows)
    before = len(_reshapes(graph, graph.nodes[arrival].inputs[0]))
    order = [i for i in range(len(graph.nodes)) if i != arrival]
    order.insert(before, arrival)
    return replace(graph, nodes=tuple(graph.nodes[i] for i in order)), tuple(selected[i] for i in order)
