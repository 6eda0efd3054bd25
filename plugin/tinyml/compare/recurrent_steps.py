# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Integer recurrent layers against the float layers of the imported graph, step by step.

Matrices of an integer layer read its state as int8, which those of a float layer do not. Over a sequence
their results drift apart by some steps of int8, or by many where the state saturates or amplifies
differences. So the float layer starts each step from the state of the integer layer. The results of one step
may then differ by what the arithmetic of gates loses, which has a limit. What comes before and after the
layer is compared too, with the results of the integer layer on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.compare.parts import Slice
from tinyml.ir import Array, DType, Layer, Quant, Tensor, given
from tinyml.ir.interpreter import evaluate
from tinyml.ops.recurrent import recurrent_int8, rnn
from tinyml.ops.recurrent.recurrent_int8 import WIDE, RecurrentInt8
from tinyml.ops.recurrent.rnn import Recurrent
from tinyml.ops.shared.quant import quant_of

GATES = 2.0**-9
"""What gates of int16 with twelve fractional bits, and their table, may lose in a state or in a cell of 1."""
ROUNDED = 1.0
"""Steps of int8: rounding the state, and the sums before it."""
TIES = 2
"""Elements of GRU's state, times a gate, that may be rounded to another int8 before its matrix reads them."""


@dataclass(frozen=True)
class Drift:
    """The largest difference of one step, its limit, and that of whole sequences, all in steps of int8.

    ``fine``: nothing before and after the layers differs.
    """

    largest: float
    limit: float
    whole: float
    fine: bool

    @property
    def close(self) -> bool:
        return self.fine and self.largest <= self.limit


def step_by_step(
    mine: Slice, theirs: Slice, cases: Sequence[tuple[Mapping[str, Array], Mapping[str, Array]]], steps: int
) -> Drift | None:
    """For values of both sides' inputs; None if their recurrent layers do not correspond.

    ``steps``: by how many the integers that go into layers may differ, and those that come out of the part.
    """
    integer = [cast(Layer[RecurrentInt8], one) for one in mine.layers if isinstance(one.op, RecurrentInt8)]
    real = [cast(Layer[Recurrent], one) for one in theirs.layers if isinstance(one.op, Recurrent)]
    if not integer or len(integer) != len(real) or not all(map(_correspond, integer, real)):
        return None
    found = [_compare(mine, theirs, integer, real, own, other, steps) for own, other in cases]
    largest, limit, whole = (
        max(f) for f in zip(*((o.largest, o.limit, o.whole) for o in found), strict=True)
    )
    return Drift(largest, limit, whole, all(one.fine for one in found))


def _correspond(integer: Layer[RecurrentInt8], real: Layer[Recurrent]) -> bool:
    a, b = integer.op, real.op
    return (a.cell, a.reverse, a.linear_before_reset) == (b.cell, b.reverse, b.linear_before_reset)


def _compare(
    mine: Slice,
    theirs: Slice,
    integer: Sequence[Layer[RecurrentInt8]],
    real: Sequence[Layer[Recurrent]],
    own: Mapping[str, Array],
    other: Mapping[str, Array],
    steps: int,
) -> Drift:
    known = dict(own)
    for layer in mine.layers:
        known |= _outputs(layer, evaluate(layer, known))
    values = dict(other)
    worst, limit, whole, fine = 0.0, 0.0, 0.0, True
    pairs = {layer.outputs[0].name: pair for layer, pair in zip(real, integer, strict=True)}
    for layer in theirs.layers:
        pair = pairs.get(layer.outputs[0].name)
        if pair is None:
            values |= _outputs(layer, evaluate(layer, values))
            continue
        run = _Run(pair, cast(Layer[Recurrent], layer), known, values)
        fine = fine and run.reads_the_same(steps) and run.is_the_chain(known)
        worst, limit, whole = max(worst, run.largest), max(limit, run.limit), max(whole, run.whole())
        values |= _outputs(layer, run.as_real())
    first, second = known[mine.output], values[theirs.output]
    if first.dtype.kind == "f":
        fine = fine and np.allclose(first.reshape(second.shape), second, rtol=1e-4, atol=1e-6)
    else:
        apart = np.abs(first.astype(np.int64).reshape(second.shape) - second.astype(np.int64))
        fine = fine and int(apart.max(initial=0)) <= steps
    return Drift(worst, limit, whole, bool(fine))


def _outputs(layer: Layer, arrays: Sequence[Array]) -> dict[str, Array]:
    return {tensor.name: array for tensor, array in zip(layer.outputs, arrays, strict=True)}


def _operand(layer: Layer, index: int, known: Mapping[str, Array]) -> Array | None:
    tensor = layer.inputs[index] if index < len(layer.inputs) else None
    return None if tensor is None else tensor.value if tensor.is_constant else known[tensor.name]


def _real(stored: Array, quant: Quant) -> Array:
    return ((stored.astype(np.float64) - quant.zero_point) * quant.scale).astype(np.float32)


class _Run:
    """A run of the integer layer, one step after the other, with the float layer beside it."""

    def __init__(
        self, integer: Layer[RecurrentInt8], real: Layer[Recurrent], known: Mapping[str, Array],
        values: Mapping[str, Array],
    ) -> None:  # fmt: skip
        self.integer, self.op = integer, integer.op
        self.x = known[integer.input(recurrent_int8.X).name]
        self.real = real
        self.operands = [_operand(real, index, values) for index in range(8)]
        steps, batches, _ = self.x.shape
        h0, c0 = (_operand(integer, index, known) for index in (recurrent_int8.H0, recurrent_int8.C0))
        hidden = (batches, integer.input(recurrent_int8.R).shape[1])
        dtype, quant = self.op.state_type
        state = np.full(hidden, quant.zero_point, dtype.numpy) if h0 is None else h0
        cell = np.zeros(hidden, np.int16) if c0 is None else c0
        self.largest = 0.0
        ties = TIES * float(np.abs(given(self.operands, rnn.R)).max(initial=0.0))
        self.limit = ROUNDED + GATES / self.op.scale + (ties if self.op.cell == "gru" else 0.0)
        self.every = np.zeros((steps, *hidden), np.int8)
        for step in range(steps - 1, -1, -1) if self.op.reverse else range(steps):
            state, cell = self._step(step, state, cell)
        self.state, self.cell = state, cell

    def _step(self, step: int, state: Array, cell: Array) -> tuple[Array, Array]:
        op, one = self.op, self.x[step : step + 1]
        dtype, quant = op.state_type
        single = replace(op, sequence=False, reverse=False, wide=op.cell == "gru")
        operands = [
            Tensor("x", one.shape, DType.INT8, self.integer.input(recurrent_int8.X).quant),
            *self.integer.inputs[recurrent_int8.W : recurrent_int8.H0],
            Tensor("h", state.shape, dtype, quant),
            Tensor("c", cell.shape, *op.cell_type) if op.cell == "lstm" else None,
        ]
        names = [Tensor(f"y{n}", t.shape, t.dtype, t.quant) for n, t in enumerate(single.infer(operands))]
        layer = replace(self.integer, op=single, inputs=tuple(operands), outputs=tuple(names))
        found = evaluate(layer, {"x": one, "h": state, "c": cell})
        real_h, real_c = self._real_step(step, _real(state, quant), _real(cell, op.cell_type[1]))
        low, high = dtype.limits
        wanted = np.clip(real_h / quant.scale + quant.zero_point, low, high)
        apart = np.abs(found[0].astype(np.float64) - wanted) * (quant.scale / op.scale)
        if op.cell == "lstm":
            cell_step = op.cell_type[1].scale
            reach = np.clip(real_c, -(2.0**15) * cell_step, (2.0**15 - 1) * cell_step)
            off = np.abs(_real(found[1], op.cell_type[1]) - reach) / (
                2 * cell_step + GATES * (1 + np.abs(reach))
            )
            self.largest = max(self.largest, float(off.max(initial=0.0)) * self.limit)
        self.largest = max(self.largest, float(apart.max(initial=0.0)))
        self.every[step] = op.output(found[0].astype(np.int64)) if op.cell == "gru" else found[0]
        return found[0], (found[1] if op.cell == "lstm" else cell)

    def _real_step(self, step: int, state: Array, cell: Array) -> tuple[Array, Array]:
        operands = list(self.operands)
        operands[rnn.X], operands[rnn.H0] = given(operands, rnn.X)[step : step + 1], state
        if self.op.cell == "gru":
            return _gru(self.op, operands), cell
        operands[rnn.C0] = cell if self.op.cell == "lstm" else None
        single = replace(self.real.op, sequence=False, reverse=False)
        made = single.evaluate(self.real, operands)
        return made[0], (made[1] if self.op.cell == "lstm" else cell)

    def whole(self) -> float:
        """How far the last states of sequences are apart that share nothing but their input."""
        last = self.real.op.evaluate(self.real, self.operands)[1 if self.real.op.sequence else 0]
        stored = self.op.output(self.state.astype(np.int64)) if self.op.cell == "gru" else self.state
        wanted = np.clip(np.rint(last / self.op.scale) + self.op.zero_point, -128, 127)
        return float(np.abs(stored - wanted).max(initial=0.0))

    def reads_the_same(self, steps: int) -> bool:
        """The input of the two layers."""
        quant = quant_of(self.integer.input(recurrent_int8.X))
        apart = np.abs(_real(self.x, quant) - given(self.operands, rnn.X)) / quant.scale
        return float(apart.max(initial=0.0)) <= steps + 1e-3

    def is_the_chain(self, known: Mapping[str, Array]) -> bool:
        """The whole run of the integer layer is its steps in turn."""
        last = self.op.output(self.state.astype(np.int64)) if self._narrow else self.state
        steps = [self.every] if self.op.sequence else []
        cells = [self.cell] if self.op.cell == "lstm" else []
        made = [*steps, last, *cells]
        return all(
            np.array_equal(known[t.name], array)
            for t, array in zip(self.integer.outputs, made, strict=True)
            if t.name in known
        )

    @property
    def _narrow(self) -> bool:
        """GRU's last state is read as int8."""
        return self.op.cell == "gru" and not self.op.wide

    def as_real(self) -> list[Array]:
        """The results of the integer layer as outputs of the float layer."""
        every, op = _real(self.every, self.op.quant), self.op
        if self._narrow:
            last = _real(op.output(self.state.astype(np.int64)), op.quant)
        else:
            last = _real(self.state, WIDE if op.cell == "gru" else op.quant)
        cells = [_real(self.cell, op.cell_type[1])] if op.cell == "lstm" else []
        return [*([every] if self.real.op.sequence else []), last, *cells]


def _gru(op: RecurrentInt8, operands: Sequence[Array | None]) -> Array:
    """One step of GRU on floats, with matrices that read what the state is as int8."""
    x, w, r, h = (given(operands, i).astype(np.float64) for i in (rnn.X, rnn.W, rnn.R, rnn.H0))
    n = h.shape[1]
    both = operands[rnn.B]
    wb, rb = (0 * w[:, 0],) * 2 if both is None else (both[: 3 * n], both[3 * n :])

    def read(state: Array) -> Array:
        stored = np.clip(np.rint(state / op.scale) + op.zero_point, -128, 127)
        return np.asarray((stored - op.zero_point) * op.scale)

    gates = 1 / (1 + np.exp(-(x[0] @ w[: 2 * n].T + read(h) @ r[: 2 * n].T + wb[: 2 * n] + rb[: 2 * n])))
    update, reset = gates[:, :n], gates[:, n:]
    back = read(h) if op.linear_before_reset else read(reset * h)
    product = back @ r[2 * n :].T + rb[2 * n :]
    fresh = np.tanh(
        x[0] @ w[2 * n :].T + wb[2 * n :] + (reset * product if op.linear_before_reset else product)
    )
    return np.asarray((1 - update) * fresh + update * h)
