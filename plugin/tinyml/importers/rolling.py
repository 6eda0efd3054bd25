# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Long loops stay loops: the body is read once and becomes the graph inside a ``Loop``.

Short ones are unrolled, because their layers fuse with others and constants are known in each step. So are
loops that the compiler knows as an RNN, GRU or LSTM, and those whose body has no fixed shapes, or needs the
number of the step at compile time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinyml.base import late, limits
from tinyml.base.errors import TinymlError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.importers import unrolling
from tinyml.importers.attempt import Attempt
from tinyml.ir import Array, DType, Graph, Layer, Node, State, Tensor, TensorType
from tinyml.ir.interpreter import evaluate
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.framework.loop import Loop
from tinyml.ops.framework.reading import Builder
from tinyml.ops.reshape import Reshape, with_quant
from tinyml.ops.transpose import Transpose

MOST_LAYERS = 64
"""A loop of which unrolling makes more layers stays a loop. Shorter ones take less time unrolled."""

MOST_STEPS = 2**31 - 1
"""Turns of a loop in C, which an int32_t counts."""

MOST_COUNTED = 65536
"""Steps of which the compiler computes one by one whether another one follows."""

TRIED = 4
"""Steps that show whether a loop is a recurrent layer."""


@dataclass(frozen=True)
class Turn:
    """What one turn of a loop computes; ``condition``: whether it runs at all, or another one follows."""

    condition: Tensor | None
    carried: Sequence[Tensor]
    rows: Sequence[Tensor]


@dataclass(frozen=True)
class Outline:
    """A loop of a file: its operands, and how its body is read.

    Values that the body passes on unchanged are not among those that it carries.
    """

    first: Sequence[Tensor]  # the first values of what is carried
    sequences: Sequence[Tensor]  # one part along an axis for each step
    read: Callable[[Sequence[Tensor], Sequence[Tensor]], Turn]
    unroll: Callable[[int], Sequence[Tensor]]  # at most so many steps
    steps: int | None = None  # at most; None: as many as the condition says
    asks: Callable[[Sequence[Tensor]], Tensor] | None = None  # computes the condition before a turn
    begins: Callable[[], Tensor | None] = lambda: None  # else: whether there is a first turn; None: yes
    may_not_begin: bool = False  # a run decides whether there is a first turn, whatever the others need
    axes: Sequence[int] = ()  # of the sequences
    last_first: tuple[int, ...] = ()
    rows_last_first: tuple[int, ...] = ()
    private: int = 0  # the first so many carried values are of no use after the loop


@dataclass(frozen=True)
class _Body:
    """The nodes of one turn, with placeholders for what it gets."""

    nodes: Sequence[Node]
    tensors: dict[str, Tensor]
    carried: Sequence[Tensor]
    parts: Sequence[Tensor]
    turn: Turn
    learned: Mapping[str, Mapping[str, Any]]  # of ``LEARNED``


LEARNED = ("notes", "narrow", "bounded", "aliases")
"""What a ``Builder`` finds out for the whole model, and an attempt to read a body forgets."""


def rolled(build: Builder, attempt: Attempt, outline: Outline) -> list[Tensor] | None:
    """The last values of what is carried, then the rows of all steps; None if the loop is to be unrolled.

    ``attempt`` remembers what all objects that take part in the reading hold.
    """
    if not outline.first and not outline.sequences:
        return None
    try:
        body = _read(build, outline)
        steps = _steps(body, outline) if body is not None else None
    except TinymlError:  # reading it step by step says what is wrong, if that is not possible either
        body = steps = None
    _undo(build, attempt, outline)
    if body is not None and (steps is None or outline.may_not_begin):
        return _asking(build, attempt, outline)
    if body is None or steps is None or not 0 < steps <= MOST_STEPS or build.unrolls:
        return None
    if steps * _variable_nodes(body, outline) <= MOST_LAYERS:
        return None
    outside = _outside(body)
    if not _usable(build, outline, outside):
        return None
    if all(tensor.is_constant for tensor in (*outside, *outline.first, *outline.sequences)):
        return None  # the compiler computes all of it
    if steps <= unrolling.MOST_STEPS and _is_recurrent(build, attempt, outline, steps):
        return None
    return _loop(build, outline, body, steps)


def _undo(build: Builder, attempt: Attempt, outline: Outline) -> None:
    """Back to before the attempt; the first values stay, some of which are constants made for the loop."""
    attempt.undo()
    build.tensors.update({tensor.name: tensor for tensor in outline.first})


def _usable(build: Builder, outline: Outline, outside: Sequence[Tensor]) -> bool:
    """What the body reads is the same without the attempt, and no tensor has fewer results than room."""
    same = all(x.type == build.tensors[x.name].type for x in outside if not x.is_constant)
    operands = (*outside, *outline.first, *outline.sequences)
    return same and not any(tensor.name in build.counted for tensor in operands)


def _asking(build: Builder, attempt: Attempt, outline: Outline) -> list[Tensor] | None:
    """A loop whose condition is computed in a run, if it is known how many steps there are at most.

    The condition is what it carries first: ONNX computes it in each turn for the next one, and TFLite from
    what the turn leaves, and before the first one from what that gets. If rows are collected, the loop counts
    its turns.
    """
    scope = build.scope
    most = build.most_steps(outline.steps)
    if most is None or not 0 < most <= MOST_STEPS:
        return None

    private, nothing = outline.private, build.constant(np.asarray([0], np.int64))

    def joined(go: Tensor, count: Tensor, others: Sequence[Tensor]) -> list[Tensor]:
        return [go, *others[:private], count, *others[private:]]

    def turn(own: Sequence[Tensor], parts: Sequence[Tensor]) -> Turn:
        found = outline.read([*own[1 : private + 1], *own[private + 2 :]], parts)
        again = outline.asks(found.carried) if outline.asks else found.condition
        assert again is not None, "a loop without a condition has a known number of steps"
        one = build.constant(np.asarray([1], np.int64))
        count = build.add1(Binary(function="add"), [own[private + 1], one])
        return Turn(None, joined(_truth(build, again), count, found.carried), found.rows)

    remembered = Attempt(*attempt.objects)
    go = Tensor.of("", TensorType((), DType.BOOL))
    asked = replace(outline, first=joined(go, nothing, outline.first), read=turn)
    try:
        body = _read(build, asked)
    except TinymlError:
        body = None
    remembered.undo()
    if body is None or not _usable(build, outline, _outside(body)):
        return None
    begins = outline.asks(outline.first) if outline.asks else outline.begins()
    build.scope = scope
    if begins is None:
        begins = build.constant(np.asarray(True))
    counts = bool(body.turn.rows)
    first = joined(_truth(build, begins), nothing, outline.first)
    asked = replace(asked, first=first, private=private + 1 + (not counts))
    found = _loop(build, asked, body, most, asks=True, bounded=most != outline.steps)
    if not counts:
        return found
    count, *results = found
    for row in results[len(outline.first) - private :]:
        build.count(row, 0, count)
    return results


def _truth(build: Builder, condition: Tensor) -> Tensor:
    """A condition without axes."""
    return condition if not condition.shape else build.add1(Reshape(()), [condition])


def _read(build: Builder, outline: Outline) -> _Body | None:
    """One turn; None if what it carries does not keep its type, or if it has effects outside."""
    scope, mark = build.scope, len(build.nodes)
    effects = [len(kept) for kept in (build.updates, build.own_states)]
    carried = [build.tensor(f"{scope}/carried", x.type) for x in outline.first]
    sequences = zip(outline.sequences, outline.axes, strict=True)
    parts = [build.tensor(f"{scope}/part", part_type(*sequence)) for sequence in sequences]
    turn = outline.read(carried, parts)
    fits = len(turn.carried) == len(carried) and all(
        (new.shape, new.dtype) == (old.shape, old.dtype)
        for new, old in zip(turn.carried, carried, strict=False)
    )
    if not fits or effects != [len(kept) for kept in (build.updates, build.own_states)]:
        return None
    moving = (*turn.rows, *outline.sequences)
    if any(tensor.quant is not None and tensor.quant.per_channel for tensor in moving):
        return None
    build.scope = scope
    updates = [with_quant(build, new, old.quant) for new, old in zip(turn.carried, carried, strict=True)]
    if any(tensor.name in build.counted for tensor in (*updates, *turn.rows)):
        return None
    made = {name for node in build.nodes[mark:] for name in node.outputs}
    turn = replace(turn, carried=_own(build, updates, made), rows=_own(build, turn.rows, made))
    nodes = build.nodes[mark:]
    if any(node.op.by_rows for node in nodes):
        return None
    learned = {name: dict(getattr(build, name)) for name in LEARNED}
    return _Body(nodes, dict(build.tensors), carried, parts, turn, learned)


def part_type(sequence: Tensor, axis: int) -> TensorType:
    shape = sequence.shape
    return TensorType((*shape[:axis], *shape[axis + 1 :]), sequence.dtype, sequence.quant)


def _own(build: Builder, tensors: Sequence[Tensor], made: Collection[str]) -> list[Tensor]:
    """The same values in tensors that nodes of the body compute, each in one of its own."""
    found: list[Tensor] = []
    for tensor in tensors:
        taken = any(tensor.name == other.name for other in found)
        found.append(_copy(build, tensor) if taken or tensor.name not in made else tensor)
    return found


def _copy(build: Builder, tensor: Tensor) -> Tensor:
    """A tensor of its own with the same value: what a turn leaves must be computed in it."""
    copy = build.tensor(f"{tensor.name}/copy", tensor.type)
    build.nodes.append(Node(build.scope, Reshape(tensor.shape), (tensor.name,), (copy.name,)))
    return copy


def _steps(body: _Body, outline: Outline) -> int | None:
    """How many turns there are; None if that depends on what is computed at run time."""
    condition = body.turn.condition
    if condition is None or (condition.data is not None and condition.data.reshape(-1).all()):
        return outline.steps or 0
    if condition.data is not None:
        return 0 if outline.asks else 1
    values = _known(body, outline, [condition.name])
    if values is None:
        return None
    most = MOST_COUNTED if outline.steps is None else min(outline.steps, MOST_COUNTED)
    machine = _machine(body, [condition.name, *(new.name for _, new in values.values())])
    state = {name: first for name, (first, _) in values.items()}
    for step in range(most):
        limits.check_time()
        found = machine(state)
        if not found[condition.name].reshape(-1).all():
            return step if outline.asks else step + 1
        state = {name: found[new.name] for name, (_, new) in values.items()}
    return outline.steps or 0  # 0: it does not end


def _known(body: _Body, outline: Outline, names: Sequence[str]) -> dict[str, tuple[Array, Tensor]] | None:
    """The carried values that some values of a turn depend on: the first ones, and what they become.

    None if these values depend on anything that is not known now.
    """
    places = {tensor.name: i for i, tensor in enumerate(body.carried)}
    found: dict[str, tuple[Array, Tensor]] = {}
    waiting = list(_leaves(body, names))
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        if name not in places or outline.first[places[name]].data is None:
            return None
        new = body.turn.carried[places[name]]
        found[name] = outline.first[places[name]].value, new
        waiting += _leaves(body, [new.name])
    return found


def _leaves(body: _Body, names: Sequence[str]) -> set[str]:
    """What these values are computed from that no node of the body computes and that is not constant."""
    nodes = _reached(body, names)
    needed = {*names, *(name for node in nodes for name in node.inputs if name)}
    made = {name for node in body.nodes for name in node.outputs}
    return {name for name in needed - made if not body.tensors[name].is_constant}


def _machine(body: _Body, names: Sequence[str]) -> Callable[[dict[str, Array]], dict[str, Array]]:
    """A function that computes these values from those that they depend on."""
    layers = [Layer.of(node, body.tensors) for node in _reached(body, names)]
    constants = {name: tensor.data for name in names if (tensor := body.tensors[name]).data is not None}

    def run(state: dict[str, Array]) -> dict[str, Array]:
        values = {**constants, **state}
        for layer in layers:
            found = zip(layer.outputs, evaluate(layer, values), strict=True)
            values.update({tensor.name: array for tensor, array in found})
        return values

    return run


def _variable_nodes(body: _Body, outline: Outline) -> int:
    """The layers of a turn that are left once it is unrolled: the compiler computes what counts the turns."""
    known: set[str] = set()
    for tensor in body.carried:
        known.update(_known(body, outline, [tensor.name]) or ())
    count = 0
    for node in body.nodes:
        inputs = [body.tensors[name] for name in node.inputs if name]
        if all(x.is_constant or x.name in known for x in inputs):
            known.update(node.outputs)
        else:
            count += 1
    return count


def _outside(body: _Body) -> list[Tensor]:
    """What the body reads that is neither computed in it nor given to it: captured values and constants."""
    inside = {tensor.name for tensor in (*body.carried, *body.parts)}
    inside.update(name for node in body.nodes for name in node.outputs)
    names = dict.fromkeys(name for node in body.nodes for name in node.inputs if name)
    return [body.tensors[name] for name in names if name not in inside]


def _is_recurrent(build: Builder, attempt: Attempt, outline: Outline, steps: int) -> bool:
    """Whether the steps, unrolled, become an RNN, GRU or LSTM, and few layers beside it.

    What is left of each step tells from some steps and from twice as many. The first steps may leave less:
    their states are constants.
    """
    few = _layers(build, attempt, outline, TRIED)
    if few is None or steps <= 2 * TRIED:
        return few is not None
    twice = _layers(build, attempt, outline, 2 * TRIED)
    return twice is not None and twice + (twice - few) * (steps - 2 * TRIED) // TRIED <= unrolling.MOST_COPIES


def _layers(build: Builder, attempt: Attempt, outline: Outline, steps: int) -> int | None:
    """How many layers are left of so many steps; None if no part of them is recurrent."""
    mark = len(build.nodes)
    try:
        results = outline.unroll(steps)
        graph = _graph_of(build, build.nodes[mark:], results)
    except TinymlError:
        graph = None
    _undo(build, attempt, outline)
    return None if graph is None else late.layers_with_recurrent(graph)


def _graph_of(build: Builder, nodes: Sequence[Node], results: Sequence[Tensor]) -> Graph:
    made = {name for node in nodes for name in node.outputs}
    used = dict.fromkeys(name for node in nodes for name in (*node.inputs, *node.outputs) if name)
    inputs = [name for name in used if name not in made and not build.tensors[name].is_constant]
    outputs = dict.fromkeys(tensor.name for tensor in results if tensor.name in made)
    tensors = {name: build.tensors[name] for name in used}
    return Graph("steps", tensors, tuple(nodes), tuple(inputs), tuple(outputs))


def _loop(
    build: Builder, outline: Outline, body: _Body, steps: int, asks: bool = False, bounded: bool = False
) -> list[Tensor]:
    """The operator in place of the loop."""
    captured = [tensor for tensor in _outside(body) if not tensor.is_constant]
    kept = _kept(body, outline.private, asks)
    states = [State(body.carried[i].name, body.turn.carried[i].name) for i in kept]
    inputs = [*(part.name for part in body.parts), *(tensor.name for tensor in captured)]
    graph = Graph(
        build.scope or "loop",
        body.tensors,
        tuple(_reached(body, [*(state.update for state in states), *(row.name for row in body.turn.rows)])),
        tuple(inputs),
        tuple(row.name for row in body.turn.rows),
        tuple(states),
    )
    op = Loop(
        graph.with_nodes(graph.nodes),
        steps,
        len(body.parts),
        outline.last_first,
        outline.rows_last_first,
        asks,
        bounded,
    )
    sequences = [along_front(build, x, axis) for x, axis in zip(outline.sequences, outline.axes, strict=True)]
    given = [*(outline.first[i] for i in kept), *sequences, *captured]
    operands = [  # the body may have found out what integers mean
        with_quant(build, x, declared.quant) for x, declared in zip(given, op.operand_types(), strict=True)
    ]
    for name, found in body.learned.items():
        getattr(build, name).update(found)
    results = build.add(op, operands, op.infer(operands))
    return list(results[sum(i < outline.private for i in kept) :])


def _kept(body: _Body, private: int, asks: bool) -> list[int]:
    """The places of carried values without private ones that nothing needs; the condition is needed."""
    places = {tensor.name: i for i, tensor in enumerate(body.carried)}
    kept = {*range(private, len(body.carried)), *([0] if asks else [])}
    waiting = [*(body.turn.carried[i].name for i in kept), *(row.name for row in body.turn.rows)]
    while waiting:
        found = {places[name] for name in _leaves(body, waiting) if name in places} - kept
        kept |= found
        waiting = [body.turn.carried[i].name for i in found]
    return sorted(kept)


def _reached(body: _Body, names: Sequence[str]) -> list[Node]:
    """The nodes that some values need: what only the condition needs is not among them."""
    needed, nodes = set(names), list[Node]()
    for node in reversed(body.nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(name for name in node.inputs if name)
            nodes.append(node)
    return nodes[::-1]


def along_front(build: Builder, x: Tensor, axis: int) -> Tensor:
    """A sequence whose parts lie along axis 0 instead of another one."""
    others = [i for i in range(len(x.shape)) if i != axis]
    return build.add1(Transpose((axis, *others)), [x]) if axis else x


def along(build: Builder, x: Tensor, axis: int) -> Tensor:
    """A sequence whose parts lie along an axis instead of axis 0."""
    if not axis:
        return x
    perm = list(range(1, len(x.shape)))
    perm.insert(axis, 0)
    return build.add1(Transpose(tuple(perm)), [x])


def passed_on(fixed: Sequence[int], given: Sequence[Tensor], own: Sequence[Tensor]) -> list[Tensor]:
    """All carried values in their order: those in ``fixed`` as they were given, the others from ``own``."""
    rest = iter(own)
    return [x if i in fixed else next(rest) for i, x in enumerate(given)]
