# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""LstmInt8: TFLite's integer LSTM. int8 input, output and weights, int16 cell and gates.

Gates are computed with three integer bits, the cell state has a power of two as its scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ir.hook_types import Steps
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.recurrent.cells import steps_of_lstm
from tinyml.ops.shared.gemmlowp import Q15
from tinyml.ops.shared.operands import present
from tinyml.ops.shared.quant import is_quantized, quant_of

GATES = ("input", "forget", "cell", "output")
GATE_SCALE = 2.0**-12
GATE_INTEGER_BITS = 3

# Operands: x, four input weights, four recurrent weights, four biases, output state, cell state.
X, WEIGHTS, RECURRENT, BIAS, STATE, CELL = 0, 1, 5, 9, 13, 14


@dataclass(frozen=True)
class Gate:
    """What one gate multiplies with; biases take the zero points of input and state in."""

    weights: Array
    recurrent: Array
    bias: Array
    recurrent_bias: Array
    scale: tuple[int, int]
    recurrent_scale: tuple[int, int]


def cells_fit(layer: Layer[LstmInt8]) -> bool:
    """Input, states, and the weights and biases of all four gates have shapes that fit each other."""
    x, state, cell = layer.input(X).shape, layer.input(STATE).shape, layer.input(CELL).shape
    if len(x) != 3 or len(state) != 2 or cell != state:
        return False
    hidden = state[1]
    shapes = {WEIGHTS: (hidden, x[2]), RECURRENT: (hidden, hidden), BIAS: (hidden,)}
    return (x[1] if layer.op.time_major else x[0]) == state[0] and all(
        layer.input(first + gate).shape == shape for first, shape in shapes.items() for gate in range(4)
    )


def all_quantised(layer: Layer[LstmInt8]) -> bool:
    """Input, weights and states are quantised per tensor, and weights and biases are constants."""
    quants = [layer.input(i).quant for i in (X, STATE, CELL, *range(WEIGHTS, BIAS))]
    constants = all(layer.input(i).is_constant for i in range(WEIGHTS, STATE))
    return constants and all(quant is not None and not quant.per_channel for quant in quants)


def gate_sums_fit(layer: Layer[LstmInt8]) -> bool:
    """The accumulator of each gate, bias included, stays below 2^31 for every input."""
    for gate in range(4):
        room = np.abs(layer.input(BIAS + gate).value.astype(np.int64))
        for first, operand in ((WEIGHTS, X), (RECURRENT, STATE)):
            reach = -DType.INT8.limits[0] + abs(quant_of(layer.input(operand)).zero_point)
            sizes = np.abs(layer.input(first + gate).value.astype(np.int64)).sum(axis=1)
            if np.any(room + sizes * reach >= 1 << 31):
                return False
            room = np.zeros_like(room)
    return True


CELL_BITS = (-15, -9)
"""Logarithms of the scales that cells may have."""


def cell_scale_fits(layer: Layer[LstmInt8]) -> bool:
    """The scale of the cell state is a power of two from 2^-15 to 2^-9, for which LiteRT has functions."""
    bits = math.log2(quant_of(layer.input(CELL)).scale)
    return bits.is_integer() and CELL_BITS[0] <= bits <= CELL_BITS[1]


@dataclass(frozen=True)
class LstmInt8(Op):
    """Outputs: all steps, if they are kept, the last output state, the last cell state."""

    operands = (present(CELL + 1), cells_fit, all_quantised, gate_sums_fit, cell_scale_fits)
    folds: ClassVar[bool] = False
    cell_clip: float = 0.0  # 0: none
    time_major: bool = False  # (time, batch, features) instead of (batch, time, features)
    sequence: bool = True  # whether all steps are an output

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, state, cell = given(inputs, X), given(inputs, STATE), given(inputs, CELL)
        steps = TensorType((*x.shape[:2], state.shape[1]), state.dtype, state.quant)
        return (*([steps] if self.sequence else []), state.type, cell.type)

    def steps_of(self, layer: Layer) -> Steps | None:
        return steps_of_lstm(layer, self.time_major) if self.sequence else None

    def without_steps(self) -> Op:
        return replace(self, sequence=False)

    def macs(self, layer: Layer) -> int:
        weights = sum(layer.input(i).elements for i in range(WEIGHTS, BIAS))
        return weights * layer.input(X).shape[0] * layer.input(X).shape[1]

    def gates(self, layer: Layer) -> list[Gate]:
        x, state = quant_of(layer.input(X)), quant_of(layer.input(STATE))
        return [
            _gate(
                layer.input(WEIGHTS + i),
                layer.input(RECURRENT + i),
                layer.input(BIAS + i).value,
                (x.scale, x.zero_point),
                (state.scale, state.zero_point),
            )
            for i in range(len(GATES))
        ]

    def cell_bits(self, layer: Layer) -> int:
        """The cell state's scale is 2**cell_bits."""
        return round(math.log2(quant_of(layer.input(CELL)).scale))

    def clip(self, layer: Layer) -> int:
        """The limit of the stored cell state."""
        if self.cell_clip <= 0:
            return 32767
        return int(min(self.cell_clip / quant_of(layer.input(CELL)).scale, 32767))

    def hidden_scale(self, layer: Layer) -> tuple[int, int]:
        scale = np.float32(2.0**-15) / np.float32(quant_of(layer.input(STATE)).scale)
        return fp.quantize_multiplier(float(scale * np.float32(2.0**-15)))

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, X).astype(np.int64)
        state, cell = (given(inputs, i).astype(np.int64) for i in (STATE, CELL))
        if not self.time_major:
            x = x.swapaxes(0, 1)
        steps = []
        for frame in x:
            state, cell = self._step(layer, frame, state, cell)
            steps.append(state)
        y = np.stack(steps).astype(np.int8)
        last = (state.astype(np.int8), cell.astype(np.int16))
        return (y if self.time_major else y.swapaxes(0, 1), *last) if self.sequence else last

    def _step(self, layer: Layer, x: Array, state: Array, cell: Array) -> tuple[Array, Array]:
        found = []
        for name, gate in zip(GATES, self.gates(layer), strict=True):
            acc = _int16(fp.multiply_by_quantized_multiplier(x @ gate.weights.T + gate.bias, *gate.scale))
            dot = state @ gate.recurrent.T + gate.recurrent_bias
            acc = _int16(acc + fp.multiply_by_quantized_multiplier(dot, *gate.recurrent_scale))
            function = Q15.tanh if name == "cell" else Q15.logistic
            found.append(function(acc, GATE_INTEGER_BITS))
        keep, forget, new, out = found
        bits = self.cell_bits(layer)
        kept = fp.rounding_divide_by_pot(forget * cell, 15)
        cell = _int16(kept + fp.rounding_divide_by_pot(keep * new, 30 + bits))
        limit = self.clip(layer)
        cell = np.clip(cell, -limit, limit) if self.cell_clip > 0 else cell
        hidden = Q15.tanh(cell, 15 + bits) * out
        scaled = fp.multiply_by_quantized_multiplier(hidden, *self.hidden_scale(layer))
        return np.clip(scaled + quant_of(layer.input(STATE)).zero_point, -128, 127), cell


def _gate(
    weights: Tensor, recurrent: Tensor, bias: Array, x: tuple[float, int], state: tuple[float, int]
) -> Gate:
    def scale(tensor: Tensor, of: float) -> tuple[int, int]:
        product = np.float32(quant_of(tensor).scale) * np.float32(of)
        return fp.quantize_multiplier(float(product / np.float32(GATE_SCALE)))

    w, r = weights.value.astype(np.int64), recurrent.value.astype(np.int64)
    return Gate(
        w,
        r,
        bias.astype(np.int64) - x[1] * w.sum(axis=1),
        -state[1] * r.sum(axis=1),
        scale(weights, x[0]),
        scale(recurrent, state[0]),
    )


def _int16(x: Array) -> Array:
    return np.asarray(np.clip(x, -32768, 32767))


def int8_and_int16(layer: Layer) -> bool:
    """Input, weights and output are int8, the cell state is int16."""
    bytes_ = [layer.input(i) for i in (X, STATE, *range(WEIGHTS, BIAS))]
    return all(is_quantized(t, DType.INT8) for t in bytes_) and is_quantized(layer.input(CELL), DType.INT16)


def _scale(sheet: Sheet, name: str, scale: tuple[int, int]) -> dict[str, object]:
    """A struct tinyml_scale; records of the player have its two members."""
    if sheet.plays:
        return {f"{name}multiplier": scale[0], f"{name}shift": scale[1]}
    return {f"{name}scale": f"{{{scale[0]}, {scale[1]}}}"}


class LstmInt8Kernel(Kernel[LstmInt8]):
    """Step by step in portable C; the gates of one step are the scratch memory."""

    name = "tinyml_lstm_s8"
    library = Library.PORTABLE
    sources = ("recurrent/lstm_s8.c",)
    constraints = (int8_and_int16,)

    def scratch_bytes(self, layer: Layer[LstmInt8], target: object) -> int:
        return len(GATES) * layer.input(CELL).shape[1] * 2

    def emit(self, layer: Layer[LstmInt8], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(X)
        time, batches = x.shape[:2] if op.time_major else (x.shape[1], x.shape[0])
        cells, inputs = layer.input(CELL).shape[1], x.shape[2]
        members: dict[str, object] = {
            ".steps": time,
            ".batches": batches,
            ".inputs": inputs,
            ".cells": cells,
            ".step_stride": batches if op.time_major else 1,
            ".batch_stride": 1 if op.time_major else time,
        }
        for i, (name, gate) in enumerate(zip(GATES, op.gates(layer), strict=True)):
            for member, values in (
                ("weights", gate.weights.astype(np.int8)),
                ("recurrent", gate.recurrent.astype(np.int8)),
                ("bias", gate.bias.astype(np.int32)),
                ("recurrent_bias", gate.recurrent_bias.astype(np.int32)),
            ):
                members[f".gates[{i}].{member}"] = sheet.table(f"{name}_{member}", values)
            for member, scale in (("", gate.scale), ("recurrent_", gate.recurrent_scale)):
                members |= _scale(sheet, f".gates[{i}].{member}", scale)
        members |= {
            **_scale(sheet, ".hidden_", op.hidden_scale(layer)),
            ".state_zero": quant_of(layer.input(STATE)).zero_point,
            ".cell_integer_bits": 15 + op.cell_bits(layer),
            ".cell_limit": op.clip(layer),
        }
        sheet.include("<stddef.h>")
        sheet.include("<tinyml/lstm.h>")
        name = sheet.record("struct tinyml_lstm_s8", "params", members)
        y = sheet.y(0) if op.sequence else "NULL"
        state, cell = (sheet.y(i) for i in range(len(layer.outputs) - 2, len(layer.outputs)))
        for target, source in ((state, STATE), (cell, CELL)):
            sheet.copy(sheet.x(source), target, layer.input(source).bytes)
        sheet.call("tinyml_lstm_s8", name, sheet.x(X), y, state, cell, sheet.scratch)


register_kernels(LstmInt8, LstmInt8Kernel())
