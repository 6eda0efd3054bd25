# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Steps with the same weights that are no plain sequence: forks, exchanged roles, layers in a circle."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.unrolled import HIDDEN, STEPS, Writer, constants, gru, kinds, lstm, rnn, rolled
from tinyml.ir import Graph
from tinyml.passes.roll_recurrent import roll_recurrent


def square(kind: str, seed: int = 1) -> Writer:
    """Constants for inputs as wide as the state, so that each operand could be either."""
    w = Writer(seed, inputs=HIDDEN)
    constants(w, {"rnn": 1, "gru": 3, "lstm": 4}[kind], inputs=HIDDEN)
    w.constant("one", 1)
    return w


def cells(graph: Graph) -> int:
    """Steps of all recurrent layers."""
    layers = [node for node in graph.nodes if node.op.kind == "Recurrent"]
    return sum(graph.tensors[node.inputs[0]].shape[0] for node in layers)


def test_roles_that_are_exchanged_between_steps() -> None:
    """The third step multiplies the second's result by the input's matrix."""
    w = square("rnn")
    x = w.inputs(range(STEPS))
    first = rnn(w, x[0], "h0")
    second = rnn(w, x[1], first)
    third = rnn(w, second, "c0")
    fourth = rnn(w, x[2], third)
    assert cells(rolled(w.graph(fourth), 2)) == 4


def test_steps_that_branch_off_are_not_computed_twice() -> None:
    w = Writer()
    constants(w, 1)
    h, ends = "h0", []
    for x in w.inputs(range(STEPS)):
        h = rnn(w, x, h)
        ends.append(rnn(w, w.part("x", 0, 1, 0), h))
    found = rolled(w.graph(w.node("Concat", *ends, axis=0)))
    assert cells(found) + kinds(found).count("Unary") == 2 * STEPS


def test_layers_that_wait_for_each_other() -> None:
    """Either sequence may become a layer, not both: each ends with a result of the other."""
    w = square("rnn")
    constants(w, 1, "2", HIDDEN)
    x = w.inputs(range(4))
    a, b = rnn(w, x[0], "h0"), rnn(w, x[1], "c0", "2")
    rolled(w.graph(rnn(w, b, a), rnn(w, a, b, "2")), 1)


def test_a_first_step_with_another_operand() -> None:
    """Its gates add a second input, which no other step has."""
    w = Writer()
    w.shapes["e"] = [1, 2]
    constants(w, 3)
    w.weights("b2", 3 * HIDDEN)
    w.weights("q", 2, 3 * HIDDEN)
    w.constant("one", 1)
    h = "h0"
    for number, x in enumerate(w.inputs(range(STEPS))):
        h = gru(w, x, h, extra=w.node("MatMul", "e", "q") if number == 0 else "")
    assert cells(rolled(w.graph(h))) == STEPS - 1


def test_a_gru_that_carries_nothing_in_its_first_step() -> None:
    w = Writer()
    constants(w, 3)
    w.weights("b2", 3 * HIDDEN)
    w.constant("one", 1)
    h = "h0"
    for number, x in enumerate(w.inputs(range(STEPS))):
        h = gru(w, x, h, carry=number > 0)
    assert cells(rolled(w.graph(h))) == STEPS - 1


def test_biases_that_drift_a_little_in_every_step() -> None:
    w = Writer(steps=50)
    constants(w, 1)
    base, h = w.random.normal(0, 0.5, HIDDEN), "h0"
    for number, x in enumerate(w.inputs(range(50))):
        bias = w.constant(f"b{number}", base + number * 2e-6)
        h = w.node("Tanh", w.node("Add", w.node("MatMul", h, "r"), w.node("Gemm", x, "w", bias)))
    graph = w.graph(h)
    assert roll_recurrent(graph) is graph


def test_a_long_chain_of_additions() -> None:
    w = Writer()
    constants(w, 1)
    total = w.node("Gemm", w.part("x", 0, 1, 0), "w", "b")
    for _ in range(400):
        total = w.node("Add", total, w.weights(f"a{len(w.nodes)}", HIDDEN))
    graph = w.graph(w.node("Tanh", total))
    assert roll_recurrent(graph) is graph


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_random_mixtures(kind: str) -> None:
    """Each step takes its operands from everything before it; what becomes a layer computes the same."""
    layers = 0
    for seed in range(40):
        graph = mixture(kind, seed)
        layers += cells(rolled(graph, -1))
    assert layers > 40


def mixture(kind: str, seed: int) -> Graph:
    w = square(kind, seed)
    w.weights("b2", 3 * HIDDEN)
    random = np.random.default_rng(seed)
    operands = [*w.inputs(range(STEPS)), "h0", "c0"]
    states, results = [("h0", "c0"), ("c0", "h0")], list[str]()
    last = states[0]
    for _ in range(int(random.integers(2, 8))):
        x = operands[random.integers(STEPS if random.random() < 0.6 else len(operands))]
        h, c = last if random.random() < 0.75 else states[random.integers(len(states))]
        if kind == "rnn":
            last = (rnn(w, x, h), c)
        elif kind == "gru":
            last = (gru(w, x, h), c)
        else:
            last = lstm(w, x, h, c)
        states.append(last)
        operands.append(last[0])
        results.append(last[0])
    taken = [name for name in results[:-1] if random.random() < 0.3]
    return w.graph(*dict.fromkeys([*taken, results[-1]]))
