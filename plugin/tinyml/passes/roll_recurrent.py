# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Steps of a recurrent layer that an exporter or a loop has unrolled become one RNN, GRU or LSTM again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.importers.unrolling import MOST_COPIES, SHORTER
from tinyml.ir import Array, Graph, Layer, Node, Tensor
from tinyml.ops.concat import Concat
from tinyml.ops.recurrent.cells import Activation
from tinyml.ops.recurrent.integer_form import FUNCTIONS
from tinyml.ops.recurrent.rnn import Recurrent
from tinyml.ops.reshape import Reshape
from tinyml.ops.slice import Slice
from tinyml.ops.transpose import Transpose
from tinyml.passes._affine_forms import Forms
from tinyml.passes._recurrent_cells import Step, chains, roles_in, steps, weights
from tinyml.passes.editor import Editor
from tinyml.passes.remove_dead_code import remove_dead_code

SWAPPED = (1, 0, 2)
"""Steps and samples change places."""


def roll_recurrent(graph: Graph) -> Graph:
    """Keras writes recurrent layers as loops, which the importers unroll; some exporters unroll them.

    What is left of a long loop would be as many copies of its body: that is refused.
    """
    rolled = _rolled(graph)
    if rolled.longest_loop > MOST_COPIES:
        copies = Counter((node.name, node.op.kind) for node in rolled.nodes)
        for (name, _), count in copies.most_common(1):
            if count > MOST_COPIES:
                raise UnsupportedError(
                    f"a loop of {count:,} steps, of which {name!r} is a part, is no RNN, GRU or LSTM layer",
                    f"other loops have up to {MOST_COPIES} steps, because code grows with each; {SHORTER}",
                )
    return rolled


def _rolled(graph: Graph) -> Graph:
    forms, found = steps(graph)
    edit = Editor(graph)
    rolled = []
    ordered = list(graph.nodes)
    for chain in chains(found):
        sources = [x for x, _ in roles_in(chain)]
        if not _depends(ordered, sources, {step.h for step in chain}):
            rolled.append(_roll(edit, forms, chain, sources))
            ordered = _in_order(edit.graph())  # a layer reads all its inputs before its first result
    if not rolled:
        return graph
    for every, last, place in rolled:
        _read_all_steps(edit, every, last, place)
    result = edit.graph()
    return remove_dead_code(result.with_nodes(_in_order(result)))


def _depends(ordered: Sequence[Node], names: Sequence[str], on: set[str]) -> bool:
    """Whether an input of the steps is computed from their results, as a decoder's is."""
    reached = set(on)
    for node in ordered:
        if not reached.isdisjoint(node.inputs):
            reached.update(node.outputs)
    return not reached.isdisjoint(names)


def _roll(
    edit: Editor, forms: Forms, chain: Sequence[Step], sources: Sequence[str]
) -> tuple[Tensor, str, int]:
    """Put the layer in place of its steps. Returns all steps, the last one, and its place among them."""
    roles = roles_in(chain)
    first, general = chain[0], chain[-1]
    hidden, count = general.hidden, len(chain)
    last = edit.producer(general.h)
    assert last is not None
    name = last.name
    new: list[Node] = []

    def add(op: Reshape | Transpose | Concat, *inputs: str) -> str:
        node, output = edit.make(name, op, [edit.tensors[one] for one in inputs])
        new.append(node)
        return output.name

    batch = general.batch
    width = edit.tensors[sources[0]].elements // batch
    origin, reverse, by_sample = _origin(forms, sources, batch)
    if origin and by_sample:
        x = add(Transpose(SWAPPED), add(Reshape((batch, count, width)), origin))
    elif origin:
        x = add(Reshape((count, batch, width)), origin)
    else:
        x = add(Concat(0), *(add(Reshape((1, batch, width)), source) for source in sources))
    arrays = zip("wrb", weights(general, *roles[-1]), strict=True)
    constants = [edit.constant(f"{name}/{word}", array).name for word, array in arrays]
    state = (batch, hidden)
    states = [add(Reshape(state), one) if one else "" for one in (roles[0][1], first.previous_c)]
    operands = [x, *constants, "", *states]
    while not operands[-1]:
        operands.pop()
    op = Recurrent(
        general.cell,
        tuple(Activation(function) for function in FUNCTIONS[general.cell]),
        reverse,
        linear_before_reset=general.reset is not None,
    )
    tensors = [edit.tensors[one] if one else None for one in operands]
    results = [edit.tensor(f"{name}/{op.cell}", type_) for type_ in op.infer(tensors)]
    new.append(Node(name, op, tuple(operands), tuple(result.name for result in results)))
    edit.replace(last, [*new, _reshaped(edit, last.outputs[0], name, results[1].name)])
    _replace_steps(edit, chain[:-1], results[0], reverse)
    if general.c and (cell := edit.producer(general.c)) is not None:
        edit.replace(cell, [_reshaped(edit, general.c, name, results[2].name)])
    return results[0], results[1].name, 0 if reverse else count - 1


def _reshaped(edit: Editor, result: str, name: str, source: str) -> Node:
    return Node(name, Reshape(edit.tensors[result].shape), (source,), (result,))


def _replace_steps(edit: Editor, chain: Sequence[Step], every: Tensor, reverse: bool) -> None:
    """The result of each step is a part of all steps."""
    count, batch, hidden = every.shape
    for number, step in enumerate(chain):
        place = count - 1 - number if reverse else number
        node = edit.producer(step.h)
        assert node is not None
        taken, part = edit.make(node.name, Slice((place, 0, 0), (1, batch, hidden), (1, 1, 1)), [every])
        edit.replace(node, [taken, _reshaped(edit, step.h, node.name, part.name)])


def _origin(forms: Forms, sources: Sequence[str], batch: int) -> tuple[str, bool, bool]:
    """The tensor that the inputs of all steps are parts of, whether the last step comes first, and whether
    all steps of a sample follow each other in it, instead of all samples of a step."""
    for origin in reversed(list(_path(forms, sources[0]))):
        parts = [_numbers(forms, origin, source) for source in sources]
        elements = np.arange(forms.tensors[origin].elements)
        for reverse in (False, True):
            found = [part for part in (reversed(parts) if reverse else parts) if part is not None]
            if len(found) != len(parts) or sum(part.size for part in found) != elements.size:
                continue
            joined = np.stack(found).reshape(len(found), batch, -1)
            for by_sample in (False, True):
                ordered = joined.swapaxes(0, 1) if by_sample else joined
                if np.array_equal(ordered.reshape(-1), elements):
                    return origin, reverse, by_sample
    return "", False, False


def _path(forms: Forms, name: str) -> Iterator[str]:
    """The tensors that ``name`` takes its elements from, one after the other."""
    yield name
    node = forms.producers.get(name)
    while node is not None and forms.moved(node) is not None:
        yield node.inputs[0]
        node = forms.producers.get(node.inputs[0])


def _numbers(forms: Forms, origin: str, name: str) -> Array | None:
    """Which elements of ``origin`` a tensor has."""
    numbers = np.arange(forms.tensors[name].elements)
    while name != origin:
        node = forms.producers.get(name)
        taken = forms.moved(node) if node is not None else None
        if node is None or taken is None:
            return None
        numbers = taken.reshape(-1)[numbers]
        name = node.inputs[0]
    return numbers


def _read_all_steps(edit: Editor, every: Tensor, last: str, place: int) -> None:
    """What joins the steps again in their order is a reshape of all of them; the same for the last one."""
    numbers = np.arange(every.elements).reshape(every.shape)
    results = {every.name: numbers.reshape(-1), last: numbers[place].reshape(-1)}
    by_sample = numbers.swapaxes(0, 1).reshape(-1)
    known: dict[str, Array] = {every.name: numbers, last: numbers[place]}
    for node in _in_order(edit.graph()):
        if not (isinstance(node.op, Concat) or node.op.movement) or known.keys().isdisjoint(node.inputs):
            continue
        parts = [_part(edit, known, name) for name in node.inputs]
        if node.op.movement:
            parts = [parts[0], *(edit.tensors[name].data for name in node.inputs[1:] if name)]
        if any(part is None for part in parts):
            continue
        (taken,) = node.op.evaluate(Layer.of(node, edit.tensors), parts)
        known[node.outputs[0]] = taken
        if isinstance(node.op, Reshape):
            continue
        for name, wanted in results.items():
            if np.array_equal(taken.reshape(-1), wanted):
                edit.replace(node, [_reshaped(edit, node.outputs[0], node.name, name)])
                break
        else:
            if np.array_equal(taken.reshape(-1), by_sample):
                swapped, steps_last = edit.make(node.name, Transpose(SWAPPED), [every])
                result = _reshaped(edit, node.outputs[0], node.name, steps_last.name)
                edit.replace(node, [swapped, result])


def _part(edit: Editor, known: dict[str, Array], name: str) -> Array | None:
    """The numbers of elements; -1 for those of constants, which a loop's list of results begins with."""
    data = edit.tensors[name].data if name else None
    return known.get(name) if data is None else np.full(data.shape, -1)


def _in_order(graph: Graph) -> list[Node]:
    """The nodes, each after those that compute its inputs; otherwise as they were."""
    producers = graph.producers()
    placed: set[int] = set()
    ordered: list[Node] = []
    for root in graph.nodes:
        stack = [root]
        while stack:
            node = stack[-1]
            if id(node) in placed:
                stack.pop()
                continue
            before = [producers[name] for name in node.inputs if name in producers]
            waiting = [one for one in before if id(one) not in placed]
            if waiting:
                stack += waiting
            else:
                placed.add(id(node))
                ordered.append(stack.pop())
    return ordered
