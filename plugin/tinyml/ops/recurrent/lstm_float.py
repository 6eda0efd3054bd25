# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""LstmFloat: TFLite's float LSTM, with cell clipping, peepholes, coupled gates and projection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ir.hook_types import Steps
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.recurrent.cells import steps_of_lstm
from tinyml.ops.shared.operands import extents, optional

# Operands: x, four input weights, four recurrent weights, three peepholes, four biases, projection and
# its bias, output state, cell state. Those of the input gate, peepholes and projection may be absent.
X, WEIGHTS, RECURRENT, PEEPHOLE, BIAS, PROJECTION, PROJECTION_BIAS, STATE, CELL = (
    0,
    1,
    5,
    9,
    12,
    16,
    17,
    18,
    19,
)
GATES = ("input", "forget", "cell", "output")
PEEPHOLE_OF = {0: 9, 1: 10, 3: 11}  # by gate


def cells_fit(layer: Layer[LstmFloat]) -> bool:
    """Input, states, and the weights, peepholes and biases of all gates have shapes that fit each other."""
    x, state, cell = layer.input(X).shape, layer.input(STATE).shape, layer.input(CELL).shape
    if len(x) != 3 or len(state) != 2 or len(cell) != 2:
        return False
    outputs, cells = state[1], cell[1]
    shapes = {CELL: (state[0], cells), PROJECTION: (outputs, cells), PROJECTION_BIAS: (outputs,)}
    for gate in range(4):
        shapes |= {WEIGHTS + gate: (cells, x[2]), RECURRENT + gate: (cells, outputs), BIAS + gate: (cells,)}
        shapes |= {PEEPHOLE_OF[gate]: (cells,)} if gate in PEEPHOLE_OF else {}
    required = [i + gate for i in (WEIGHTS, RECURRENT, BIAS) for gate in (1, 2, 3)]
    batches = x[1] if layer.op.time_major else x[0]
    whole = layer.has_input(WEIGHTS) == layer.has_input(RECURRENT) == layer.has_input(BIAS)
    projected = layer.has_input(PROJECTION) or outputs == cells
    return (
        whole
        and projected
        and batches == state[0]
        and all(layer.has_input(index) for index in required)
        and all(extents(optional(layer, index), shape) for index, shape in shapes.items())
    )


@dataclass(frozen=True)
class LstmFloat(Op):
    """Outputs: all steps, if they are kept, the last output state, the last cell state."""

    operands = (cells_fit,)
    folds: ClassVar[bool] = False
    cell_clip: float = 0.0  # 0: none
    projection_clip: float = 0.0
    time_major: bool = False
    sequence: bool = True  # whether all steps are an output

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, state, cell = given(inputs, X), given(inputs, STATE), given(inputs, CELL)
        steps = TensorType((*x.shape[:2], state.shape[1]), x.dtype)
        return (*([steps] if self.sequence else []), state.type, cell.type)

    def steps_of(self, layer: Layer) -> Steps | None:
        return steps_of_lstm(layer, self.time_major) if self.sequence else None

    def without_steps(self) -> Op:
        return replace(self, sequence=False)

    def macs(self, layer: Layer) -> int:
        matrices = [*range(WEIGHTS, PEEPHOLE), PROJECTION]
        present = [t for i in matrices if (t := layer.inputs[i]) is not None]
        weights = sum(tensor.elements for tensor in present)
        return weights * layer.input(X).shape[0] * layer.input(X).shape[1]

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, state, cell = (given(inputs, i) for i in (X, STATE, CELL))
        steps = []
        for frame in x if self.time_major else x.swapaxes(0, 1):
            state, cell = self._step(inputs, frame, state, cell)
            steps.append(state)
        y = np.stack(steps)
        every = y if self.time_major else y.swapaxes(0, 1)
        return (every, state, cell) if self.sequence else (state, cell)

    def _step(self, p: Sequence[Array | None], x: Array, state: Array, cell: Array) -> tuple[Array, Array]:
        def gate(number: int, at: Array) -> Array:
            total = x @ given(p, WEIGHTS + number).T + state @ given(p, RECURRENT + number).T
            peephole = p[PEEPHOLE_OF[number]] if number in PEEPHOLE_OF else None
            total = total + (0 if peephole is None else at * peephole) + given(p, BIAS + number)
            return np.asarray(np.tanh(total) if GATES[number] == "cell" else 1 / (1 + np.exp(-total)))

        forget = gate(1, cell)
        keep = 1 - forget if p[WEIGHTS] is None else gate(0, cell)
        cell = forget * cell + keep * gate(2, cell)
        if self.cell_clip > 0:
            cell = np.clip(cell, -self.cell_clip, self.cell_clip)
        hidden = gate(3, cell) * np.tanh(cell)
        projection, bias = p[PROJECTION], p[PROJECTION_BIAS]
        if projection is not None:
            hidden = hidden @ projection.T + (0 if bias is None else bias)
            if self.projection_clip > 0:
                hidden = np.clip(hidden, -self.projection_clip, self.projection_clip)
        return hidden.astype(np.float32), cell.astype(np.float32)


def single_precision(layer: Layer) -> bool:
    """All operands are float32, and weights are constants."""
    constants = all(t is None or t.is_constant for t in layer.inputs[WEIGHTS:STATE])
    return constants and all(t is None or t.dtype is DType.FLOAT32 for t in layer.inputs)


class LstmFloatKernel(Kernel[LstmFloat]):
    """Step by step in portable C; the gates of one step are the scratch memory."""

    name = "tinyml_lstm_f32"
    library = Library.PORTABLE
    sources = ("recurrent/lstm_f32.c",)
    constraints = (single_precision,)

    def scratch_bytes(self, layer: Layer[LstmFloat], target: Target) -> int:
        return len(GATES) * layer.input(CELL).shape[1] * 4

    def emit(self, layer: Layer[LstmFloat], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(X)
        steps, batches = x.shape[:2] if op.time_major else (x.shape[1], x.shape[0])

        def table(index: int, suffix: str) -> str:
            tensor = layer.inputs[index]
            return "NULL" if tensor is None else sheet.table(suffix, tensor.value)

        members: dict[str, object] = {
            ".steps": steps,
            ".batches": batches,
            ".inputs": x.shape[2],
            ".cells": layer.input(CELL).shape[1],
            ".outputs": layer.input(STATE).shape[1],
            ".step_stride": batches if op.time_major else 1,
            ".batch_stride": 1 if op.time_major else steps,
            ".cell_clip": sheet.number(op.cell_clip),
            ".projection_clip": sheet.number(op.projection_clip),
            ".projection": table(PROJECTION, "projection"),
            ".projection_bias": table(PROJECTION_BIAS, "projection_bias"),
        }
        for i, name in enumerate(GATES):
            members[f".gates[{i}].weights"] = table(WEIGHTS + i, f"{name}_weights")
            members[f".gates[{i}].recurrent"] = table(RECURRENT + i, f"{name}_recurrent")
            members[f".gates[{i}].bias"] = table(BIAS + i, f"{name}_bias")
            if i in PEEPHOLE_OF:
                members[f".gates[{i}].peephole"] = table(PEEPHOLE_OF[i], f"{name}_peephole")
        sheet.include("<stddef.h>")
        sheet.include("<tinyml/lstm_f32.h>")
        name = sheet.record("struct tinyml_lstm_f32", "params", members)
        y = sheet.y(0) if op.sequence else "NULL"
        state, cell = (sheet.y(i) for i in range(len(layer.outputs) - 2, len(layer.outputs)))
        for target, source in ((state, STATE), (cell, CELL)):
            sheet.copy(sheet.x(source), target, layer.input(source).bytes)
        sheet.call("tinyml_lstm_f32", name, sheet.x(X), y, state, cell, sheet.scratch)


register_kernels(LstmFloat, LstmFloatKernel())
