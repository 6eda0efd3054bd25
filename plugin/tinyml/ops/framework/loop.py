# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loop: a graph of its own that runs again and again (ONNX's Loop and Scan, TFLite's WHILE).

It is part of the framework, like ``inner_graph``, because the stages after the passes place its body too.
What one turn passes on to the next are the states of the body, which has the memory of the outputs that
their last values become. ``importers/rolling.py`` creates loops, ``memory/loops/`` gives them memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Graph, Layer, Op, Tensor, TensorType, given
from tinyml.ir.interpreter import Interpreter


def fits_body(layer: Layer[Loop]) -> bool:
    """The inputs have the types that the body declares: of states, of sequences with all steps, of others."""
    wanted = layer.op.operand_types()
    found = [None if t is None else t.type for t in layer.inputs]
    return len(found) == len(wanted) and all(a == b for a, b in zip(found, wanted, strict=True))


def asks_one_truth(layer: Layer[Loop]) -> bool:
    """What says whether there is another turn is one truth value."""
    op = layer.op
    if not op.asks:
        return not op.bounded
    first = op.body.tensors[op.body.states[0].tensor] if op.body.states else None
    return first is not None and first.type == TensorType((), DType.BOOL)


@dataclass(frozen=True, eq=False)
class Loop(Op):
    """Inputs: first values of the states, sequences of which each turn gets a part, and what all turns read.

    Sequences are the first ``sequences`` inputs of the body; parts lie along axis 0. Outputs: last values of
    the states, then each output of the body with one part for every turn.
    """

    operands = (asks_one_truth, fits_body)
    folds: ClassVar[bool] = False
    clears: ClassVar[bool] = True
    body: Graph
    steps: int
    sequences: int
    last_first: tuple[int, ...]  # sequences whose last part the first turn gets
    rows_last_first: tuple[int, ...]  # outputs of the body whose last part the first turn writes
    asks: bool  # state 0 says before each turn whether there is one, up to ``steps``
    bounded: bool  # more turns than ``steps`` are the error of a run

    def attributes(self) -> dict[str, Any]:
        """Without the body, which the text form prints below the node."""
        return {
            "steps": self.steps,
            "sequences": self.sequences,
            "last_first": self.last_first,
            "rows_last_first": self.rows_last_first,
            "asks": self.asks,
            "bounded": self.bounded,
        }

    @property
    def inner_graph(self) -> Graph:
        return self.body

    def with_inner_graph(self, graph: Graph) -> Loop:
        return replace(self, body=graph)

    def operand_types(self) -> list[TensorType]:
        """What the inputs must be."""
        tensors = self.body.tensors
        states = [tensors[state.tensor].type for state in self.body.states]
        others = [tensors[name].type for name in self.body.inputs]
        sequences = [replace(type_, shape=(self.steps, *type_.shape)) for type_ in others[: self.sequences]]
        return [*states, *sequences, *others[self.sequences :]]

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        tensors = self.body.tensors
        rows = [tensors[name].type for name in self.body.outputs]
        return (
            *(tensors[state.tensor].type for state in self.body.states),
            *(replace(type_, shape=(self.steps, *type_.shape)) for type_ in rows),
        )

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        body, arrays = self.body, [given(inputs, i) for i in range(len(inputs))]
        states, others = arrays[: len(body.states)], arrays[len(body.states) :]
        first = [replace(state, initial=array) for state, array in zip(body.states, states, strict=True)]
        machine = Interpreter(replace(body, states=tuple(first)))
        rows: list[list[Array]] = [[] for _ in body.outputs]
        for step in range(self.steps):
            if self.asks and not machine.state[body.states[0].tensor].all():
                break
            parts = [
                array[self.part(step, i in self.last_first)] if i < self.sequences else array
                for i, array in enumerate(others)
            ]
            values = machine.run(dict(zip(body.inputs, parts, strict=True)))
            for row, name in zip(rows, body.outputs, strict=True):
                row.append(values[name])
        if self.bounded and machine.state[body.states[0].tensor].all():
            raise ModelError(  # what TINYML_EBOUND is in C
                f"{self.kind} {layer.name!r} has more steps than its bound, {self.steps}",
                f"--bound {layer.name}={2 * self.steps}, or fewer steps",
            )
        joined = [np.zeros(output.shape, output.dtype.numpy) for output in layer.outputs[len(body.states) :]]
        for i, (array, parts) in enumerate(zip(joined, rows, strict=True)):
            for step, part in enumerate(parts):
                array[self.part(step, i in self.rows_last_first)] = part
        return (*(machine.state[state.tensor] for state in body.states), *joined)

    def part(self, step: int, last_first: bool) -> int:
        """Which part of a sequence a turn works on."""
        return self.steps - 1 - step if last_first else step

    def macs(self, layer: Layer) -> int:
        return self.steps * sum(part.op.macs(part) for part in self.body.layers())


def turns(graph: Graph) -> int:
    """The turns of all loops in one run at most, those of inner loops in each turn of outer ones."""
    ops = (node.op for node in graph.nodes)
    return sum(op.steps * (1 + turns(op.body)) for op in ops if isinstance(op, Loop))
