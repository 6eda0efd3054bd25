# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""RecurrentInt8: RNN, GRU and LSTM of quantised ONNX models. int8 input, output and weights, int16 gates.

Matrices multiply int8 with int8. The gates are int16 with three integer bits. LSTM's cell state is int16, and
so is GRU's state, of which matrices read eight bits: what a gate lets through in small steps adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Quant, Tensor, TensorType, given
from tinyml.ir.hook_types import Steps
from tinyml.ops.recurrent.cells import GATES
from tinyml.ops.recurrent.gates_int16 import logistic, saturated, tanh
from tinyml.ops.shared.operands import extents, optional, present
from tinyml.ops.shared.quant import is_quantized, quant_of

X, W, R, B, H0, C0 = range(6)
GATE_BITS = 15
"""Sums become numbers in units of 2^-15, then gates in units of 2^-12."""
ROUNDING = 5
"""What is added before the last three bits are dropped: a half, and the mean of what two products dropped."""
WIDE = Quant.per_tensor(2.0**-15, 0)
"""GRU's state between runs."""


def shapes_fit(layer: Layer[RecurrentInt8]) -> bool:
    """The shapes of input, weights, biases and states fit each other."""
    x, w, r = (layer.input(i).shape for i in (X, W, R))
    if len(x) != 3 or len(r) != 2:
        return False
    hidden, rows = r[1], GATES[layer.op.cell] * r[1]
    biases = rows + (hidden if layer.op.second_bias else 0)
    states = all(extents(optional(layer, i), (x[1], hidden)) for i in (H0, C0))
    return (
        hidden > 0
        and x[2] > 0
        and w == (rows, x[2])
        and r[0] == rows
        and layer.input(B).shape == (biases,)
        and states
    )


def bytes_and_states(layer: Layer[RecurrentInt8]) -> bool:
    """Input, weights and output are int8, cells are int16; weights are constants without zero points."""
    op = layer.op
    weights = [layer.input(W), layer.input(R)]
    fits = is_quantized(layer.input(X), DType.INT8) and not quant_of(layer.input(X)).per_channel
    fits = fits and all(is_quantized(t, DType.INT8) and t.is_constant for t in weights)
    fits = fits and all(quant_of(t).axis == 0 and not any(quant_of(t).zero_points) for t in weights)
    fits = fits and layer.input(B).dtype is DType.INT32 and layer.input(B).is_constant
    for index, type_ in ((H0, op.state_type), (C0, op.cell_type)):
        given_state = optional(layer, index)
        fits = fits and (given_state is None or (given_state.dtype, given_state.quant) == type_)
    return bool(fits)


def sums_fit(layer: Layer[RecurrentInt8]) -> bool:
    """Sums stay below 2^31 for every input while they are scaled, and the output's scale is usual."""
    op = layer.op
    total = np.abs(layer.input(B).value[: layer.input(R).shape[0]].astype(np.int64))
    for weights, scale in ((layer.input(W), quant_of(layer.input(X)).scale), (layer.input(R), op.scale)):
        left, factors = scaling(weights, scale)
        largest = np.abs(weights.value.astype(np.int64)).sum(axis=1) * 128 << left
        if left > 16 or np.any(largest >= 1 << 31):
            return False
        total = total + (largest * np.abs(factors) >> 32) + 1
    return bool(np.all(total < 1 << 31)) and 1 <= op.out_scale[1] <= 23


WORD_SHIFT = 8
"""How far sums of 24 bits can be shifted to the left in a word."""


def sums_of_24_bits(weights: Tensor) -> bool:
    """Whether the sums of each row stay below 2^23 for every input."""
    sums = np.abs(weights.value.astype(np.int64)).sum(axis=1) * 128
    return int(sums.max(initial=0)) < 1 << (31 - WORD_SHIFT)


def scaling(weights: Tensor, scale: float) -> tuple[int, Array]:
    """How far sums are shifted to the left, and the factors of which the high words count, per row.

    Sums of 24 bits are shifted by 8 bits at least: kernels have them in the upper bits of words.
    """
    used = np.any(weights.value != 0, axis=1)
    real = np.where(used, np.asarray(quant_of(weights).scales, np.float64), 0) * scale * 2.0**GATE_BITS
    largest = float(real.max(initial=0))
    least = WORD_SHIFT if sums_of_24_bits(weights) else 0
    left = max(least, int(np.ceil(np.log2(largest))) + 1) if largest > 0 else least
    factors = np.rint(real * 2.0 ** (32 - left)).astype(np.int64)
    if np.any(factors >= 1 << 31):
        left, factors = left + 1, np.rint(real * 2.0 ** (31 - left)).astype(np.int64)
    return left, factors


@dataclass(frozen=True)
class RecurrentInt8(Op):
    """Inputs: x (steps, batches, inputs), w, r, biases, h0, c0; the last two are optional.

    Biases are in units of 2^-15, with what zero points add to every sum and ROUNDING included; GRU with
    ``linear_before_reset`` has those of the reset sums after them.
    Outputs: all steps (if ``sequence``), the last hidden state and, for LSTM, the last cell state.
    """

    operands = (present(B + 1), shapes_fit, bytes_and_states, sums_fit)
    folds: ClassVar[bool] = False
    cell: str = "lstm"
    reverse: bool = False
    sequence: bool = True
    linear_before_reset: bool = False
    wide: bool = False  # GRU: the last state is int16
    scale: float = 1.0  # of the hidden state as int8
    zero_point: int = 0
    cell_bits: int = 4  # integer bits of LSTM's cell state

    def label(self) -> str:
        return self.cell

    @property
    def second_bias(self) -> bool:
        return self.cell == "gru" and self.linear_before_reset

    @property
    def quant(self) -> Quant:
        return Quant.per_tensor(self.scale, self.zero_point)

    @property
    def state_type(self) -> tuple[DType, Quant]:
        """Of the first hidden state."""
        return (DType.INT16, WIDE) if self.cell == "gru" else (DType.INT8, self.quant)

    @property
    def cell_type(self) -> tuple[DType, Quant]:
        return DType.INT16, Quant.per_tensor(2.0 ** (self.cell_bits - 15), 0)

    @cached_property
    def out_scale(self) -> tuple[int, int]:
        """From units of 2^-15 to the output: a factor of 15 bits and a shift to the right."""
        ratio = 2.0**-15 / self.scale
        shift = 14 - int(np.floor(np.log2(ratio)))
        factor = round(ratio * 2.0**shift)
        return (factor >> 1, shift - 1) if factor == 1 << 15 else (factor, shift)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, r = given(inputs, X), given(inputs, R)
        steps, batches, _ = x.shape
        hidden = r.shape[1]
        every = TensorType((steps, batches, hidden), DType.INT8, self.quant)
        last = (batches, hidden)
        state = TensorType(last, DType.INT16, WIDE) if self.wide else TensorType(last, DType.INT8, self.quant)
        cells = (TensorType(last, *self.cell_type),) if self.cell == "lstm" else ()
        return (*((every,) if self.sequence else ()), state, *cells)

    def steps_of(self, layer: Layer) -> Steps | None:
        if not self.sequence or self.wide:
            return None
        steps, batches, hidden = layer.outputs[0].shape
        return Steps(0, 1, 0 if self.reverse else (steps - 1) * batches * hidden) if steps else None

    def without_steps(self) -> Op:
        return replace(self, sequence=False)

    def macs(self, layer: Layer) -> int:
        steps, batches, inputs = layer.input(X).shape
        hidden = layer.input(R).shape[1]
        return steps * batches * GATES[self.cell] * hidden * (inputs + hidden)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        operands = [*inputs, *[None] * (6 - len(inputs))]
        x = given(operands, X).astype(np.int64)
        steps, batches, _ = x.shape
        hidden = layer.input(R).shape[1]
        arithmetic = _Arithmetic(self, layer)
        h0, c0 = operands[H0], operands[C0]
        wide = np.zeros((batches, hidden), np.int64)
        h = np.full((batches, hidden), self.zero_point, np.int64) if h0 is None else h0.astype(np.int64)
        if self.cell == "gru" and h0 is not None:
            wide = h0.astype(np.int64)
        if self.cell == "gru":
            h = self.output(wide)
        cell = wide if c0 is None else c0.astype(np.int64)
        every = np.zeros((steps, batches, hidden), np.int8)
        for t in range(steps - 1, -1, -1) if self.reverse else range(steps):
            h, cell = arithmetic.step(x[t], h, cell)
            every[t] = h
        last = cell.astype(np.int16) if self.wide else h.astype(np.int8)
        cells = (cell.astype(np.int16),) if self.cell == "lstm" else ()
        return (*((every,) if self.sequence else ()), last, *cells)

    def output(self, h: Array) -> Array:
        """A hidden state in units of 2^-15 as int8."""
        factor, shift = self.out_scale
        scaled = ((h * factor + (1 << (shift - 1))) >> shift) + self.zero_point
        return np.asarray(np.clip(scaled, -128, 127))


class _Arithmetic:
    """One step of a layer; ``cell`` is GRU's wide state, or LSTM's cell state."""

    def __init__(self, op: RecurrentInt8, layer: Layer) -> None:
        self.op = op
        self.hidden = layer.input(R).shape[1]
        self.w, self.r = (layer.input(i).value.astype(np.int64) for i in (W, R))
        self.bias = layer.input(B).value.astype(np.int64)
        self.x_left, self.x_factors = scaling(layer.input(W), quant_of(layer.input(X)).scale)
        self.h_left, self.h_factors = scaling(layer.input(R), op.scale)

    def step(self, x: Array, h: Array, cell: Array) -> tuple[Array, Array]:
        return {"rnn": self._rnn, "gru": self._gru, "lstm": self._lstm}[self.op.cell](x, h, cell)

    def _from_input(self, x: Array, rows: slice) -> Array:
        sums = (x @ self.w[rows].T) << self.x_left
        return np.asarray((sums * self.x_factors[rows] >> 32) + self.bias[rows])

    def _from_state(self, h: Array, rows: slice) -> Array:
        sums = (h @ self.r[rows].T) << self.h_left
        return np.asarray(sums * self.h_factors[rows] >> 32)

    def _gates(self, x: Array, h: Array, rows: slice) -> Array:
        return saturated((self._from_input(x, rows) + self._from_state(h, rows)) >> 3)

    def _rnn(self, x: Array, h: Array, cell: Array) -> tuple[Array, Array]:
        return self.op.output(tanh(self._gates(x, h, slice(0, self.hidden)))), cell

    def _gru(self, x: Array, h: Array, wide: Array) -> tuple[Array, Array]:
        n = self.hidden
        gates = logistic(self._gates(x, h, slice(0, 2 * n)))
        update, reset = gates[:, :n], gates[:, n:]
        rows = slice(2 * n, 3 * n)
        if self.op.linear_before_reset:
            back = saturated((self._from_state(h, rows) + self.bias[3 * n :]) >> 3)
            fresh = (self._from_input(x, rows) >> 3) + ((reset * back + (1 << 14)) >> 15)
            new = tanh(saturated(fresh))
        else:
            new = tanh(self._gates(x, self.op.output((reset * wide + (1 << 14)) >> 15), rows))
        wide = (((1 << 15) - update) * new + update * wide + (1 << 14)) >> 15
        return self.op.output(wide), wide

    def _lstm(self, x: Array, h: Array, cell: Array) -> tuple[Array, Array]:
        n, bits = self.hidden, self.op.cell_bits
        gates = self._gates(x, h, slice(0, 4 * n))
        into, out, forget = (logistic(gates[:, i * n : (i + 1) * n]) for i in range(3))
        fresh = tanh(gates[:, 3 * n :])
        cell = saturated((forget * cell + (into * fresh >> bits) + (1 << 14)) >> 15)
        curve = tanh(saturated(cell << (bits - 3)) if bits >= 3 else cell >> (3 - bits))
        return self.op.output((out * curve + (1 << 14)) >> 15), cell
