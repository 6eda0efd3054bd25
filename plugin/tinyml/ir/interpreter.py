# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Runs a graph in numpy, operator by operator: the compiler's own definition of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tinyml.ir import Array, Graph, Layer
from tinyml.ir.branches import conditions_of


def initial_state(graph: Graph) -> dict[str, Array]:
    """The state before the first run."""
    values: dict[str, Array] = {}
    for state in graph.states:
        tensor = graph.tensors[state.tensor]
        fill = 0 if tensor.quant is None or tensor.quant.per_channel else tensor.quant.zero_point
        values[state.tensor] = (
            state.initial if state.initial is not None else np.full(tensor.shape, fill, tensor.dtype.numpy)
        )
    return values


class Interpreter:
    """A graph with its state, run by run."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._conditions = conditions_of(graph)
        self.reset()

    def reset(self) -> None:
        """Return to the state before the first run."""
        self._state = initial_state(self.graph)

    @property
    def state(self) -> Mapping[str, Array]:
        """What the next run finds, by the names of the tensors that read it."""
        return self._state

    def run(self, sample: Mapping[str, Array]) -> dict[str, Array]:
        """Every tensor that is not a constant."""
        graph = self.graph
        values: dict[str, Array] = {**self._state, **sample}
        for node, needed in zip(graph.nodes, self._conditions, strict=True):
            layer = graph.layer(node)
            if not all(bool(_value(graph, name, values).reshape(())) is truth for name, truth in needed):
                values.update({t.name: np.zeros(t.shape, t.dtype.numpy) for t in layer.outputs})
                continue  # of a branch that is not taken
            for tensor, array in zip(layer.outputs, evaluate(layer, values), strict=True):
                values[tensor.name] = array
        self._state = {s.tensor: values[s.update] for s in graph.states}
        return values


def interpret(graph: Graph, samples: Sequence[Mapping[str, Array]]) -> list[dict[str, Array]]:
    """Every tensor that is not a constant, for each of several consecutive runs."""
    machine = Interpreter(graph)
    return [machine.run(sample) for sample in samples]


def _value(graph: Graph, name: str, values: Mapping[str, Array]) -> Array:
    tensor = graph.tensors[name]
    return tensor.data if tensor.data is not None else values[name]


def evaluate(layer: Layer, values: Mapping[str, Array]) -> list[Array]:
    """The outputs of one layer from the values of its inputs."""
    operands = [None if t is None else t.value if t.is_constant else values[t.name] for t in layer.inputs]
    with np.errstate(all="ignore"):
        return layer.computed(operands)
