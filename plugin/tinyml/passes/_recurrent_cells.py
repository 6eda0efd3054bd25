# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Single steps of RNN, GRU and LSTM in an unrolled graph, and chains of steps with the same weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import pairwise

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Graph, Node
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.unary import Unary
from tinyml.passes._affine_forms import Affine, Forms

MISSING = {"rnn": 0, "gru": 1, "lstm": 2}
"""The gate that a first step may lack: the reset of GRU, and what LSTM forgets."""

CLOSE = 1e-6
"""Biases are added in another order in the first step, whose state is zero."""


@dataclass
class Step:
    """One step: its gates in the order of ``Recurrent``, each with matrices for the input and the state.

    The candidate of a GRU that resets a product has its part of the state in ``reset``, after the gates.
    """

    cell: str
    h: str
    gates: tuple[Affine, ...]
    c: str = ""  # of LSTM
    previous_c: str = ""  # of LSTM; empty for zeros
    previous_h: str = ""  # of GRU, where it is known from the form; empty for zeros
    reset: Affine | None = None
    candidate_state: str = (
        ""  # of GRU: what the candidate's matrix is multiplied by, if the state is reset first
    )
    before: Step | None = field(default=None, repr=False)

    @property
    def hidden(self) -> int:
        return len(self.gates[0].bias)

    @property
    def batch(self) -> int:
        return self.gates[0].batch

    @property
    def sources(self) -> set[str]:
        """Everything that a matrix is multiplied by."""
        parts = [*self.gates, *([self.reset] if self.reset else [])]
        return {name for part in parts for name in part.matrices}


def steps(graph: Graph) -> tuple[Forms, dict[str, Step]]:
    """Everything that looks like a step, by the name of its result."""
    forms, found = Forms(graph), dict[str, Step]()
    for node in graph.nodes:
        step = _step(forms, node)
        if step is not None and _sizes_agree(forms, step):
            found[step.h] = step
    return forms, found


def _sizes_agree(forms: Forms, step: Step) -> bool:
    """Nothing is broadcast: all gates and states have the size of the result."""
    states = [name for name in (step.h, step.c, step.previous_c, step.previous_h) if name]
    sizes = {forms.tensors[name].elements for name in states}
    gates = {(gate.batch, len(gate.bias)) for gate in _gates(step)}
    return sizes == {step.batch * step.hidden} and gates == {(step.batch, step.hidden)}


def _step(forms: Forms, node: Node) -> Step | None:
    if isinstance(node.op, Binary):
        return _lstm(forms, node.outputs[0]) or _gru(forms, node.outputs[0])
    if isinstance(node.op, Unary) and node.op.function == "tanh":
        gate = forms.gate(node.outputs[0])
        if gate is not None and 1 <= len(gate.of.matrices) <= 2:
            return Step("rnn", node.outputs[0], (gate.of,))
    return None


def _both_ways(pair: tuple[str, str] | None) -> Iterator[tuple[str, str]]:
    if pair is not None:
        yield pair
        yield pair[1], pair[0]


def _gate(forms: Forms, name: str, function: str) -> Affine | None:
    gate = forms.gate(name)
    return gate.of if gate is not None and gate.function == function and gate.of.matrices else None


def _lstm(forms: Forms, h: str) -> Step | None:
    """h = sigmoid(out) * tanh(c); c = sigmoid(forget) * previous + sigmoid(into) * tanh(fresh)"""
    for left, right in _both_ways(forms.operands(h, "mul")):
        cell = forms.argument(right, "tanh")
        out = _gate(forms, left, "sigmoid") if cell is not None else None
        if out is None or cell is None:
            continue
        for kept, added in (*_both_ways(forms.operands(cell, "add")), ("", cell)):
            found = _added(forms, added)
            if found is None:
                continue
            into, fresh = found
            if not kept:
                return Step("lstm", h, (into, out, fresh), cell)
            for gate, previous in _both_ways(forms.operands(kept, "mul")):
                forget = _gate(forms, gate, "sigmoid")
                if forget is not None:
                    empty = forms.is_zero(previous)
                    return Step("lstm", h, (into, out, forget, fresh), cell, "" if empty else previous)
    return None


def _added(forms: Forms, name: str) -> tuple[Affine, Affine] | None:
    for left, right in _both_ways(forms.operands(name, "mul")):
        into, fresh = _gate(forms, left, "sigmoid"), _gate(forms, right, "tanh")
        if into is not None and fresh is not None:
            return into, fresh
    return None


def _gru(forms: Forms, h: str) -> Step | None:
    """h = update * previous + (1 - update) * tanh(candidate)"""
    for blend in _blends(forms, h):
        update, candidate = _gate(forms, blend.update, "sigmoid"), forms.argument(blend.fresh, "tanh")
        if update is None or candidate is None:
            continue
        zero = not blend.previous or forms.is_zero(blend.previous)
        gate = -update if blend.replaces else update  # 1 - sigmoid(x) is sigmoid(-x)
        found = _candidate(forms, h, gate, candidate, "" if zero else blend.previous)
        if found is not None:
            return found
    return None


@dataclass
class _Blend:
    """update * previous + (1 - update) * fresh; where it ``replaces``, update belongs to ``fresh``."""

    update: str
    fresh: str
    previous: str  # empty for zeros
    replaces: bool = False


def _blends(forms: Forms, h: str) -> Iterator[_Blend]:
    """Two products, as in Keras and textbooks; or one with a difference, as in PyTorch's cell."""
    for kept, added in (*_both_ways(forms.operands(h, "add")), ("", forms.root(h))):
        for share, fresh in _both_ways(forms.operands(added, "mul")):
            update = _complement(forms, share)
            previous = _other_factor(forms, kept, update) if kept and update else ""
            if update and previous is not None:
                yield _Blend(update, fresh, previous)
            for rest, state in _both_ways(forms.operands(kept, "mul")) if kept else ():
                if _complement(forms, rest) == share:
                    yield _Blend(share, fresh, state, replaces=True)
    for product, other in _both_ways(forms.operands(h, "add")):
        for difference, update in _both_ways(forms.operands(product, "mul")):
            pair = forms.operands(difference, "sub")
            if pair is not None and pair[1] == other:  # one of the two ways has a function in ``fresh``
                yield _Blend(update, other, pair[0])
                yield _Blend(update, pair[0], other, replaces=True)


def _complement(forms: Forms, name: str) -> str:
    """``x`` of 1 - x."""
    pair = forms.operands(name, "sub")
    if pair is None:
        return ""
    one = forms.tensors[pair[0]].data
    return pair[1] if one is not None and bool(np.all(one == 1)) else ""


def _other_factor(forms: Forms, name: str, factor: str) -> str | None:
    for left, right in _both_ways(forms.operands(name, "mul")):
        if left == factor:
            return right
    return None


def _candidate(forms: Forms, h: str, update: Affine, candidate: str, previous: str) -> Step | None:
    for own, product in _both_ways(forms.operands(candidate, "add")):
        for left, right in _both_ways(forms.operands(product, "mul")):
            reset, recurrent, x = _gate(forms, left, "sigmoid"), forms.affine(right), forms.affine(own)
            if reset is not None and recurrent is not None and x is not None and x.matrices:
                if not recurrent.matrices:
                    recurrent = recurrent.for_samples(update.batch, len(update.bias))
                if recurrent is not None:
                    return Step("gru", h, (update, reset, x), previous_h=previous, reset=recurrent)
    whole = forms.affine(candidate)
    if whole is None:
        return None
    for name in whole.matrices:
        for gate, state in _both_ways(forms.operands(name, "mul")):
            reset = _gate(forms, gate, "sigmoid")
            if reset is not None and (state == previous or (not previous and forms.is_zero(state))):
                return Step("gru", h, (update, reset, whole), previous_h=previous, candidate_state=name)
    return None if previous or not whole.matrices else Step("gru", h, (update, whole))


def chains(found: dict[str, Step]) -> list[list[Step]]:
    """Steps that follow each other, at least two, with the same weights. No step is in two chains."""
    length: dict[int, int] = {}
    for step in found.values():  # in the graph's order, so that what a step follows is known before it
        step.before = _predecessor(step, found)
        length[id(step)] = length[id(step.before)] + 1 if step.before is not None else 1
    result, taken = [], set[int]()
    for step in sorted(found.values(), key=lambda step: -length[id(step)]):  # the longest first
        chain: list[Step] = []
        last: Step | None = step
        while last is not None and id(last) not in taken:
            taken.add(id(last))
            chain.insert(0, last)
            last = last.before
        if len(chain) > 1:
            result.append(chain)
    return result


def _predecessor(step: Step, found: dict[str, Step]) -> Step | None:
    """The step whose result is this one's state."""
    for name in sorted(step.sources | {step.previous_h}):
        other = found.get(name)
        if other is None or other is step or other.cell != step.cell:
            continue
        if (other.hidden, other.batch) != (step.hidden, step.batch):
            continue
        if step.cell == "lstm" and step.previous_c != other.c:
            continue
        if step.cell == "gru" and step.previous_h != name:
            continue
        if _same_weights(step, name, other):
            return other
    return None


def source_of(step: Step, state: str) -> str | None:
    """What all gates multiply besides the state: the input of the step."""
    names = step.sources - {state, step.candidate_state}
    return next(iter(names)) if len(names) == 1 else None


def _same_weights(step: Step, state: str, other: Step) -> bool:
    """Whether ``other`` computes the same with its own input and state; it may lack a state that is zero."""
    x = source_of(step, state)
    if x is None or not _usual(step, x, state):
        return False
    return any(_equal(step, (x, state), other, names) for names in _roles(other))


def _usual(step: Step, x: str, state: str) -> bool:
    """Whether every gate depends on what the operators of ONNX let it depend on."""
    *gates, last = step.gates
    through = {x, step.candidate_state} if step.candidate_state else {x} if step.reset else {x, state}
    fine = all(gate.matrices.keys() <= {x, state} for gate in gates) and last.matrices.keys() <= through
    return fine and (step.reset is None or step.reset.matrices.keys() <= {state})


def _roles(step: Step) -> Iterator[tuple[str, str]]:
    """The pairs of input and state that a step may have: one only, if it follows another step."""
    names = sorted(step.sources - {step.candidate_state})
    if step.before is not None:
        yield _role(step, step.before.h)
    elif step.cell == "gru" and step.previous_h:
        yield from ((name, step.previous_h) for name in names if name != step.previous_h)
    elif len(names) == 1:
        yield names[0], ""
    elif len(names) == 2 and step.cell != "gru":
        yield from _both_ways((names[0], names[1]))


def _equal(step: Step, mine: tuple[str, str], other: Step, theirs: tuple[str, str]) -> bool:
    own_gates, its_gates = _gates(step), _gates(other)
    if step.reset is None and len(other.gates) == len(step.gates) - 1:  # without what a state of zero needs
        del own_gates[MISSING[step.cell]]
    if len(own_gates) != len(its_gates):
        return False
    first = theirs[1] == ""
    if first and (other.previous_c or other.previous_h):
        return False
    pairs = [(mine[0], theirs[0]), (mine[1], theirs[1]), (step.candidate_state, other.candidate_state)]
    return all(
        _same_gate(own, its, pairs, CLOSE if first else 0)
        for own, its in zip(own_gates, its_gates, strict=True)
    )


def _same_gate(own: Affine, its: Affine, pairs: Sequence[tuple[str, str]], close: float) -> bool:
    """Whether two gates have the same bias and the same matrix for each pair of operands, and no other."""
    if not its.matrices.keys() <= {right for _, right in pairs}:
        return False
    if not np.allclose(own.bias, its.bias, close, close):
        return False
    for left, right in pairs:
        a, b = own.matrices.get(left), its.matrices.get(right)
        if right == "":
            continue  # zeros
        if (a is None) != (b is None) or (a is not None and b is not None and not np.array_equal(a, b)):
            return False
    return True


def _gates(step: Step) -> list[Affine]:
    return [*step.gates, *([step.reset] if step.reset is not None else [])]


def roles_in(chain: Sequence[Step]) -> list[tuple[str, str]]:
    """Input and state of every step of a chain; an empty state is zero."""
    second = chain[1]
    found = [next(r for r in _roles(chain[0]) if _equal(second, _role(second, chain[0].h), chain[0], r))]
    return found + [_role(step, before.h) for before, step in pairwise(chain)]


def _role(step: Step, state: str) -> tuple[str, str]:
    return source_of(step, state) or "", state


def weights(step: Step, x: str, state: str) -> tuple[Array, Array, Array]:
    """The matrices w and r of a general step, and its biases, as ``Recurrent`` reads them."""
    zeros = np.zeros((step.hidden, step.hidden))
    recurrent = [gate.matrices.get(state, zeros) for gate in step.gates]
    biases, second = [gate.bias for gate in step.gates], np.zeros(len(step.gates) * step.hidden)
    if step.candidate_state:
        recurrent[-1] = step.gates[-1].matrices[step.candidate_state]
    if step.reset is not None:
        recurrent[-1] = step.reset.matrices.get(state, zeros)
        second[-step.hidden :] = step.reset.bias
    width = next(gate.matrices[x].shape[1] for gate in step.gates if x in gate.matrices)
    w = np.concatenate([gate.matrices.get(x, np.zeros((step.hidden, width))) for gate in step.gates])
    r, b = np.concatenate(recurrent), np.concatenate([*biases, second])
    return w.astype(np.float32), r.astype(np.float32), b.astype(np.float32)
