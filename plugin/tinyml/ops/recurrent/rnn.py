# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM as ONNX defines them: one direction is one operator."""

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
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.work import Work
from tinyml.ops.recurrent.cells import CELLS, FUNCTIONS, GATES, Activation, activate
from tinyml.ops.recurrent.integer_form import USUAL_CELL_BITS, integer_form
from tinyml.ops.recurrent.recurrent_float_counts import Run, recurrent
from tinyml.ops.shared.operands import extents, optional, present
from tinyml.ops.weighted.byte_weights import byte_form
from tinyml.ops.weighted.records import TILE_WORDS, float_tiles

X, W, R, B, LENGTHS, H0, C0, PEEPHOLES = range(8)
SHARED = ("recurrent/recurrent.c", "recurrent/recurrent_activations.c")
PRODUCTS = {
    "tinyml_add_product_f32": ("recurrent/recurrent_product_f32.c",),
    "tinyml_add_product_f32_s8": ("recurrent/recurrent_product_f32_s8.c",),
    "tinyml_add_product_tiles_f32": ("recurrent/recurrent_product_tiles_f32.c", "weighted/filters_f32.c"),
}
"""The function that multiplies by a matrix, and the files it needs."""


def sequence_of_vectors(layer: Layer[Recurrent]) -> bool:
    """The input has 3 axes: steps, batches, features."""
    return len(layer.input(X).shape) == 3


def gates_fit(layer: Layer[Recurrent]) -> bool:
    """The weights are gates * hidden x features, the recurrent ones gates * hidden x hidden."""
    w, r = layer.input(W).shape, layer.input(R).shape
    rows = GATES[layer.op.cell] * r[-1] if r else 0
    return rows > 0 and w == (rows, layer.input(X).shape[2]) and r == (rows, r[-1])


def biases_and_states_fit(layer: Layer[Recurrent]) -> bool:
    """The bias has 2 * gates * hidden elements, peepholes 3 * hidden, states batches x hidden."""
    batches, hidden = layer.input(X).shape[1], layer.input(R).shape[1]
    state = (batches, hidden)
    wanted = {B: (2 * GATES[layer.op.cell] * hidden,), LENGTHS: (batches,), H0: state, C0: state}
    wanted[PEEPHOLES] = (3 * hidden,)
    return all(extents(optional(layer, index), shape) for index, shape in wanted.items())


def enough_activations(layer: Layer[Recurrent]) -> bool:
    """There is one activation function for rnn, two for gru, three for lstm."""
    return len(layer.op.activations) == {"rnn": 1, "gru": 2, "lstm": 3}[layer.op.cell]


@dataclass(frozen=True)
class Recurrent(Op):
    """Inputs: x (steps, batches, inputs), w, r, b, lengths, h0, c0, peepholes; all after r optional.

    Outputs: all steps (if ``sequence``), the last hidden state and, for LSTM, the last cell state.
    """

    operands = (present(3), sequence_of_vectors, gates_fit, biases_and_states_fit, enough_activations)
    spare_outputs: ClassVar[bool] = True
    cell: str = "lstm"
    activations: tuple[Activation, ...] = ()
    reverse: bool = False
    sequence: bool = True
    clip: float = 0.0
    linear_before_reset: bool = False
    input_forget: bool = False
    cell_bits: int = USUAL_CELL_BITS  # integer bits of cells that nothing reads, where they are integers

    def label(self) -> str:
        return self.cell

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, r = given(inputs, X), given(inputs, R)
        steps, batches, _ = x.shape
        hidden = r.shape[1]
        state = TensorType((batches, hidden), x.dtype)
        every = (TensorType((steps, batches, hidden), x.dtype),) if self.sequence else ()
        return (*every, state, *([state] if self.cell == "lstm" else []))

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        operands = [*inputs, *[None] * (8 - len(inputs))]
        x, w, r = (given(operands, i).astype(np.float32) for i in (X, W, R))
        steps, batches, _ = x.shape
        hidden = r.shape[1]
        zeros = np.zeros((batches, hidden), np.float32)
        h = zeros.copy() if operands[H0] is None else given(operands, H0).copy()
        cell = zeros.copy() if operands[C0] is None else given(operands, C0).copy()
        lengths = operands[LENGTHS]
        lengths = np.full(batches, steps) if lengths is None else np.minimum(lengths, steps)
        h[lengths <= 0] = cell[lengths <= 0] = 0  # as in onnxruntime
        every = np.zeros((steps, batches, hidden), np.float32)
        step = CELLS[self.cell]
        for n in range(batches):
            for s in range(int(lengths[n])):
                t = int(lengths[n]) - 1 - s if self.reverse else s
                h[n], cell[n] = step(self, x[t, n], h[n], cell[n], w, r, operands[B], operands[PEEPHOLES])
                every[t, n] = h[n]
        first = (every,) if self.sequence else ()
        return (*first, h, *([cell] if self.cell == "lstm" else []))

    def act(self, index: int, x: Array) -> Array:
        """Activation number ``index`` on clipped values."""
        limited = np.clip(x, -self.clip, self.clip) if self.clip > 0 else x
        return activate(self.activations[index], limited)

    def steps_of(self, layer: Layer) -> Steps | None:
        """With lengths, every batch has another last step."""
        if not self.sequence or optional(layer, LENGTHS) is not None:
            return None
        steps, batches, hidden = layer.outputs[0].shape
        return Steps(0, 1, 0 if self.reverse else (steps - 1) * batches * hidden) if steps else None

    def without_steps(self) -> Op:
        return replace(self, sequence=False)

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        return integer_form(self, inputs, outputs)

    def macs(self, layer: Layer) -> int:
        steps, batches, inputs = layer.input(X).shape
        hidden = layer.input(R).shape[1]
        return steps * batches * GATES[self.cell] * hidden * (inputs + hidden)


def single_precision(layer: Layer) -> bool:
    """All tensors but the lengths are float32."""
    operands = [t for i, t in enumerate(layer.inputs) if i != LENGTHS]
    return all(t is None or t.dtype is DType.FLOAT32 for t in operands)


def short_lengths(layer: Layer) -> bool:
    """The lengths of the sequences are int32."""
    return not layer.has_input(LENGTHS) or layer.input(LENGTHS).dtype is DType.INT32


def _product(matrix: Tensor) -> str:
    """Weights that are bytes times a scale per row take a quarter of the flash; other constants are tiles."""
    if not matrix.is_constant:
        return "tinyml_add_product_f32"
    bytes_ = byte_form(matrix.value) is not None
    return "tinyml_add_product_f32_s8" if bytes_ else "tinyml_add_product_tiles_f32"


def _matrix(layer: Layer[Recurrent], sheet: Sheet, index: int, name: str) -> str:
    """The initialiser of a struct tinyml_matrix."""
    matrix = layer.input(index)
    if not matrix.is_constant:
        return f"{{{_product(matrix)}, {sheet.x(index)}, NULL, 0}}"
    form = byte_form(matrix.value)
    if form is None:
        gates = GATES[layer.op.cell]
        tiles = sheet.table(name, float_tiles(matrix.value, gates), holds=TILE_WORDS)
        return f"{{{_product(matrix)}, {tiles}, NULL, {matrix.shape[0] // gates}}}"
    values, scales = sheet.table(name, form[0]), sheet.table(f"{name}_scales", form[1])
    return f"{{{_product(matrix)}, {values}, {scales}, 0}}"


class RecurrentFloat(Kernel[Recurrent]):
    """Step by step, batch by batch; the gates of one step are scratch."""

    library = Library.PORTABLE
    constraints = (single_precision, short_lengths)
    cell: ClassVar[str]

    def refusal(self, layer: Layer[Recurrent]) -> str | None:
        return super().refusal(layer) if layer.op.cell == self.cell else f"the cell is {self.cell}"

    def scratch_bytes(self, layer: Layer[Recurrent], target: Target) -> int:
        return 4 * GATES[self.cell] * layer.input(R).shape[1]

    def loop_counts(self, layer: Layer[Recurrent], target: Target) -> Work | None:
        """None where the lengths of sequences are data."""
        if layer.has_input(LENGTHS):
            return None
        op, (steps, batches, inputs) = layer.op, layer.input(X).shape
        products = _product(layer.input(W)), _product(layer.input(R))
        functions = [activation.name for activation in op.activations]
        sizes = steps, batches, inputs, layer.input(R).shape[1]
        run = Run(op.cell, *sizes, functions, products, op.linear_before_reset, op.sequence)
        return recurrent(run)

    def runtime_sources(self, layer: Layer[Recurrent]) -> tuple[str, ...]:
        products = {file for i in (W, R) for file in PRODUCTS[_product(layer.input(i))]}
        return (*self.sources, *sorted(products))

    def emit(self, layer: Layer[Recurrent], sheet: Sheet) -> None:
        op = layer.op
        sheet.include("<stddef.h>")
        sheet.include("<tinyml/recurrent.h>")
        steps, batches, inputs = layer.input(X).shape
        members: dict[str, object] = {
            "steps": steps,
            "batches": batches,
            "inputs": inputs,
            "hidden": layer.input(R).shape[1],
            "reverse": str(op.reverse).lower(),
            "linear_before_reset": str(op.linear_before_reset).lower(),
            "input_forget": str(op.input_forget).lower(),
            "clip": sheet.number(op.clip),
        }
        for letter, act in zip("fgh", op.activations, strict=False):
            function = f"tinyml_act_{act.name}"
            members[letter] = f"{{{function}, {sheet.number(act.alpha)}, {sheet.number(act.beta)}}}"
        for index, letter in ((W, "w"), (R, "r")):
            members[letter] = _matrix(layer, sheet, index, letter)
        names = {X: "x", B: "b", LENGTHS: "lengths", H0: "h0", C0: "c0"}
        names[PEEPHOLES] = "peepholes"
        members |= {word: sheet.x(i) for i, word in names.items() if layer.has_input(i)}
        words = ["y"] if op.sequence else []
        words += ["h_last", "c_last"][: 2 if op.cell == "lstm" else 1]
        members |= {word: sheet.y(i) for i, word in enumerate(words)}
        members["scratch"] = sheet.scratch
        sheet.line("const struct tinyml_recurrent p = {")
        sheet.depth += 1
        for member, value in members.items():
            if value not in ("false", "0.0f"):
                sheet.line(f".{member} = {value},")
        sheet.depth -= 1
        sheet.line("};")
        sheet.line()
        sheet.line(f"{self.name}(&p);")

    def play(self, layer: Layer[Recurrent], sheet: Sheet) -> None:
        op = layer.op
        fixed = [layer.inputs[i] for i in (W, R, B, PEEPHOLES) if layer.has_input(i)]
        if layer.has_input(LENGTHS) or any(t is None or not t.is_constant for t in fixed):
            raise NotPlayableError("the player has no recurrent layer with computed weights or lengths")
        steps, batches, inputs = layer.input(X).shape
        members: dict[str, object] = {
            ".steps": steps,
            ".batches": batches,
            ".inputs": inputs,
            ".hidden": layer.input(R).shape[1],
            ".reverse": int(op.reverse),
            ".linear_before_reset": int(op.linear_before_reset),
            ".input_forget": int(op.input_forget),
            ".clip": sheet.number(op.clip),
        }
        for letter, act in zip("fgh", op.activations, strict=False):
            members[f".{letter}"] = list(FUNCTIONS).index(act.name)
            members[f".{letter}_alpha"] = sheet.number(act.alpha)
            members[f".{letter}_beta"] = sheet.number(act.beta)
        for index, letter in ((W, "w"), (R, "r")):
            form = byte_form(layer.input(index).value)
            members[f".{letter}"] = sheet.x(index) if form is None else sheet.table(letter, form[0])
            if form is not None:
                members[f".{letter}_scales"] = sheet.table(f"{letter}_scales", form[1])
        members |= {
            f".{word}": sheet.x(i) for i, word in ((B, "b"), (PEEPHOLES, "peepholes")) if layer.has_input(i)
        }
        h0, c0 = (sheet.x(i) if layer.has_input(i) else "NULL" for i in (H0, C0))
        outputs = [sheet.y(i) for i in range(len(layer.outputs))]
        y = outputs.pop(0) if op.sequence else "NULL"
        c_last = outputs[1] if op.cell == "lstm" else "NULL"
        sheet.note(self.name, members, sheet.x(X), h0, c0, y, outputs[0], c_last, sheet.scratch)


class RnnFloat(RecurrentFloat):
    """One gate."""

    name = "tinyml_rnn_f32"
    cell = "rnn"
    sources = ("recurrent/rnn_f32.c", *SHARED)
    loop_counts = RecurrentFloat.loop_counts


class GruFloat(RecurrentFloat):
    """Update, reset and hidden gate."""

    name = "tinyml_gru_f32"
    cell = "gru"
    sources = ("recurrent/gru_f32.c", *SHARED)
    loop_counts = RecurrentFloat.loop_counts


class LstmFloat(RecurrentFloat):
    """Input, output, forget and cell gate."""

    name = "tinyml_recurrent_lstm_f32"
    cell = "lstm"
    sources = ("recurrent/recurrent_lstm_f32.c", *SHARED)
    loop_counts = RecurrentFloat.loop_counts


register_kernels(Recurrent, RnnFloat(), GruFloat(), LstmFloat())
