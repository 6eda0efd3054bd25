# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TfIdf: how often known sequences of tokens (n-grams) occur in a row, with gaps allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.shared.operands import at_least_rank, present


@dataclass(frozen=True)
class Gram:
    """One n-gram: its tokens, where its count goes, and what a count is worth."""

    tokens: tuple[int, ...]
    output: int
    weight: float = 1.0


@dataclass(frozen=True)
class TfIdf(Op):
    """Tokens of a gram stand ``gap + 1`` apart, for each gap up to ``gaps``; ``once``: counts end at 1."""

    operands = (present(1), at_least_rank(0, 1))
    grams: tuple[Gram, ...] = ()
    outputs: int = 1
    gaps: int = 0
    once: bool = False

    def attributes(self) -> dict[str, Any]:
        return {"grams": len(self.grams), "gaps": self.gaps, "once": self.once}

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType((*given(inputs, 0).shape[:-1], self.outputs), DType.FLOAT32),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        rows = x.reshape(-1, x.shape[-1])
        y = np.zeros((len(rows), self.outputs), np.float32)
        for row, found in zip(rows, y, strict=True):
            for gram in self.grams:
                number = self._occurrences([int(token) for token in row], gram)
                found[gram.output] += gram.weight * (min(number, 1) if self.once else number)
        return (y.reshape(layer.output.shape),)

    def _occurrences(self, row: list[int], gram: Gram) -> int:
        n = len(gram.tokens)
        steps = range(1, self.gaps + 2) if n > 1 else range(1, 2)
        return sum(
            tuple(row[start : start + (n - 1) * step + 1 : step]) == gram.tokens
            for step in steps
            for start in range(len(row) - (n - 1) * step)
        )


class TfIdfLoops(Kernel[TfIdf]):
    """Compares every gram at every position of the row."""

    name = "n-gram loops"

    def emit(self, layer: Layer[TfIdf], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        length = x.shape[-1]
        tokens = [token for gram in op.grams for token in gram.tokens]
        starts = np.cumsum([0, *(len(gram.tokens) for gram in op.grams)])
        pool = sheet.table("tokens", np.array(tokens, x.dtype.numpy))
        first = sheet.table("starts", starts.astype(np.int32))
        places = sheet.table("outputs", np.array([gram.output for gram in op.grams], np.int32))
        weights = sheet.table("weights", np.array([gram.weight for gram in op.grams], np.float32))
        with sheet.loop("i", layer.output.elements):
            sheet.line(f"{sheet.y()}[i] = 0.0f;")
        with (
            sheet.loop("r", x.elements // max(length, 1)),
            sheet.loop("g", len(op.grams)),
        ):
            sheet.line(f"const {x.dtype.c} *gram = &{pool}[{first}[g]];")
            sheet.line(f"const int32_t n = {first}[g + 1] - {first}[g];")
            sheet.line(f"const int32_t steps = n > 1 ? {op.gaps + 1} : 1;")
            sheet.line("int32_t number = 0;")
            sheet.line()
            with (
                sheet.block("for (int32_t step = 1; step <= steps; step++) {"),
                sheet.block(f"for (int32_t at = 0; at + (n - 1) * step < {length}; at++) {{"),
            ):
                sheet.line("int32_t k = 0;")
                sheet.line()
                with sheet.block(f"while (k < n && {sheet.x()}[r * {length} + at + k * step] == gram[k]) {{"):
                    sheet.line("k++;")
                sheet.line("number += k == n ? 1 : 0;")
            count = "(number > 0 ? 1.0f : 0.0f)" if op.once else "(float)number"
            sheet.line(f"{sheet.y()}[r * {op.outputs} + {places}[g]] += {weights}[g] * {count};")


register_kernels(TfIdf, TfIdfLoops())


@onnx_op("TfIdfVectorizer")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    mode = node.attr("mode")
    if "pool_strings" in node.attributes or mode not in ("TF", "IDF", "TFIDF"):
        raise UnsupportedError(
            f"TfIdfVectorizer node {node.name!r} on strings, or with mode {mode}",
            "numbers as tokens, with mode TF, IDF or TFIDF",
        )
    pool, starts = node.ints("pool_int64s"), node.ints("ngram_counts")
    outputs = node.ints("ngram_indexes")
    weights = [1.0] * len(outputs)
    if mode != "TF" and node.attr("weights"):
        weights = [float(weight) for weight in node.attr("weights")]
    grams: list[Gram] = []
    number = 0  # of the gram in the whole pool, of those too short or too long as well
    shortest, longest = int(node.attr("min_gram_length")), int(node.attr("max_gram_length"))
    for n, (start, end) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True), start=1):
        for place in range(start, end, n):
            if shortest <= n <= longest:
                grams.append(Gram(pool[place : place + n], outputs[number], weights[number]))
            number += 1
    op = TfIdf(tuple(grams), max(outputs) + 1, int(node.attr("max_skip_count")), mode == "IDF")
    return [build.add1(op, [node.input(0)])]
