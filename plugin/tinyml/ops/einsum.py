# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Einsum: sums of products over named axes."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyml.base import c
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer


def letters_fit(layer: Layer[Any]) -> bool:
    """There is an operand for each term, with an axis for each letter; axes with the same letter have the
    same extent."""
    terms = layer.op.terms
    if len(layer.inputs) != len(terms) or any(tensor is None for tensor in layer.inputs):
        return False
    if any(len(layer.input(i).shape) != len(term) for i, term in enumerate(terms)):
        return False
    extents: dict[str, set[int]] = {}
    for index, term in enumerate(terms):
        for letter, extent in zip(term, layer.input(index).shape, strict=True):
            extents.setdefault(letter, set()).add(extent)
    return all(len(found - {1}) <= 1 for found in extents.values())


def result_fits(layer: Layer[Any]) -> bool:
    """The letters of the result occur in the operands, and each occurs once in the result."""
    result = layer.op.result
    return len(set(result)) == len(result) and set(result) <= set("".join(layer.op.terms))


@dataclass(frozen=True)
class Einsum(Op):
    """One string of letters for each operand, one for the result; an axis of extent 1 is repeated."""

    operands = (letters_fit, result_fits)
    terms: tuple[str, ...] = ()
    result: str = ""

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        extents = self.extents(inputs)
        return (TensorType(tuple(extents[letter] for letter in self.result), given(inputs, 0).dtype),)

    def extents(self, inputs: Sequence[Tensor | None]) -> dict[str, int]:
        """How far each letter runs."""
        found: dict[str, int] = {}
        for index, term in enumerate(self.terms):
            shape = given(inputs, index).shape
            for letter, extent in zip(term, shape, strict=True):
                before = found.get(letter, 1)
                found[letter] = extent if before == 1 else before
        return found

    def macs(self, layer: Layer) -> int:
        return int(np.prod(list(self.extents(layer.inputs).values()), dtype=np.int64))

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        extents = self.extents(layer.inputs)
        operands = [given(inputs, i) for i in range(len(self.terms))]
        wide = [
            np.broadcast_to(x, [extents[letter] for letter in term])
            for x, term in zip(operands, self.terms, strict=True)
        ]
        y = np.einsum(f"{','.join(self.terms)}->{self.result}", *wide)
        return (np.asarray(y).astype(layer.output.dtype.numpy),)


class EinsumLoops(Kernel[Einsum]):
    """Loops over the axes of the result, and inside them over those that are summed away."""

    name = "einsum loops"

    def emit(self, layer: Layer[Einsum], sheet: Sheet) -> None:
        op, y = layer.op, layer.output
        extents = op.extents(layer.inputs)
        summed = "".join(letter for letter in extents if letter not in op.result)
        outer = {"y": c.Walk(c.contiguous(y.shape))}
        inner: dict[str, c.Walk] = {}
        for index, term in enumerate(op.terms):
            strides = _letter_strides(term, layer.input(index).shape)
            outer[str(index)] = c.Walk(tuple(strides.get(letter, 0) for letter in op.result))
            inner[str(index)] = c.Walk(tuple(strides.get(letter, 0) for letter in summed))
        # integers wrap, which C allows only for unsigned types
        wide = "uint64_t" if y.dtype.bytes == 8 else "uint32_t"
        cast, back = ("", "") if y.dtype.is_float else (f"({wide})", f"({y.dtype.c})")
        inner_nest = c.nest(tuple(extents[letter] for letter in summed), inner, prefix="k")
        with sheet.loops(c.nest(y.shape, outer)) as kept:
            sheet.line(f"{y.dtype.c if y.dtype.is_float else wide} acc = 0;")
            with sheet.loops(inner_nest) as running:
                places = [kept[str(i)] + running[str(i)] for i in range(len(op.terms))]
                factors = [f"{cast}{sheet.x(i)}[{place}]" for i, place in enumerate(places)]
                sheet.line(f"acc += {' * '.join(factors)};")
            sheet.line(f"{sheet.y()}[{kept['y']}] = {back}acc;")


def _letter_strides(term: str, shape: Sequence[int]) -> dict[str, int]:
    """How far a step of each letter moves in an operand; a repeated letter walks a diagonal."""
    strides: dict[str, int] = {}
    for letter, extent, stride in zip(term, shape, c.contiguous(shape), strict=True):
        strides[letter] = strides.get(letter, 0) + (stride if extent != 1 else 0)
    return strides


register_kernels(Einsum, EinsumLoops())


@onnx_op("Einsum")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    operands = [node.input(i) for i in range(len(node.inputs))]
    equation = str(node.attr("equation", "")).replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands) or not re.fullmatch(r"[a-zA-Z.,]*", left + right):
        raise UnsupportedError(
            f"Einsum node {node.name!r}: the equation {equation!r} does not fit {len(operands)} operands"
        )
    if any(term.count(".") not in (0, 3) or ("." in term and "..." not in term) for term in (*terms, right)):
        raise UnsupportedError(f"Einsum node {node.name!r}: {equation!r}", "write an ellipsis as three dots")
    # the dots are axes without a name: give them letters that the equation does not use
    unused = [letter for letter in string.ascii_letters if letter not in equation]
    ranks = [
        len(x.shape) - len(term.replace("...", "")) if "..." in term else 0
        for x, term in zip(operands, terms, strict=True)
    ]
    dots = "".join(unused[: max(ranks, default=0)])
    if not arrow:  # the letters that occur once, in order, after the dots
        letters = left.replace("...", "").replace(",", "")
        right = ("..." if dots else "") + "".join(sorted(ch for ch in set(letters) if letters.count(ch) == 1))
    named = tuple(
        term.replace("...", dots[len(dots) - rank :]) for term, rank in zip(terms, ranks, strict=True)
    )
    return [build.add1(Einsum(named, right.replace("...", dots)), operands)]


@onnx_writer(Einsum)
def write_onnx(op: Einsum, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("Einsum", x, y, equation=f"{','.join(op.terms)}->{op.result}")
