# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM on int8, of random sizes: directions, states, batches, scales up to the limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.ir import DType, Graph, Node, Quant, Tensor
from tinyml.ir.constraints import operand_problem
from tinyml.ops.recurrent.cells import GATES
from tinyml.ops.recurrent.recurrent_int8 import RecurrentInt8

SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 20, 32, 33, 40)


def recurrent_layer(rng: np.random.Generator, name: str) -> Graph:
    """A graph with one layer, whose operands fit it."""
    while True:
        op, tensors = _drawn(rng, name)
        if operand_problem(op, tensors) is None:
            break
    outputs = [Tensor.of(f"{name}_y{i}", type_) for i, type_ in enumerate(op.infer(tensors))]
    node = Node(name, op, tuple(t.name for t in tensors), tuple(t.name for t in outputs))
    by_name = {tensor.name: tensor for tensor in (*tensors, *outputs)}
    inputs = tuple(tensor.name for tensor in tensors if not tensor.is_constant)
    return Graph("layers", by_name, (node,), inputs, node.outputs)


def _drawn(rng: np.random.Generator, name: str) -> tuple[RecurrentInt8, Sequence[Tensor]]:
    cell = str(rng.choice(list(GATES)))
    hidden, inputs = (int(rng.choice(SIZES)) for _ in range(2))
    steps, batches = int(rng.integers(1, 6)), int(rng.choice([1, 1, 2]))
    chance = rng.random(5) < 0.5
    op = RecurrentInt8(
        cell,
        reverse=bool(chance[0]),
        sequence=bool(chance[1]),
        linear_before_reset=bool(chance[2]) and cell == "gru",
        wide=bool(chance[3]) and cell == "gru",
        scale=float(np.float32(rng.choice([1 / 128, 1 / 127, 2 / 255, 0.004, 0.0011]))),
        zero_point=int(rng.choice([0, 0, 1, -3, -128, 127])),
        cell_bits=int(rng.integers(0, 7)),
    )
    rows = GATES[cell] * hidden
    x_scale, spread = (float(rng.choice(choices)) for choices in ((0.003, 0.02, 0.5), (0.2, 1, 4)))
    quant = Quant.per_tensor(float(np.float32(x_scale)), int(rng.integers(-128, 128)))
    tensors = [Tensor(f"{name}_x", (steps, batches, inputs), DType.INT8, quant)]
    for letter, size in (("w", inputs), ("r", hidden)):
        values = rng.integers(-127, 128, (rows, size)).astype(np.int8)
        values[rng.random(rows) < 0.05] = 0
        scales = tuple(float(s) for s in rng.uniform(0.001, 0.01, rows).astype(np.float32) * spread)
        tensors.append(Tensor.constant(f"{name}_{letter}", values, Quant(scales, (0,) * rows, 0)))
    reach = int(rng.choice([1 << 15, 1 << 18, 1 << 28]))
    biases = rng.integers(-reach, reach, rows + (hidden if op.second_bias else 0)).astype(np.int32)
    tensors.append(Tensor.constant(f"{name}_b", biases))
    if chance[4]:
        tensors.append(Tensor(f"{name}_h", (batches, hidden), *op.state_type))
        if cell == "lstm":
            tensors.append(Tensor(f"{name}_c", (batches, hidden), *op.cell_type))
    return op, tensors
