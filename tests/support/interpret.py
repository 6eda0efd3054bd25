# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Runs a graph in numpy, operator by operator, with the operators' own ``evaluate``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tinyml.ir import Array, Graph, State


def interpret(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The graph's outputs by name, in its first run. Tensors must have the shape and type that it says."""
    return interpret_runs(graph, [inputs])[0]


def interpret_runs(graph: Graph, samples: Iterable[Mapping[str, Array]]) -> list[dict[str, Array]]:
    """The outputs of run after run; states are kept."""
    states = {state.tensor: _initial(graph, state) for state in graph.states}
    runs = []
    for inputs in samples:
        values = _run(graph, {**states, **inputs})
        states = {state.tensor: values[state.update] for state in graph.states}
        runs.append({name: values[name] for name in graph.outputs})
    return runs


def _run(graph: Graph, given: Mapping[str, Array]) -> dict[str, Array]:
    """The values of all tensors."""
    values: dict[str, Array] = {name: t.value for name, t in graph.tensors.items() if t.is_constant}
    values.update(given)
    for node in graph.nodes:
        layer = graph.layer(node)
        with np.errstate(all="ignore"):
            results = layer.op.evaluate(layer, [values[name] if name else None for name in node.inputs])
        for tensor, array in zip(layer.outputs, results, strict=True):
            array = np.asarray(array)
            assert array.shape == tensor.shape, f"{layer.op} gives {array.shape}, not {tensor.shape}"
            assert array.dtype == tensor.dtype.numpy, f"{layer.op} gives {array.dtype}, not {tensor.dtype}"
            values[tensor.name] = array
    return values


def _initial(graph: Graph, state: State) -> Array:
    tensor = graph.tensors[state.tensor]
    if state.initial is not None:
        return state.initial
    zero = 0 if tensor.quant is None else tensor.quant.zero_point
    return np.full(tensor.shape, zero, tensor.dtype.numpy)
