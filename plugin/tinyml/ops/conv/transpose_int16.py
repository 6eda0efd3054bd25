# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions with int16 activations, by the kernels of convolutions for parts of the outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.conv.transpose_integer import small_image
from tinyml.ops.conv.transpose_kernels import ConvTransposeQuantized
from tinyml.ops.conv.transpose_parts import (
    apart_members,
    call_part,
    parts,
    row_bytes,
    walked_parts,
    walked_whole_parts,
)
from tinyml.ops.conv.transposed import ConvTranspose
from tinyml.ops.framework.kernel import Library, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted import int16, int16_counts, int16_dsp
from tinyml.ops.weighted.int16 import int16_by_int8, small_factors, wide_bias
from tinyml.ops.weighted.int16_dsp import (
    ConvInt16Dsp,
    ConvInt16Helium,
    positive,
    short_sums,
    small_shifts,
    whole_factors,
)
from tinyml.ops.weighted.records import constant_weights


def several_filters(layer: Layer[ConvTranspose]) -> bool:
    """There is one group, or each group has two filters or more."""
    return layer.op.groups == 1 or layer.output.shape[3] > layer.op.groups


class ConvTransposeInt16(ConvTransposeQuantized):
    """A convolution for each remainder of output positions after the strides. The player has the loops."""

    name = "tinyml_conv_apart_s16"
    library = Library.PORTABLE
    sources: ClassVar[tuple[str, ...]] = ("conv/conv_apart_s16.c", *int16.ConvInt16.sources)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int16_by_int8,
        wide_bias,
        constant_weights,
        small_factors,
        small_image,
    )
    record: ClassVar[str] = "struct tinyml_conv_apart_s16"

    def scratch_bytes(self, layer: Layer[ConvTranspose], target: Target) -> int:
        return self._columns(layer) + 2 * row_bytes(layer, layer.op)

    def emit(self, layer: Layer[ConvTranspose], sheet: Sheet) -> None:
        groups = layer.op.groups
        sheet.include("<tinyml/conv_s16.h>")
        scaling = self.scaling(layer, sheet)
        for number, part in enumerate(parts(layer, layer.op)):
            filters = part.weights.value.reshape(groups, layer.output.shape[3] // groups, -1)
            weights = self.weights(filters, sheet, f"weights{number}")
            conv = {".groups": groups, ".weights": weights, **scaling}
            members = apart_members(part, layer.op, conv, self._columns(layer) // 2)
            call_part(
                part, sheet, self.function(layer), sheet.record(self.record, f"params{number}", members)
            )

    def loop_counts(self, layer: Layer[ConvTranspose], target: Target) -> Work | None:
        once = layer.op.round_once
        return walked_parts(
            layer, layer.op, layer.op.groups, lambda windows: int16_counts.convolution(windows, once)
        )

    def function(self, layer: Layer[ConvTranspose]) -> str:
        """What a part calls."""
        return self.name

    def scaling(self, layer: Layer[ConvTranspose], sheet: Sheet) -> Mapping[str, object]:
        """Members from sums to outputs; parts share the tables."""
        return int16.scaling(layer, sheet)

    def weights(self, filters: Array, sheet: Sheet, name: str) -> str:
        """The table of filters (groups, filters, elements) of a part."""
        return sheet.table(name, np.ascontiguousarray(filters))

    def window_bytes(self, elements: int) -> int:
        """The convolution's scratch memory for filters of so many elements."""
        return 2 * elements

    def _columns(self, layer: Layer[ConvTranspose]) -> int:
        return max(self.window_bytes(part.filter_elements) for part in parts(layer, layer.op))


class ConvTransposeInt16Dsp(ConvTransposeInt16):
    """The same with DSP instructions."""

    name = "tinyml_conv_apart_dsp_s16"
    convolution: ClassVar[ConvInt16Dsp] = ConvInt16Dsp()
    sources: ClassVar[tuple[str, ...]] = ("conv/conv_apart_dsp_s16.c", *convolution.sources)
    constraints = (*ConvTransposeInt16.constraints, short_sums, small_shifts, several_filters)
    record = "struct tinyml_conv_apart_dsp_s16"
    single: ClassVar[str] = "tinyml_conv_apart_single_dsp_s16"

    def scratch_bytes(self, layer: Layer[ConvTranspose], target: Target) -> int:
        """Outputs are not collected first."""
        return self._columns(layer)

    def loop_counts(self, layer: Layer[ConvTranspose], target: Target) -> Work | None:
        whole, shifts = positive(layer), whole_factors(layer, self.convolution.factor_bits) is None
        return self.walked(
            layer,
            layer.op,
            layer.op.groups,
            lambda windows: self.convolution.walked(windows, whole, shifts),
        )

    walked = staticmethod(walked_whole_parts)

    def runs_on(self, target: Target) -> bool:
        return self.convolution.runs_on(target)

    def function(self, layer: Layer[ConvTranspose]) -> str:
        return self.single if layer.output.shape[3] == 1 else self.name

    def scaling(self, layer: Layer[ConvTranspose], sheet: Sheet) -> Mapping[str, object]:
        return int16_dsp.scaling(layer, sheet, self.convolution.factor_bits)

    def weights(self, filters: Array, sheet: Sheet, name: str) -> str:
        return self.convolution.weights(filters, sheet, name)

    def window_bytes(self, elements: int) -> int:
        return self.convolution.window_bytes(elements)


class ConvTransposeInt16Helium(ConvTransposeInt16Dsp):
    """The same with Helium."""

    name = "tinyml_conv_apart_mve_s16"
    convolution = ConvInt16Helium()
    sources = ("conv/conv_apart_mve_s16.c", *convolution.sources)
    single = name
    walked = staticmethod(walked_parts)
    loop_counts = ConvTransposeInt16Dsp.loop_counts
