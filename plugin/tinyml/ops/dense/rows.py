# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dense layers with several rows of int8, by the kernels of convolutions whose windows are pixels.

Kernels of dense layers compute row after row; those of convolutions load each word of the weights once for
two or four rows. Most of a transformer are such layers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.short import ConvShortDsp, ConvShortHelium, few_filters
from tinyml.ops.conv.streamed import ConvPairs
from tinyml.ops.conv.vectors import ConvHelium
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.quant import quant_of
from tinyml.ops.weighted import helium
from tinyml.ops.weighted.pairs import pairs_are_exact
from tinyml.ops.weighted.records import SMALL, constant_weights, int8_tensors, symmetric_weights
from tinyml.ops.weighted.stream import right_shifts
from tinyml.ops.weighted.weighted import Weighted


def rows_of(layer: Layer[Weighted]) -> int:
    x = layer.input(0)
    return x.elements // max(1, x.shape[-1])


def as_pixels(layer: Layer[Weighted]) -> Layer[Convolution]:
    """The same layer with its rows as the pixels of a line, and 1x1 filters."""

    def shaped(tensor: Tensor, *shape: int) -> Tensor:
        data: Array | None = None if tensor.data is None else tensor.data.reshape(shape)
        return replace(tensor, shape=shape, data=data)

    op, rows = layer.op, rows_of(layer)
    x, w, y = layer.input(0), layer.input(1), layer.output
    single = not quant_of(w).per_channel  # as Dense.multipliers() has it
    return Layer(
        layer.name,
        Conv(clamp=op.clamp, round_once=op.round_once, single_scales=single, few=getattr(op, "few", False)),
        (shaped(x, 1, 1, rows, x.shape[-1]), shaped(w, w.shape[0], 1, 1, w.shape[1]), *layer.inputs[2:]),
        (shaped(y, 1, 1, rows, y.shape[-1]),),
    )


def rows_in_pairs(layer: Layer[Weighted]) -> bool:
    """There are 2 rows, or more than 3: two are computed at a time."""
    rows = rows_of(layer)
    return rows > 1 and rows != 3


def rows_in_fours(layer: Layer[Weighted]) -> bool:
    """There are 4 rows, or more than 5: four are computed at a time."""
    rows = rows_of(layer)
    return rows > 3 and rows != 5


def short_rows(layer: Layer[Weighted]) -> bool:
    """There are fewer than 32,768 rows, inputs and outputs."""
    return max(rows_of(layer), *layer.input(1).shape) < SMALL


class OfRows(Kernel[Weighted]):
    """A kernel of dense layers that is one of convolutions."""

    library = Library.PORTABLE
    by: ClassVar[Kernel[Convolution]]

    def runs_on(self, target: Target) -> bool:
        return self.by.runs_on(target)

    def functions(self, layer: Layer[Weighted]) -> tuple[str, ...]:
        return self.by.functions(as_pixels(layer))

    def scratch_bytes(self, layer: Layer[Weighted], target: Target) -> int:
        return self.by.scratch_bytes(as_pixels(layer), target)

    def overlays(self, layer: Layer[Weighted]) -> tuple[Overlay, ...]:
        return self.by.overlays(as_pixels(layer))

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        self.by.emit(as_pixels(layer), sheet)

    def play(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        self.by.play(as_pixels(layer), sheet)

    def loop_counts(self, layer: Layer[Weighted], target: Target) -> Work | None:
        return self.by.loop_counts(as_pixels(layer), target)


class DenseRowsPairs(OfRows):
    """Two rows times four filters at once with DSP instructions, two filters in one int16."""

    by = ConvPairs()
    name = ConvPairs.name
    sources = ConvPairs.sources
    loop_counts = OfRows.loop_counts
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        rows_in_pairs,
        short_rows,
        right_shifts,
        symmetric_weights,
        pairs_are_exact,
    )


class DenseRowsShort(OfRows):
    """A row times four filters with DSP instructions, where it is in the input."""

    by = ConvShortDsp()
    name = ConvShortDsp.name
    sources = ConvShortDsp.sources
    loop_counts = OfRows.loop_counts
    constraints: ClassVar[tuple[Constraint, ...]] = (
        few_filters,
        int8_tensors,
        constant_weights,
        short_rows,
        right_shifts,
        symmetric_weights,
    )


def one_vector_of_rows(layer: Layer[Weighted]) -> bool:
    """There are at most 16 inputs."""
    return int(layer.input(1).shape[1]) <= helium.LANES


class DenseRowsShortHelium(DenseRowsShort):
    """The same with Helium: a row is a vector."""

    by = ConvShortHelium()
    name = ConvShortHelium.name
    sources = ConvShortHelium.sources
    loop_counts = OfRows.loop_counts
    constraints = (*DenseRowsShort.constraints, one_vector_of_rows)


class DenseRowsHelium(OfRows):
    """Four rows times two filters at once, sixteen elements of each."""

    by = ConvHelium()
    name = ConvHelium.name
    sources = ConvHelium.sources
    loop_counts = OfRows.loop_counts
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        rows_in_fours,
        short_rows,
        symmetric_weights,
        helium.proper_shifts,
    )
