# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""FilterBank and BandRoot: the energy of a spectrum in bands, in integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.reading import MALFORMED, Builder, TfliteNode, tflite_custom_op
from tinyml.ops.shared.flexbuffer_options import option
from tinyml.ops.shared.operands import not_empty, of_rank, of_type, present
from tinyml.ops.signal import band_arithmetic

TABLES = ("falling", "rising", "bins", "weights", "widths")
"""Inputs 1 to 5, as the members of the C structure are called."""


def tables_fit(layer: Layer[FilterBank]) -> bool:
    """Tables per band have one entry more than there are bands, and both tables of weights have the same
    length."""
    falling, rising, *others = (layer.input(i).shape for i in range(1, 6))
    return falling == rising and all(shape == (layer.op.bands + 1,) for shape in others)


@dataclass(frozen=True)
class FilterBank(Op):
    """Sums of weighted bins. A bin counts for the band that ends there and for the next one."""

    operands = (
        present(6),
        of_rank(0, 1),
        not_empty(0),
        of_type(0, DType.UINT32),
        *(of_type(i, DType.UINT16) for i in range(1, 6)),
        tables_fit,
    )
    bands: int = 1

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType((self.bands,), DType.UINT64),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0).astype(np.uint64)
        falling, rising = (given(inputs, i).astype(np.uint64) for i in (1, 2))
        sums = np.zeros(self.bands + 2, np.uint64)
        places = zip(*(given(inputs, i).tolist() for i in (3, 4, 5)), strict=True)
        for centre, (bin_, weight, width) in enumerate(places):
            part = x[bin_ : bin_ + width]
            sums[centre] += (part * falling[weight : weight + width]).sum(dtype=np.uint64)
            sums[centre + 1] += (part * rising[weight : weight + width]).sum(dtype=np.uint64)
        return (sums[1 : self.bands + 1],)


class FilterBankTables(Kernel[FilterBank]):
    """One walk through the bins."""

    name = "tinyml_filter_bank"
    library = Library.PORTABLE
    sources = ("signal/bands.c",)

    def emit(self, layer: Layer[FilterBank], sheet: Sheet) -> None:
        sheet.include("<tinyml/bands.h>")
        members = {f".{name}": sheet.x(i) for i, name in enumerate(TABLES, start=1)}
        params = sheet.record("struct tinyml_filter_bank", "params", {**members, ".bands": layer.op.bands})
        sheet.line(f"tinyml_filter_bank(&{params}, {sheet.x(0)}, {sheet.y()});")


def one_shift(layer: Layer[BandRoot]) -> bool:
    """The shift is one number."""
    return layer.input(1).elements == 1


@dataclass(frozen=True)
class BandRoot(Op):
    """Square roots, rounded, then shifted to the right by the second input."""

    operands = (
        present(2),
        of_rank(0, 1),
        not_empty(0),
        of_type(0, DType.UINT64),
        of_type(1, DType.INT32),
        one_shift,
    )

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType(given(inputs, 0).shape, DType.UINT32),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        shift = np.uint64(int(given(inputs, 1).reshape(())) & 31)
        return ((band_arithmetic.root(given(inputs, 0)) >> shift).astype(np.uint32),)


class BandRootLoop(Kernel[BandRoot]):
    """Half of the digits by comparisons, half by a division."""

    name = "tinyml_band_roots"
    library = Library.PORTABLE
    sources = ("signal/bands.c",)

    def emit(self, layer: Layer[BandRoot], sheet: Sheet) -> None:
        sheet.include("<tinyml/bands.h>")
        sheet.line(
            f"tinyml_band_roots({sheet.x(0)}, {layer.output.elements}, {sheet.x(1)}[0] & 31, {sheet.y()});"
        )


register_kernels(FilterBank, FilterBankTables())
register_kernels(BandRoot, BandRootLoop())


@tflite_custom_op("SignalFilterBank")
def read_filter_bank(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """Weights and places are constants, which must be inside each other."""
    x, bands = node.input(0), option(node, "num_channels", 1, 0x7FFE)
    falling, rising, bins, weights, widths = values = [node.const(i) for i in range(1, 6)]
    ends = [(bins, x.elements), (weights, min(falling.size, rising.size))]
    if any(a.dtype != np.int16 or a.ndim != 1 or (a < 0).any() for a in values) or any(
        a.size <= bands or (a.astype(np.int64) + widths > limit).any()
        for a, limit in ends
        if a.shape == widths.shape
    ):
        raise ModelError(
            f"{node.op_type} operator {node.name!r}: weights or positions are negative or out of range",
            MALFORMED,
        )
    cut = [falling, rising, *(a[: bands + 1] for a in (bins, weights, widths))]
    return [build.add1(FilterBank(bands), [x, *(build.constant(a.astype(np.uint16)) for a in cut)])]


@tflite_custom_op("SignalFilterBankSquareRoot")
def read_square_root(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(BandRoot(), [node.input(0), node.input(1)])]
