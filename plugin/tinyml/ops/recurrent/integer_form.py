# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""When an RNN, GRU or LSTM between Dequantize and Quantize is computed on integers, and with which operands.

The input and the steps are int8, and so is the last state; a cell state that is used is int16 with a power of
two as its scale. Weights are constants, bytes times a scale for each row. States of GRU that are kept between
runs are int16 with a scale of 2^-15. Everything else stays float.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyml.ir import Array, DType, Quant, Tensor, given
from tinyml.ops.recurrent.cells import GATES
from tinyml.ops.recurrent.recurrent_int8 import GATE_BITS, ROUNDING, WIDE, RecurrentInt8
from tinyml.ops.shared.quant import is_quantized, quant_of
from tinyml.ops.weighted.byte_weights import as_bytes

X, W, R, B, LENGTHS, H0, C0, PEEPHOLES = range(8)
FUNCTIONS = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}
USUAL_STATE = Quant.per_tensor(2.0**-7, 0)
USUAL_CELL_BITS = 4
"""Cells that nothing reads reach from -16 to 16, if the file says nothing else."""

MOST_CELL_BITS = 6

Form = tuple[RecurrentInt8, Sequence[Tensor | None]]


def cell_bits(reach: float) -> int:
    """Integer bits for cells up to ``reach``; of more than there can be, the most that there are."""
    return min(max(0, int(np.ceil(np.log2(max(reach, 2.0**-15))))), MOST_CELL_BITS)


def integer_form(op: Any, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> Form | None:
    """``op`` is a Recurrent; outputs that nothing reads are float."""
    operands = [*inputs, *[None] * (8 - len(inputs))]
    x, bias = given(operands, X), operands[B]
    usual = tuple(function.name for function in op.activations) == FUNCTIONS[op.cell]
    if not usual or op.clip > 0 or op.input_forget or operands[LENGTHS] or operands[PEEPHOLES]:
        return None
    if not is_quantized(x, DType.INT8) or quant_of(x).per_channel:
        return None
    constants = [operands[i] for i in (W, R, B) if operands[i] is not None]
    if any(t is None or not t.is_constant or t.dtype is not DType.FLOAT32 for t in constants):
        return None
    matrices = [_matrix(given(operands, i)) for i in (W, R)]
    made = _operator(op, operands, outputs)
    if made is None or matrices[0] is None or matrices[1] is None:
        return None
    w, r = matrices[0], matrices[1]
    biases = _biases(made, x, w, r, None if bias is None else bias.value)
    h0, c0 = _state(operands[H0], *made.state_type), _state(operands[C0], *made.cell_type)
    if biases is None or isinstance(h0, bool) or isinstance(c0, bool):
        return None
    found: list[Tensor | None] = [x, w, r, biases, h0, c0]
    while found[-1] is None:
        found.pop()
    return made, found


def _operator(op: Any, operands: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> RecurrentInt8 | None:
    """The integer operator whose outputs have the types of ``outputs``, as far as they are read."""
    every, rest = (outputs[0], outputs[1:]) if op.sequence else (None, outputs)
    last, cells = rest[0], (rest[1] if op.cell == "lstm" else None)
    wide = op.cell == "gru" and last.dtype is DType.INT16 and last.quant == WIDE
    read = [t for t in (every, None if wide else last) if t is not None and t.quant is not None]
    if any(t.dtype is not DType.INT8 or quant_of(t).per_channel for t in read):
        return None
    if len({t.quant for t in read}) > 1:
        return None
    quant = quant_of(read[0]) if read else USUAL_STATE
    cell = next((t for t in (cells, operands[C0]) if t is not None and t.quant is not None), None)
    bits: int = op.cell_bits
    if cell is not None:
        power = np.log2(quant_of(cell).scale) + 15
        if cell.dtype is not DType.INT16 or quant_of(cell).zero_point or not float(power).is_integer():
            return None
        bits = int(power)
        if not 0 <= bits <= MOST_CELL_BITS:
            return None
    return RecurrentInt8(
        op.cell, op.reverse, op.sequence, op.linear_before_reset, wide, quant.scale, quant.zero_point, bits
    )


def _matrix(weights: Tensor) -> Tensor | None:
    form = as_bytes(weights.value)
    if form is None:
        return None
    scales = tuple(float(scale) for scale in form[1])
    return Tensor.constant(f"{weights.name}/int8", form[0], Quant(scales, (0,) * len(scales), 0))


def _biases(op: RecurrentInt8, x: Tensor, w: Tensor, r: Tensor, bias: Array | None) -> Tensor | None:
    """What is added to the scaled sums: biases, and what zero points add."""
    rows, hidden = r.shape
    both = np.zeros((2, rows)) if bias is None else bias.astype(np.float64).reshape(2, rows)
    zeros = []
    for matrix, quant in ((w, quant_of(x)), (r, op.quant)):
        sums = matrix.value.astype(np.float64).sum(axis=1)
        zeros.append(sums * np.asarray(quant_of(matrix).scales) * quant.scale * quant.zero_point)
    from_input, from_state = both[0] - zeros[0], both[1] - zeros[1]
    joined = from_input + from_state
    if op.second_bias:
        alone = GATES["gru"] * hidden - hidden
        joined[alone:] = from_input[alone:]
        joined = np.concatenate([joined, from_state[alone:]])
    stored = np.rint(joined * 2.0**GATE_BITS) + ROUNDING
    if np.any(np.abs(stored) >= 1 << 30):
        return None
    return Tensor.constant(f"{w.name}/biases", stored.astype(np.int32))


def _state(state: Tensor | None, dtype: DType, quant: Quant) -> Tensor | bool | None:
    """A first state as the integer operator reads it; None for zeros, False if it has none such."""
    if state is None:
        return None
    if not state.is_constant:
        return state if state.dtype is dtype and state.quant == quant else False
    value = state.value
    if state.quant is not None:
        value = (value.astype(np.float64) - quant_of(state).zero_point) * quant_of(state).scale
    if not np.any(value):
        return None
    low, high = dtype.limits
    exact = np.rint(value / quant.scale) + quant.zero_point
    stored = np.clip(exact, low, high)
    if np.any(np.abs(stored - exact) > 1):  # it is outside the range of the states
        return False
    return Tensor.constant(f"{state.name}/{dtype.value}", stored.astype(dtype.numpy), quant)
