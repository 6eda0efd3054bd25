# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dense: y = x · weightsᵀ + bias on the last axis; weights (out, in). Gemm and FULLY_CONNECTED."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer, Op, Tensor, TensorType, given
from tinyml.ops.dense import loop_counts
from tinyml.ops.dense.cmsis import DENSE_KERNELS, FOUR_BIT_KERNELS
from tinyml.ops.dense.computed import DenseComputed
from tinyml.ops.dense.dense_float16 import DenseFloat16Sums
from tinyml.ops.dense.rows import DenseRowsHelium, DenseRowsPairs, DenseRowsShort, DenseRowsShortHelium
from tinyml.ops.dense.sparse import DenseRuns, DenseRunsOfBytes, DenseSparse
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.table_words import stream
from tinyml.ops.framework.work import Work
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.operands import present
from tinyml.ops.shared.quant import Multipliers, output_multipliers, quant_of
from tinyml.ops.weighted import float_counts, helium, rvv, rvv_counts
from tinyml.ops.weighted.block_weights import DenseByteBlocks, DenseNibbles
from tinyml.ops.weighted.byte_weights import DenseByteWeights
from tinyml.ops.weighted.float16_weights import float16_table, float16_weights
from tinyml.ops.weighted.int16 import DenseInt16
from tinyml.ops.weighted.int16_dsp import DenseInt16Dsp, DenseInt16Helium
from tinyml.ops.weighted.into_float import DenseIntoFloat
from tinyml.ops.weighted.nibbles import (
    EIGHT_WORDS,
    FOUR_WORDS,
    begin_sums,
    elements_in_pairs,
    fields_fit,
    four_bit_weights,
    int4_weights,
    lowest_weight,
    nibble_stream,
    pairs_fit_bytes,
    shifted_sums_fit,
    vectors_in_fours,
)
from tinyml.ops.weighted.pairs import PAIR_WORDS, SIX_WORDS, pair_stream, pairs_are_exact, six_stream
from tinyml.ops.weighted.records import (
    TILE_WORDS,
    channel_tables,
    constant_weights,
    float_limits,
    float_tensors,
    float_tiles,
    folded_bias,
    int8_tensors,
    matrix,
    one_weight_zero,
    output_limits,
    symmetric_weights,
    weight_zero,
)
from tinyml.ops.weighted.stream import TURNS, filter_stream, quads, right_shifts
from tinyml.ops.weighted.walked import outputs_of
from tinyml.ops.weighted.weighted import Weighted, channel_multipliers

FOURS = "every 4 filters, then for each of the last"
SHORT = 32
"""Elements of filters for which copies of rows may take longer than what is saved by them."""

MANY_FILTERS = 32
"""From which on a layer saves enough instructions for the code of a second kernel."""


def matrix_of_weights(layer: Layer[Dense]) -> bool:
    """The weights have 2 axes, and the second is as long as the input's last axis."""
    x, w = layer.input(0), layer.input(1)
    return len(w.shape) == 2 and len(x.shape) >= 1 and x.shape[-1] == w.shape[1]


def one_row_of_words(layer: Layer[Dense]) -> bool:
    """The input is one row with a multiple of 4 elements."""
    return layer.input(0).elements == layer.input(1).shape[1] and layer.input(0).elements % 4 == 0


def many_filters(layer: Layer[Dense]) -> bool:
    """There are at least 32 filters."""
    return layer.input(1).shape[0] >= MANY_FILTERS


@dataclass(frozen=True)
class Dense(Weighted):
    """Inputs: x (..., in), weights (out, in), optional bias (out)."""

    operands: ClassVar[tuple[Constraint, ...]] = (present(2), matrix_of_weights, *Weighted.operands)
    has_integer_sums: ClassVar[bool] = True
    few: bool = False  # kernels for short filters are preferred

    @property
    def channel_axis(self) -> int:
        return 0

    def attributes(self) -> dict[str, Any]:
        """Only what the model has."""
        return {
            name: value for name, value in super().attributes().items() if (name, value) != ("few", False)
        }

    def other_forms(self, layer: Layer) -> Iterator[tuple[Op, Sequence[Tensor | None]]]:
        """Some cores have kernels that copy nothing, for several rows of few elements."""
        x, weights = layer.inputs[:2]
        if self.few or x is None or weights is None or not weights.is_constant:
            return
        if x.quant and weights.quant and x.elements > weights.shape[1] <= SHORT:
            yield replace(self, few=True), layer.inputs

    @property
    def sums_all_inputs(self) -> bool:
        return True

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        return (axis,) if index == 0 and axis < len(layer.input(0).shape) - 1 else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, w = given(inputs, 0), given(inputs, 1)
        return (TensorType((*x.shape[:-1], w.shape[0]), self.result_type(x)),)

    def accumulate(self, x: Array, weights: Array) -> Array:
        return x @ weights.T

    def multipliers(self, layer: Layer) -> Multipliers:
        """As for a convolution, except that TFLite multiplies the two per-tensor scales in float32."""
        return output_multipliers(layer, single=not quant_of(layer.input(1)).per_channel)


class DenseInt8(Kernel[Dense]):
    """One row times four filters at once, in plain C; supports any weight zero point."""

    name = "tinyml_dense_s8"
    library = Library.PORTABLE
    struct = "struct tinyml_dense_stream_s8"
    sources: ClassVar[tuple[str, ...]] = ("dense/dense_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (int8_tensors, constant_weights, one_weight_zero)
    words: ClassVar[str] = stream(FOURS, TURNS)

    def emit(self, layer: Layer[Dense], sheet: Sheet) -> None:
        sheet.include("<tinyml/dense.h>")
        members = {**matrix(layer), **self.weight_layout(layer, sheet), **output_limits(layer)}
        name = sheet.record(self.struct, "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y())

    def weight_layout(self, layer: Layer[Dense], sheet: Sheet) -> dict[str, object]:
        """Members that only this struct has: filters in fours, the last ones one by one."""
        filters = layer.input(1).value
        bias, outputs = folded_bias(layer, filters), filters.shape[0]
        multiplier, shift = channel_multipliers(layer)
        whole = outputs - outputs % 4
        parts = [
            filter_stream(rows, bias[part], (multiplier[part], shift[part]), together)
            for rows, part, together in (
                (self.in_fours(filters[:whole]), slice(whole), 4),
                (filters[whole:], slice(whole, outputs), 1),
            )
            if len(rows) > 0
        ]
        name = sheet.table("filters", np.concatenate(parts), holds=self.words)
        return {".filters": name, **weight_zero(layer)}

    def in_fours(self, filters: Array) -> Array:
        """Weights of a multiple of four filters, in the order in which their words take turns."""
        return filters

    def loop_counts(self, layer: Layer[Dense], target: Target) -> Work | None:
        return loop_counts.stream(layer)


class DenseQuads(DenseInt8):
    """The same on Arm cores without DSP instructions: four weights in a word, taken apart by shifts."""

    name = "tinyml_dense_quads_s8"
    sources: ClassVar[tuple[str, ...]] = ("dense/dense_quads_s8.c",)
    words = stream(FOURS, "weights, one of each of the 4 filters in a word, the first 3 plus 128")

    def runs_on(self, target: Target) -> bool:
        return target.arm and not target.dsp

    def in_fours(self, filters: Array) -> Array:
        return quads(filters)

    def loop_counts(self, layer: Layer[Dense], target: Target) -> Work | None:
        return loop_counts.stream(layer, with_offset=True)


class DenseDsp(DenseInt8):
    """The same with DSP instructions, in pairs of int16."""

    name = "tinyml_dense_dsp_s8"
    sources: ClassVar[tuple[str, ...]] = ("dense/dense_dsp_s8.c",)
    constraints = (*DenseInt8.constraints, right_shifts)

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def loop_counts(self, layer: Layer[Dense], target: Target) -> Work | None:
        return loop_counts.stream(layer)


class DensePairs(DenseDsp):
    """The same with two filters in one int16, where that is exact."""

    name = "tinyml_dense_pairs_s8"
    sources: ClassVar[tuple[str, ...]] = ("dense/dense_pairs_s8.c",)
    constraints = (*DenseDsp.constraints, symmetric_weights, pairs_are_exact)

    def weight_layout(self, layer: Layer[Dense], sheet: Sheet) -> dict[str, object]:
        filters = layer.input(1).value
        words = pair_stream(filters, folded_bias(layer, filters), channel_multipliers(layer))
        return {".filters": sheet.table("filters", words, holds=PAIR_WORDS), **weight_zero(layer)}

    def loop_counts(self, layer: Layer[Dense], target: Target) -> Work | None:
        return loop_counts.pairs(layer)


class DenseSixes(DensePairs):
    """The same for large layers: the input is unpacked once for six filters, not for four."""

    name = "tinyml_dense_sixes_s8"
    sources: ClassVar[tuple[str, ...]] = ("dense/dense_sixes_s8.c", *DensePairs.sources)
    constraints = (*DensePairs.constraints, one_row_of_words, many_filters)

    def weight_layout(self, layer: Layer[Dense], sheet: Sheet) -> dict[str, object]:
        filters = layer.input(1).value
        words = six_stream(filters, folded_bias(layer, filters), channel_multipliers(layer))
        return {".filters": sheet.table("filters", words, holds=SIX_WORDS), **weight_zero(layer)}

    def loop_counts(self, layer: Layer[Dense], target: Target) -> Work | None:
        return loop_counts.sixes(layer)


class DenseHelium(DenseInt8):
    """One row times four filters at once, sixteen elements of each."""

    name = "tinyml_dense_mve_s8"
    struct = "struct tinyml_dense_mve_s8"
    sources: ClassVar[tuple[str, ...]] = ("dense/dense_mve_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        symmetric_weights,
        helium.right_shifts,
    )

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def functions(self, layer: Layer[Dense]) -> tuple[str, ...]:
        return self.name, f"tinyml_dense_mve_{helium.loop(layer)}"

    def weight_layout(self, layer: Layer[Dense], sheet: Sheet) -> dict[str, object]:
        filters = layer.input(1).value
        return {
            **channel_tables(layer, sheet, filters, helium.in_fours(filters)),
            ".loop": f"&tinyml_dense_mve_{helium.loop(layer)}",
        }


class DenseVector(DenseInt8):
    """One element of a row times as many filters as a vector of RISC-V holds."""

    name = "tinyml_dense_rvv_s8"
    struct = "struct tinyml_dense_rvv_s8"
    sources = ("dense/dense_rvv_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        symmetric_weights,
        rvv.several_channels,
        helium.right_shifts,
    )

    def runs_on(self, target: Target) -> bool:
        return target.rvv

    def weight_layout(self, layer: Layer[Dense], sheet: Sheet) -> dict[str, object]:
        filters = layer.input(1).value
        return channel_tables(layer, sheet, filters, rvv.channels_last(filters))

    def loop_counts(self, layer: Layer[Dense], target: Target) -> Work | None:
        made = outputs_of(layer)
        return rvv_counts.dense(*loop_counts.matrix_of(layer), made, packed=self.weight_bits == 4)


class DenseFourBits(DenseInt8):
    """Weights of four bits, those of four filters in an int16; supports any weight zero point."""

    name = "tinyml_dense_nibbles_s8"
    sources = ("dense/dense_nibbles_s8.c",)
    constraints = (*DenseInt8.constraints, four_bit_weights)
    weight_bits = 4

    def weight_layout(self, layer: Layer[Dense], sheet: Sheet) -> dict[str, object]:
        words = nibble_stream(layer, folded_bias(layer, layer.input(1).value), channel_multipliers(layer))
        table = sheet.table("filters", words.in_fours(words.bias), holds=FOUR_WORDS)
        return {".filters": table, ".weight_zero": -lowest_weight(layer)}

    def loop_counts(self, layer: Layer[Dense], target: Target) -> Work | None:
        return loop_counts.nibbles(layer)


class DenseFourBitsDsp(DenseFourBits):
    """The same with DSP instructions, eight filters at a time."""

    name = "tinyml_dense_nibbles_dsp_s8"
    sources = ("dense/dense_nibbles_dsp_s8.c",)
    constraints = (*DenseFourBits.constraints, fields_fit)

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def weight_layout(self, layer: Layer[Dense], sheet: Sheet) -> dict[str, object]:
        filters = layer.input(1).value
        words = nibble_stream(layer, folded_bias(layer, filters), channel_multipliers(layer), together=8)
        table = sheet.table("filters", words.in_eights(begin_sums(words.bias)), holds=EIGHT_WORDS)
        return {".filters": table, ".weight_zero": -lowest_weight(layer)}

    def loop_counts(self, layer: Layer[Dense], target: Target) -> Work | None:
        return loop_counts.nibbles_with_dsp(layer)


class DenseFourBitsHelium(DenseHelium):
    """With weights of four bits and Helium: two filters in one byte."""

    name = "tinyml_dense_nibbles_mve_s8"
    constraints = (int8_tensors, constant_weights, int4_weights, pairs_fit_bytes, shifted_sums_fit)
    weight_bits = 4

    def functions(self, layer: Layer[Dense]) -> tuple[str, ...]:
        return self.name, self.loop(layer)

    def loop(self, layer: Layer[Dense]) -> str:
        """What the function computes filters with."""
        kind = "" if helium.right_shifts(layer) else "large_"
        return f"tinyml_dense_mve_nibbles_{kind}{helium.loop(layer)}"

    def weight_layout(self, layer: Layer[Dense], sheet: Sheet) -> dict[str, object]:
        filters = layer.input(1).value
        packed = vectors_in_fours(layer, helium.LANES)
        return {
            **channel_tables(layer, sheet, filters, packed, helium.whole_fours(len(filters))),
            ".loop": f"&{self.loop(layer)}",
        }


class DenseFourBitsVector(DenseVector):
    """With weights of four bits and vectors of RISC-V: two elements in one byte."""

    name = "tinyml_dense_nibbles_rvv_s8"
    constraints = (
        int8_tensors,
        constant_weights,
        int4_weights,
        rvv.several_channels,
        helium.right_shifts,
    )
    weight_bits = 4

    def weight_layout(self, layer: Layer[Dense], sheet: Sheet) -> dict[str, object]:
        return channel_tables(layer, sheet, layer.input(1).value, elements_in_pairs(layer))

    loop_counts = DenseVector.loop_counts


class DenseFloat(Kernel[Dense]):
    """Float matrix-vector products in portable C."""

    name = "tinyml_dense_f32"
    library = Library.PORTABLE
    header: ClassVar[str] = "<tinyml/dense.h>"
    sources: ClassVar[tuple[str, ...]] = ("dense/dense_f32.c", "weighted/filters_f32.c")
    constraints: ClassVar[tuple[Constraint, ...]] = (float_tensors, constant_weights)

    def emit(self, layer: Layer[Dense], sheet: Sheet) -> None:
        sheet.include(self.header)
        members = {
            **matrix(layer),
            ".weights": self.weights(layer.input(1).value, sheet),
            **float_limits(layer, sheet),
        }
        name = sheet.record(f"struct {self.name}", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y())

    def weights(self, filters: Array, sheet: Sheet) -> str:
        """The table of weights."""
        return sheet.table("weights", float_tiles(filters), holds=TILE_WORDS)

    def loop_counts(self, layer: Layer[Dense], target: Target) -> Work | None:
        return float_counts.dense(layer)


class DenseFloat16(DenseFloat):
    """The same with float16 weights, which become floats before they are multiplied."""

    name = "tinyml_dense_f32_f16"
    header = "<tinyml/half_weights.h>"
    sources = ("dense/dense_f32_f16.c", "weighted/filters_f32_f16.c", "weighted/filters_f32.c")
    constraints = (*DenseFloat.constraints, float16_weights)
    weights_are_float16 = True

    def weights(self, filters: Array, sheet: Sheet) -> str:
        return float16_table(sheet, "weights", float_tiles(filters), TILE_WORDS)

    loop_counts = DenseFloat.loop_counts


register_kernels(
    Dense,
    DenseFourBitsHelium(),
    DenseFourBitsVector(),
    DenseFourBitsDsp(),
    DenseFourBits(),
    *FOUR_BIT_KERNELS,
    *DENSE_KERNELS,
    DenseRowsShortHelium(),
    DenseRowsHelium(),
    DenseHelium(),
    DenseSixes(),
    DenseVector(),
    DenseRowsShort(),
    DenseRowsPairs(),
    DensePairs(),
    DenseDsp(),
    DenseQuads(),
    DenseInt8(),
    DenseInt16Helium(),
    DenseInt16Dsp(),
    DenseInt16(),
    DenseComputed(),
    DenseIntoFloat(),
    DenseRunsOfBytes(),
    DenseNibbles(),
    DenseByteWeights(),
    DenseByteBlocks(),
    DenseRuns(),
    DenseSparse(),
    DenseFloat16Sums(),
    DenseFloat16(),
    DenseFloat(),
)


@onnx_writer(Dense)
def write_onnx(op: Dense, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    bias = [x[2]] if len(x) > 2 and x[2] else []
    if len(layer.input(0).shape) == 2:
        result = out.node("Gemm", [x[0], x[1], *bias], transB=1)
    else:
        result = out.node("MatMul", [x[0], out.permuted(layer.input(1), x[1], (1, 0), "weights")])
        result = out.node("Add", [result, *bias]) if bias else result
    out.clamped(result, op.clamp, y)
