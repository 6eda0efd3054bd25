# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random float layers whose weights are small integers times scales, in blocks."""

from __future__ import annotations

import numpy as np

from tests.support.block_layers import blocked
from tinyml.ir import DType, Graph, Node, Op, Shape, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.indexing.gather import Gather


def blocked_layer(rng: np.random.Generator, name: str) -> Graph:
    """A dense layer, a 1x1 convolution or rows of a table, with four or eight bits a weight."""
    kind = str(rng.choice(["dense", "dense", "pointwise", "rows"]))
    outputs, columns = int(rng.integers(1, 40)), int(rng.choice([rng.integers(1, 80), rng.integers(80, 400)]))
    block = min(columns, int(rng.choice([16, 32, 64, 128, 256, columns])))
    weights = blocked(
        rng, outputs, columns, block, int(rng.choice([4, 4, 4, 8])), zero_points=bool(rng.random() < 0.4)
    )
    op: Op = {"dense": Dense(), "pointwise": Conv(), "rows": Gather()}[kind]
    table = Tensor.constant(
        f"{name}_w", weights.reshape(-1, 1, 1, columns) if kind == "pointwise" else weights
    )
    x: Shape
    y: Shape
    inputs: tuple[Tensor, ...]
    if kind == "rows":
        count = int(rng.integers(1, 9))
        x, y = (count,), (count, columns)
        inputs = (table, Tensor(f"{name}_x", x, DType.INT32))
    else:
        before = (
            (int(rng.integers(1, 4)),)
            if kind == "dense"
            else (int(rng.integers(1, 3)), *map(int, rng.integers(1, 6, 2)))
        )
        x, y = (*before, columns), (*before, outputs)
        bias = Tensor.constant(f"{name}_b", rng.normal(0, 1, outputs).astype(np.float32))
        inputs = (Tensor(f"{name}_x", x, DType.FLOAT32), table, *[bias] * bool(rng.random() < 0.8))
    output = Tensor(f"{name}_y", y, DType.FLOAT32)
    node = Node(name, op, tuple(tensor.name for tensor in inputs), (output.name,))
    tensors = {tensor.name: tensor for tensor in (*inputs, output)}
    return Graph("layers", tensors, (node,), (f"{name}_x",), (output.name,))
