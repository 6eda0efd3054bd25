# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of RecurrentInt8: plain C, DSP instructions, Helium. The layout of weights is that of the core."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.cores.targets import Target
from tinyml.ir import Array, Layer
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.work import Work
from tinyml.ops.recurrent import recurrent_counts
from tinyml.ops.recurrent.cells import GATES
from tinyml.ops.recurrent.recurrent_int8 import (
    C0,
    H0,
    WORD_SHIFT,
    B,
    R,
    RecurrentInt8,
    W,
    X,
    scaling,
    sums_of_24_bits,
)
from tinyml.ops.shared.quant import quant_of
from tinyml.ops.weighted.pairs import packed

TABLE = "recurrent/gates_s16.c"
PLAIN = ("recurrent/recurrent_s8.c", TABLE)
ROWS = 4
"""The same gate of four cells is computed at a time."""


class RecurrentBytes(Kernel[RecurrentInt8]):
    """Step by step, batch by batch; copies of the input of a step and of two states are scratch."""

    library = Library.PORTABLE
    cell: ClassVar[str]
    element_bytes: ClassVar[int] = 1  # of the copies
    padding: ClassVar[int] = 4  # elements of a copy are a multiple of this

    def refusal(self, layer: Layer[RecurrentInt8]) -> str | None:
        return super().refusal(layer) if layer.op.cell == self.cell else f"the cell is {self.cell}"

    def padded(self, count: int) -> int:
        return -(-count // self.padding) * self.padding

    def scratch_bytes(self, layer: Layer[RecurrentInt8], target: Target) -> int:
        hidden = layer.input(R).shape[1]
        gru = self.cell == "gru"
        copies = self.padded(layer.input(X).shape[2]) + (3 if gru else 2) * self.padded(hidden)
        return self.element_bytes * copies + (4 * hidden if gru else 0)

    def order(self, weights: Array) -> Array:
        """Weights of groups, (groups, 4, elements), as the kernel reads them."""
        return weights.reshape(*weights.shape[:2], -1, 4).transpose(0, 2, 1, 3)

    def emit(self, layer: Layer[RecurrentInt8], sheet: Sheet) -> None:
        sheet.include("<tinyml/recurrent_s8.h>")
        name = sheet.record("struct tinyml_recurrent_s8", "params", self._members(layer, sheet))
        sheet.line("const struct tinyml_recurrent_tensors t = {")
        sheet.depth += 1
        for member, value in _tensors(layer, sheet).items():
            sheet.line(f".{member} = {value},")
        sheet.depth -= 1
        sheet.line("};")
        sheet.line()
        sheet.line(f"{self.name}(&{name}, &t);")

    def play(self, layer: Layer[RecurrentInt8], sheet: Sheet) -> None:
        tensors = _tensors(layer, sheet)
        operands = (tensors.get(word, "NULL") for word in ("x", "h0", "c0", "y", "h", "c", "scratch"))
        sheet.note(self.name, self._members(layer, sheet), *operands)

    def _members(self, layer: Layer[RecurrentInt8], sheet: Sheet) -> dict[str, object]:
        op = layer.op
        steps, batches, inputs = layer.input(X).shape
        hidden = layer.input(R).shape[1]
        x_left, x_factors = scaling(layer.input(W), quant_of(layer.input(X)).scale)
        h_left, h_factors = scaling(layer.input(R), op.scale)
        biases = layer.input(B).value
        gates = GATES[op.cell]
        rows = [self.groups(values, op) for values in (biases[: gates * hidden], x_factors, h_factors)]
        w, r = (self._weights(layer.input(i).value, op) for i in (W, R))
        members: dict[str, object] = {
            ".steps": steps,
            ".batches": batches,
            ".inputs": inputs,
            ".hidden": hidden,
            **self.tables(w, r, np.stack(rows, axis=1).astype(np.int32), sheet),
            ".out_factor": op.out_scale[0],
            ".out_shift": op.out_scale[1],
            ".out_zero": op.zero_point,
            ".x_left": x_left,
            ".h_left": h_left,
            ".cell_bits": op.cell_bits,
            ".reverse": c.boolean(op.reverse),
        }
        if op.second_bias:
            members[".again"] = sheet.table(
                "again", biases[gates * hidden :], holds="biases of recurrent sums"
            )
        return members

    def groups(self, rows: Array, op: RecurrentInt8) -> Array:
        """Rows, gate by gate, as (groups, 4, ...)."""
        return np.asarray(_by_cells(rows, GATES[op.cell]).reshape(-1, ROWS, *rows.shape[1:]))

    def tables(self, w: Array, r: Array, rows: Array, sheet: Sheet) -> dict[str, object]:
        """Members for what each group has; ``rows``: (groups, 3, 4)."""
        return {
            ".w": sheet.table("w", w, 4, _WEIGHTS),
            ".r": sheet.table("r", r, 4, f"recurrent {_WEIGHTS}"),
            ".rows": sheet.table("rows", rows, holds=_ROWS),
        }

    def _weights(self, matrix: Array, op: RecurrentInt8) -> Array:
        elements = self.padded(matrix.shape[1]) - matrix.shape[1]
        return np.ascontiguousarray(
            self.order(np.pad(self.groups(matrix, op), ((0, 0), (0, 0), (0, elements))))
        )

    def loop_counts(self, layer: Layer[RecurrentInt8], target: Target) -> Work | None:
        return recurrent_counts.recurrent(layer, self.padding)


def _tensors(layer: Layer[RecurrentInt8], sheet: Sheet) -> dict[str, str]:
    """The members of struct tinyml_recurrent_tensors; those that are missing are NULL."""
    op = layer.op
    outputs = [sheet.y(i) for i in range(len(layer.outputs))]
    tensors = {"x": sheet.x(X), "scratch": sheet.scratch}
    tensors |= {word: sheet.x(i) for i, word in ((H0, "h0"), (C0, "c0")) if layer.has_input(i)}
    if op.sequence:
        tensors["y"] = outputs.pop(0)
    tensors["c" if op.wide else "h"] = outputs[0]
    if op.cell == "lstm":
        tensors["c"] = outputs[1]
    return tensors


_WEIGHTS = "weights in groups: the same gate of four neighbouring cells"
_GROUPS = "groups, the same gate of four neighbouring cells: input weights, 4 biases, 4 factors of the \
input's sums, recurrent weights, 4 factors of the state's"
_ROWS = "for each group 4 biases in units of 2^-15, 4 factors of the input's sums, 4 of the state's"


def _by_cells(rows: Array, gates: int) -> Array:
    """Rows, gate by gate, as (fours of cells, gates, 4, ...); zeros for missing cells."""
    by_gate = rows.reshape(gates, -1, *rows.shape[1:])
    missing = -by_gate.shape[1] % ROWS
    by_gate = np.pad(by_gate, ((0, 0), (0, missing), *[(0, 0)] * (by_gate.ndim - 2)))
    return np.asarray(by_gate.reshape(gates, -1, ROWS, *rows.shape[1:]).swapaxes(0, 1))


def pairs_of_rows(layer: Layer[RecurrentInt8]) -> bool:
    """The sums of each row stay below 2²³ for every input."""
    return all(sums_of_24_bits(layer.input(i)) for i in (W, R))


def shifts_of_words(layer: Layer[RecurrentInt8]) -> bool:
    """Recurrent sums are shifted by at most 8 bits, and the factor of the output is at most 1/2."""
    left, _ = scaling(layer.input(R), layer.op.scale)
    return left <= WORD_SHIFT and layer.op.out_scale[1] >= 16


class RecurrentDsp(RecurrentBytes):
    """Two rows in one int16, and one table of all that a group has; copies of input and state are int16."""

    constraints = (pairs_of_rows, shifts_of_words)
    element_bytes = 2
    sources = ("recurrent/recurrent_dsp_s8.c", "recurrent/gates_steps_s16.c")

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def order(self, weights: Array) -> Array:
        pairs = packed(weights.reshape(-1, weights.shape[2]), 1).astype(np.int16)
        halves = pairs.reshape(weights.shape[0], 2, -1, 2, 2)  # (groups, pairs, fours, half, word)
        return np.ascontiguousarray(halves.transpose(0, 2, 4, 1, 3)).astype("<i2")

    def tables(self, w: Array, r: Array, rows: Array, sheet: Sheet) -> dict[str, object]:
        """One table, which the kernel reads from its beginning to its end."""
        parts = (w, rows[:, :2].astype("<i4"), r, rows[:, 2].astype("<i4"))
        halves = [part.reshape(len(part), -1).view("<i2") for part in parts]
        return {".w": sheet.table("w", np.concatenate(halves, axis=1), 4, _GROUPS)}


class RecurrentMve(RecurrentBytes):
    """Sixteen elements of four rows at a time."""

    padding = 16
    sources = ("recurrent/recurrent_mve_s8.c", TABLE)

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def order(self, weights: Array) -> Array:
        return weights.reshape(*weights.shape[:2], -1, 16).transpose(0, 2, 1, 3)


class RnnMve(RecurrentMve):
    """RNN with Helium."""

    name, cell = "tinyml_rnn_mve_s8", "rnn"
    loop_counts = RecurrentBytes.loop_counts


class GruMve(RecurrentMve):
    """GRU with Helium."""

    name, cell = "tinyml_gru_mve_s8", "gru"
    loop_counts = RecurrentBytes.loop_counts

    def groups(self, rows: Array, op: RecurrentInt8) -> Array:
        """By cells; if the reset gate is applied to the state, all candidates come last."""
        by_cells = _by_cells(rows, GATES[op.cell])
        if op.linear_before_reset:
            return np.asarray(by_cells.reshape(-1, ROWS, *rows.shape[1:]))
        parts = (by_cells[:, :-1], by_cells[:, -1:])
        return np.concatenate([part.reshape(-1, ROWS, *rows.shape[1:]) for part in parts])


class LstmMve(RecurrentMve):
    """LSTM with Helium."""

    name, cell = "tinyml_recurrent_lstm_mve_s8", "lstm"
    loop_counts = RecurrentBytes.loop_counts


class RnnDsp(RecurrentDsp):
    """RNN with DSP instructions."""

    name, cell = "tinyml_rnn_dsp_s8", "rnn"
    loop_counts = RecurrentBytes.loop_counts


class GruDsp(RecurrentDsp):
    """GRU with DSP instructions."""

    name, cell = "tinyml_gru_dsp_s8", "gru"
    loop_counts = RecurrentBytes.loop_counts

    def groups(self, rows: Array, op: RecurrentInt8) -> Array:
        """By gates, then by cells: all reset gates come before the first candidate."""
        by_gates = _by_cells(rows, GATES[op.cell]).swapaxes(0, 1)
        return np.asarray(by_gates.reshape(-1, ROWS, *rows.shape[1:]))

    def scratch_bytes(self, layer: Layer[RecurrentInt8], target: Target) -> int:
        hidden = layer.input(R).shape[1]
        return super().scratch_bytes(layer, target) + 2 * (self.padded(hidden) - hidden)


class LstmDsp(RecurrentDsp):
    """LSTM with DSP instructions."""

    name, cell = "tinyml_recurrent_lstm_dsp_s8", "lstm"
    loop_counts = RecurrentBytes.loop_counts


class RnnBytes(RecurrentBytes):
    """RNN in plain C."""

    name, cell, sources = "tinyml_rnn_s8", "rnn", PLAIN
    loop_counts = RecurrentBytes.loop_counts


class GruBytes(RecurrentBytes):
    """GRU in plain C."""

    name, cell, sources = "tinyml_gru_s8", "gru", PLAIN
    loop_counts = RecurrentBytes.loop_counts


class LstmBytes(RecurrentBytes):
    """LSTM in plain C."""

    name, cell, sources = "tinyml_recurrent_lstm_s8", "lstm", PLAIN
    loop_counts = RecurrentBytes.loop_counts


register_kernels(
    RecurrentInt8,
    *(RnnMve(), GruMve(), LstmMve(), RnnDsp(), GruDsp(), LstmDsp()),
    *(RnnBytes(), GruBytes(), LstmBytes()),
)
