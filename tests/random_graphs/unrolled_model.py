# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random unrolled steps of RNN, GRU and LSTM, most of which are wired wrongly: no cells, but nearly.

``height`` and ``width`` of the recipe choose the form of the cell, the number of steps and the size of the
weights. Each of its steps is one change, of a single step of the cell or of all of them alike: an input that
comes from elsewhere, another function, another operator, operands that change places, a part that begins
elsewhere, other weights, a result that the model gives away.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from tests.random_graphs.recipe import Model, Recipe
from tests.support import unrolled
from tests.support.unrolled import HIDDEN, INPUTS, Writer

SAMPLES = 3
Rng = np.random.Generator


CELLS: dict[str, tuple[int, Callable[[Writer, str, str, str], tuple[str, str]]]] = {
    "lstm": (4, unrolled.lstm),
    "lstm, joined": (4, lambda w, x, h, c: unrolled.lstm(w, x, h, c, joined=True)),
    "lstm, at once": (4, unrolled.gates_at_once),
    "gru": (3, lambda w, x, h, c: (unrolled.gru(w, x, h), c)),
    "gru, before": (3, lambda w, x, h, c: (unrolled.gru(w, x, h, before=True), c)),
    "gru, cell": (3, lambda w, x, h, c: (unrolled.gru_cell(w, x, h), c)),
    "gru, replacing": (3, lambda w, x, h, c: (unrolled.gru_replacing(w, x, h), c)),
    "gru, difference": (3, lambda w, x, h, c: (unrolled.gru_replacing(w, x, h, difference=True), c)),
    "rnn": (1, lambda w, x, h, c: (unrolled.rnn(w, x, h), c)),
}
"""Gates, and the nodes of a step."""


@dataclass
class Steps:
    """The nodes of all steps follow each other, ``size`` for each, from ``first`` on."""

    writer: Writer
    first: int
    size: int
    count: int
    results: list[str]

    def alike(self, place: int, rng: Rng) -> list[int]:
        """The node of a step at ``place``, in one of the steps, in the later ones or in all."""
        begin = int(rng.integers(self.count))
        steps = {0: [begin], 1: range(begin, self.count), 2: range(self.count)}[int(rng.integers(3))]
        return [self.first + step * self.size + place for step in steps]


def unrolled_model(recipe: Recipe) -> Model:
    rng = np.random.default_rng([recipe.channels, recipe.height, recipe.width])
    steps = _written(rng)
    extra: list[str] = []
    for seed in recipe.steps[1:]:  # the first is none, so that some models are right
        own = np.random.default_rng(seed)
        change = CHANGES[int(own.integers(len(CHANGES)))]
        before = deepcopy(steps.writer.nodes)
        change(steps, own, extra)
        if any(0 in shape for shape in _shapes(steps).values()):  # a part of nothing
            steps.writer.nodes[:] = before
    content = steps.writer.file(*dict.fromkeys([steps.results[-1], *extra]))
    values = np.random.default_rng(zlib.crc32(repr(recipe).encode()))
    shapes = [
        [d.dim_value for d in x.type.tensor_type.shape.dim]
        for x in onnx.load_from_string(content).graph.input
    ]
    samples = [[values.normal(size=shape).astype(np.float32) for shape in shapes] for _ in range(SAMPLES)]
    return Model(recipe, content, samples)


def _written(rng: Rng) -> Steps:
    count = int(rng.integers(2, 6))
    w = Writer(int(rng.integers(1 << 30)), steps=count)
    gates, cell = CELLS[str(rng.choice(list(CELLS)))]
    size = float(rng.choice([0.5, 1.0, 2.0]))

    def weights(name: str, *shape: int) -> None:
        w.constant(name, w.random.normal(0, size, shape))

    shapes = {"w": (INPUTS, gates * HIDDEN), "r": (HIDDEN, gates * HIDDEN), "b": (gates * HIDDEN,)}
    shapes |= {"b2": (3 * HIDDEN,), "rh": (HIDDEN, HIDDEN), "wr": (INPUTS + HIDDEN, 4 * HIDDEN)}
    shapes |= {f"wr_{gate}": (INPUTS + HIDDEN, HIDDEN) for gate in "zrn"} | {"b_g": (HIDDEN,)}
    for name, shape in shapes.items():
        weights(name, *shape)
    w.constant("one", 1)
    order = range(count) if rng.random() < 0.7 else range(count - 1, -1, -1)
    inputs = w.inputs(order)
    first, h, c, results = len(w.nodes), "h0", "c0", []
    for x in inputs:
        h, c = cell(w, x, h, c)
        results.append(h)
    return Steps(w, first, (len(w.nodes) - first) // count, count, results)


def _shapes(steps: Steps) -> dict[str, tuple[int, ...]]:
    """Of everything that is no constant, in the order in which it is computed."""
    names = [node.output[0] for node in steps.writer.nodes]
    graph = onnx.load_from_string(steps.writer.file(*names)).graph
    values = [*graph.input, *graph.value_info, *graph.output]
    known = {x.name: tuple(d.dim_value for d in x.type.tensor_type.shape.dim) for x in values}
    return {name: known[name] for name in (*(x.name for x in graph.input), *names)}


def _places(steps: Steps, rng: Rng, *op_types: str) -> list[int]:
    """Nodes that are alike, of these types."""
    fitting = [
        place
        for place in range(steps.size)
        if not op_types or steps.writer.nodes[steps.first + place].op_type in op_types
    ]
    return steps.alike(int(rng.choice(fitting)), rng) if fitting else []


def rewire(steps: Steps, rng: Rng, extra: list[str]) -> None:
    """An input is another tensor of the same shape, from the same step or from an earlier one."""
    nodes, shapes = steps.writer.nodes, _shapes(steps)
    places = _places(steps, rng)
    slot = int(rng.integers(len(nodes[places[0]].input)))
    old = nodes[places[0]].input[slot]
    if old not in shapes:
        return
    known = list(shapes)
    before = known[: known.index(nodes[places[0]].output[0])]
    fitting = [name for name in before if shapes[name] == shapes[old] and name != old]
    if not fitting:
        return
    new = str(rng.choice(fitting[-12:]))
    back = known.index(nodes[places[0]].output[0]) - known.index(new)
    for place in places:
        at = known.index(nodes[place].output[0]) - back
        if at >= 0 and shapes[known[at]] == shapes[old]:
            nodes[place].input[slot] = known[at]


def function(steps: Steps, rng: Rng, extra: list[str]) -> None:
    new = str(rng.choice(["Sigmoid", "Tanh", "HardSigmoid", "Softsign", "Relu"]))
    for place in _places(steps, rng, "Sigmoid", "Tanh"):
        steps.writer.nodes[place].op_type = new


def operator(steps: Steps, rng: Rng, extra: list[str]) -> None:
    new = str(rng.choice(["Add", "Sub", "Mul"]))
    for place in _places(steps, rng, "Add", "Sub", "Mul"):
        steps.writer.nodes[place].op_type = new


def turn_round(steps: Steps, rng: Rng, extra: list[str]) -> None:
    for place in _places(steps, rng, "Add", "Sub", "Mul"):
        steps.writer.nodes[place].input[:] = list(steps.writer.nodes[place].input)[::-1]


def move_part(steps: Steps, rng: Rng, extra: list[str]) -> None:
    """A gate takes the numbers of another one, or some of another's."""
    places = _places(steps, rng, "Slice")
    if places:
        whole = _shapes(steps)[steps.writer.nodes[places[0]].input[0]]
        begin = int(rng.integers(whole[1] - HIDDEN + 1))
        limits = [steps.writer.numbers(begin), steps.writer.numbers(begin + HIDDEN)]
        for place in places:
            steps.writer.nodes[place].input[1:3] = limits


def other_weights(steps: Steps, rng: Rng, extra: list[str]) -> None:
    stored = {tensor.name: tensor for tensor in steps.writer.constants}
    places = _places(steps, rng, "Gemm", "MatMul", "Sub")
    if not places:
        return
    slots = [slot for slot, name in enumerate(steps.writer.nodes[places[0]].input) if name in stored]
    if not slots:
        return
    slot = int(rng.choice(slots))
    values = numpy_helper.to_array(stored[steps.writer.nodes[places[0]].input[slot]]).copy()
    values.reshape(-1)[int(rng.integers(values.size))] += rng.choice([0.01, 1.0])
    name = steps.writer.constant(f"other{len(stored)}", values)
    for place in places:
        steps.writer.nodes[place].input[slot] = name


def given_away(steps: Steps, rng: Rng, extra: list[str]) -> None:
    """The model has one more output."""
    extra.append(steps.writer.nodes[_places(steps, rng)[0]].output[0])


CHANGES = (rewire, rewire, rewire, function, operator, turn_round, move_part, other_weights, given_away)
