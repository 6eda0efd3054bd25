# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Banded: convolutions and pools that follow one another, computed together in bands of rows.

The tensors between them never exist as a whole. An inverted bottleneck (widen, depthwise, narrow) then needs
only a few rows of its wide tensors, and a residual block, which adds the input of the chain at its end, can
be computed in place of that input. That input may reach the sum through layers of its own, the *side*: a
convolution with stride, a pool, a border of channels. ``join.py`` creates it; no file format contains it.

In a 1-D network all tensors have height 1. There, bands are columns: what is said about rows then holds for
columns, which are as contiguous in memory as the rows of an image.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Shape, Tensor, TensorType, given
from tinyml.ir.constraints import operand_problem
from tinyml.ir.hook_types import RowWindow
from tinyml.memory.bands.band_rows import Bands, Stage, cut, to_sums
from tinyml.ops.framework.kernel import Kernel

T = TypeVar("T")

HEIGHT, WIDTH = 1, 2  # axes of NHWC tensors


@dataclass(frozen=True)
class Link:
    """One of the operators, with its kernel, the number of its operands and its output."""

    op: Op
    kernel: Kernel[Any]
    operands: int  # of its own: weights and bias, besides the tensor that goes through the chain
    output: TensorType
    residual: int | None = None  # the operand that is the chain's input, or the side; only in the last link


def links_fit(layer: Layer[Any]) -> bool:
    """The operands of every operator in the chain are what it requires."""
    return all(operand_problem(part.op, part.inputs) is None for part in layer.op.layers(layer))


@dataclass(frozen=True)
class Banded(Op):
    """Inputs: x, then the weights and the bias (or nothing in its place) of each link.

    The last ``side`` links before the very last one are the side: they lead from x to the last link too.
    """

    operands = (links_fit,)
    links: tuple[Link, ...]
    rows: int  # of the output in a band
    side: int = 0
    axis: int = HEIGHT  # that the bands divide

    def label(self) -> str:
        return "_".join(link.op.label() for link in self.links)

    def attributes(self) -> dict[str, Any]:
        return {"chain": self.label(), "rows" if self.axis == HEIGHT else "columns": self.rows}

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        results: list[Tensor | None] = []
        for link, own in zip(self.links, self._operands(inputs), strict=True):
            (found,) = link.op.infer(self._linked(link, given(inputs, 0), results, own))
            results.append(Tensor.of("", replace(link.output, shape=found.shape)))
        y = given(results, -1)
        return (TensorType(y.shape, y.dtype),)

    def layers(self, layer: Layer) -> Iterator[Layer]:
        """The operators one by one, each as a whole."""
        results: list[Tensor | None] = []
        for i, (link, own) in enumerate(zip(self.links, self._operands(layer.inputs), strict=True)):
            y = Tensor.of(f"{layer.name} {i}", link.output)
            yield Layer(layer.name, link.op, tuple(self._linked(link, layer.input(0), results, own)), (y,))
            results.append(y)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        results: list[Array | None] = []
        for link, part, own in zip(self.links, self.layers(layer), self._operands(inputs), strict=True):
            results += part.op.evaluate(part, self._linked(link, inputs[0], results, own))
        return (given(results, -1),)

    @property
    def by_rows(self) -> bool:
        return self.links[0].op.by_rows

    @property
    def main(self) -> int:
        """How many links lead from the input to the last link on the main way."""
        return len(self.links) - 1 - self.side

    def _linked(self, link: Link, x: T, results: Sequence[T], own: Sequence[T]) -> list[T]:
        """The operands of the next link: of the chain, its own, and of the side."""
        i = len(results)
        if i == 0 or (self.side and i == self.main):
            source = x
        else:
            source = results[self.main - 1] if i == len(self.links) - 1 else results[i - 1]
        return with_residual(link, [source, *own], results[-1] if self.side and results else x)

    def _operands(self, inputs: Sequence[T]) -> Iterator[Sequence[T]]:
        """The operands of each link except the tensor that passes through the chain."""
        used = 1
        for link in self.links:
            yield inputs[used : used + link.operands]
            used += link.operands

    def macs(self, layer: Layer) -> int:
        return sum(part.op.macs(part) for part in self.layers(layer))

    def ends_in_sums(self, layer: Layer) -> bool:
        """Whether the last link adds up the rows that it gets, and makes its only row of them at the end."""
        *_, last = self.layers(layer)
        return not self.side and len(self.links) > 1 and self.links[-1].kernel.sums_rows(last)

    def rows_to_divide(self, layer: Layer) -> int:
        """Rows that bands divide: those of the output, or what the last link sums up."""
        *_, last = self.layers(layer)
        return (last.input(0) if self.ends_in_sums(layer) else last.output).shape[self.axis]

    def bands(self, layer: Layer) -> Bands | None:
        found = [row_window(part, self.axis, self.by_rows) for part in self.layers(layer)]
        windows = [window for window in found if window is not None]
        if len(windows) < len(found):
            return None
        if self.ends_in_sums(layer):
            return to_sums(cut(windows[:-1], self.rows, gently=True))
        main, side = [*windows[: self.main], windows[-1]], windows[self.main : -1]
        return cut(main, self.rows, side, gently=self.by_rows)

    def row_elements(self, tensor: Tensor) -> int:
        return tensor.elements // tensor.shape[self.axis]

    def in_band(self, layer: Layer, stage: Stage) -> Layer:
        """The part of an operator of the chain that it computes in a band."""
        inputs = tuple(
            t if t is None or t.is_constant else self._part(t, stage.source_rows) for t in layer.inputs
        )
        op = layer.op.with_padding(self.axis, stage.pad_top, stage.pad_bottom)
        return replace(layer, op=op, inputs=inputs, outputs=(self._part(layer.output, stage.rows),))

    def _part(self, tensor: Tensor, rows: int) -> Tensor:
        shape = tensor.shape
        return replace(tensor, shape=(*shape[: self.axis], rows, *shape[self.axis + 1 :]))


def with_residual(link: Link, operands: list[T], x: T) -> list[T]:
    if link.residual is not None:
        operands.insert(link.residual, x)
    return operands


def divided_axis(shapes: Iterable[Shape]) -> int:
    """The axis of NHWC tensors that bands divide: the width if all of them have height 1."""
    return WIDTH if all(shape[HEIGHT] == 1 for shape in shapes) else HEIGHT


def row_window(layer: Layer, axis: int | None = None, arrives: bool = False) -> RowWindow | None:
    """How an operator moves along the rows of its input; None if it does not.

    ``axis`` None: the axis that bands of this operator alone would divide. ``arrives``: in a chain that
    starts with rows as they arrive, which element-wise operators may prepare.
    """
    x, y = layer.input(0), layer.output
    if len(x.shape) != 4 or len(y.shape) != 4 or x.shape[0] != 1 or len(layer.outputs) != 1:
        return None
    axis = axis or divided_axis([x.shape, y.shape])
    variable = [t for t in layer.inputs if t is not None and not t.is_constant]
    found = layer.op.row_window(layer, axis) if len(variable) == 1 or len(layer.inputs) == 2 else None
    if found is None and arrives and len(variable) == 1 and _by_elements(layer, axis):
        return RowWindow.row_by_row(y.shape[axis])
    return found


def _by_elements(layer: Layer, axis: int) -> bool:
    """Whether an operator does the same to every row of its first operand; other operands are constant."""
    x, y = layer.input(0), layer.output
    if not layer.op.elementwise or x.is_constant or x.shape != y.shape:
        return False
    others = [t for t in layer.inputs[1:] if t is not None]
    per_row = [t.quant is not None and t.quant.axis == axis for t in (x, y)]
    behind = len(y.shape) - axis  # operands are aligned at their last axes
    return not any(per_row) and all(len(t.shape) < behind or t.shape[-behind] == 1 for t in others)


def joins_two(layer: Layer) -> bool:
    """Whether a layer has a second variable operand besides the one that goes through the chain."""
    return len(layer.inputs) == 2 and all(t is not None and not t.is_constant for t in layer.inputs)


def banded_layers(layer: Layer) -> list[tuple[Layer, Kernel[Any]]] | None:
    """The layers that are computed a few rows at a time inside a layer, with their kernels; else None."""
    if not isinstance(layer.op, Banded):
        return None
    return [(part, link.kernel) for link, part in zip(layer.op.links, layer.op.layers(layer), strict=True)]


def calls_in_bands(layer: Layer) -> list[list[tuple[Layer, int]]]:
    """For each link, what it computes in a band, and in how many; nothing if it adds up the rows of bands."""
    assert isinstance(layer.op, Banded)
    bands = layer.op.bands(layer)
    assert bands is not None, "only chains that have bands are computed in them"
    stages: list[Counter[Stage]] = [Counter() for _ in layer.op.links]
    for band in bands.bands:
        for found, stage in zip(stages, band.in_order, strict=True):
            if stage.rows:
                found[replace(stage, into=0, source=0)] += 1
    if layer.op.ends_in_sums(layer):
        stages[-1].clear()
    return [
        [(layer.op.in_band(part, stage), bands) for stage, bands in found.items()]
        for part, found in zip(layer.op.layers(layer), stages, strict=True)
    ]


def divisible(layer: Layer[Banded]) -> bool:
    """The kernels support every band, all tensors have one type, and rows have more than one element.

    In a chain that starts with rows as they arrive, types may differ, because no other tensor overlays these
    rows, and rows may have one element: samples of sound.
    """
    bands, parts = layer.op.bands(layer), list(layer.op.layers(layer))
    if bands is None:
        return False
    if not layer.op.by_rows:
        results = [part.output for part in parts]
        if any(layer.op.row_elements(y) == 1 or y.dtype is not layer.input(0).dtype for y in results):
            return False
    if layer.op.ends_in_sums(layer):
        parts.pop()
    return all(
        link.kernel.refusal(layer.op.in_band(part, stage)) is None
        for link, part, kinds in zip(layer.op.links, parts, bands.kinds, strict=False)
        for stage in kinds
    )
