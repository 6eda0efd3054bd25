# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM on floats, of random sizes: directions, states, batches, weights as bytes or not."""

from __future__ import annotations

import numpy as np

from tests.random_layers.recurrent import SIZES
from tinyml.ir import DType, Graph, Node, Tensor
from tinyml.ops.recurrent.cells import GATES, Activation
from tinyml.ops.recurrent.rnn import Recurrent

USUAL = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}


def recurrent_float_layer(rng: np.random.Generator, name: str) -> Graph:
    """A graph with one layer."""
    cell = str(rng.choice(list(GATES)))
    hidden, inputs = (int(rng.choice(SIZES)) for _ in range(2))
    steps, batches, rows = int(rng.integers(1, 6)), int(rng.choice([1, 1, 2])), GATES[cell] * hidden
    chance = rng.random(5) < 0.5
    op = Recurrent(
        cell,
        activations=tuple(Activation(function) for function in USUAL[cell]),
        reverse=bool(chance[0]),
        sequence=bool(chance[1]),
        linear_before_reset=bool(chance[2]) and cell == "gru",
    )
    tensors = [Tensor(f"{name}_x", (steps, batches, inputs), DType.FLOAT32)]
    for letter, size in (("w", inputs), ("r", hidden)):
        values = rng.normal(0, 0.3, (rows, size))
        if chance[3]:
            values = np.rint(values * 64) / 64
        tensors.append(Tensor.constant(f"{name}_{letter}", values.astype(np.float32)))
    if chance[4]:
        bias = rng.normal(0, 0.3, 2 * rows).astype(np.float32)
        tensors.append(Tensor.constant(f"{name}_b", bias))
    outputs = [Tensor.of(f"{name}_y{i}", type_) for i, type_ in enumerate(op.infer(tensors))]
    node = Node(name, op, tuple(t.name for t in tensors), tuple(t.name for t in outputs))
    by_name = {tensor.name: tensor for tensor in (*tensors, *outputs)}
    return Graph("layers", by_name, (node,), (tensors[0].name,), node.outputs)
