# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM on int8 of usual and odd sizes, and what they take on a core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tinyml import harness
from tinyml.ir import DType, Graph, Node, Quant, Tensor
from tinyml.memory.select import select
from tinyml.ops.framework.kernel import Library
from tinyml.ops.recurrent.cells import GATES
from tinyml.ops.recurrent.recurrent_int8 import RecurrentInt8
from tools.kernel_counts import computed

STEPS = 50


@dataclass(frozen=True)
class Shape:
    """A layer in one direction. GRU's reset gate multiplies the state, or, with ``linear``, the product."""

    cell: str
    units: int
    inputs: int
    every: bool  # gives all steps, not only the last one
    linear: bool = False
    reverse: bool = False

    def __str__(self) -> str:
        words = ["linear"] * self.linear + ["reverse"] * self.reverse
        steps = "all steps" if self.every else "last step"
        return " ".join([self.cell, f"{self.units}x{self.inputs}", *words, steps])


def shapes(sizes: Sequence[tuple[int, int]]) -> Iterator[Shape]:
    """Layers of so many units and inputs; those that give all steps also in the other direction."""
    for units, inputs in sizes:
        for cell, linear in (("rnn", False), ("gru", False), ("gru", True), ("lstm", False)):
            yield Shape(cell, units, inputs, False, linear)
            for reverse in (False, True):
                yield Shape(cell, units, inputs, True, linear, reverse)


def instructions_each(shapes: Sequence[Shape], machine: str) -> dict[Shape, float]:
    """Instructions per multiplication, with the kernels that the compiler chooses by default."""
    graph = _graph(shapes)
    target = harness.find_machine(machine).target
    chosen = select(graph, target, frozenset({Library.PORTABLE, Library.GENERATED}))
    spent, _ = computed(graph, [one.kernel for one in chosen], machine)
    return {
        shape: spent[step] / one.layer.op.macs(one.layer)
        for step, (shape, one) in enumerate(zip(shapes, chosen, strict=True))
    }


def _graph(shapes: Sequence[Shape]) -> Graph:
    tensors: dict[str, Tensor] = {}
    nodes, inputs, results = [], [], []
    for shape in shapes:
        op, operands = _layer(shape)
        outputs = [Tensor.of(f"{shape} y{i}", type_) for i, type_ in enumerate(op.infer(operands))]
        nodes.append(Node(str(shape), op, tuple(t.name for t in operands), tuple(t.name for t in outputs)))
        tensors |= {tensor.name: tensor for tensor in (*operands, *outputs)}
        inputs.append(operands[0].name)
        results += [tensor.name for tensor in outputs]
    return Graph("layers", tensors, tuple(nodes), tuple(inputs), tuple(results))


def _layer(shape: Shape) -> tuple[RecurrentInt8, Sequence[Tensor]]:
    random = np.random.default_rng(1)
    op = RecurrentInt8(
        shape.cell,
        reverse=shape.reverse,
        sequence=shape.every,
        linear_before_reset=shape.linear,
        scale=1 / 128,
    )
    rows = GATES[shape.cell] * shape.units
    operands = [Tensor(f"{shape} x", (STEPS, 1, shape.inputs), DType.INT8, Quant.per_tensor(0.02, 3))]
    for letter, elements in (("w", shape.inputs), ("r", shape.units)):
        values = np.clip(np.rint(random.normal(0, 40, (rows, elements))), -127, 127).astype(np.int8)
        scales = tuple(float(s) for s in random.uniform(0.001, 0.01, rows).astype(np.float32))
        operands.append(Tensor.constant(f"{shape} {letter}", values, Quant(scales, (0,) * rows, 0)))
    biases = random.integers(-(1 << 12), 1 << 12, rows + (shape.units if op.second_bias else 0))
    return op, [*operands, Tensor.constant(f"{shape} b", biases.astype(np.int32))]
