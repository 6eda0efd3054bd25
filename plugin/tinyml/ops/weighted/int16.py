# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions and dense layers with int16 activations and int8 weights: sums of 64 bits."""

from __future__ import annotations

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.overlay import forwards
from tinyml.ops.shared.quant import LARGEST_SHIFT_INT16, int16_and_int8
from tinyml.ops.weighted import int16_counts
from tinyml.ops.weighted.records import (
    bias_table,
    constant_weights,
    factor_tables,
    geometry,
    matrix,
    rounding,
    small_extents,
)
from tinyml.ops.weighted.walked import windows_of
from tinyml.ops.weighted.weighted import Weighted, largest_shift


def int16_by_int8(layer: Layer) -> bool:
    """Input and output are int16, weights int8, all with zero points of 0."""
    return int16_and_int8(layer.input(0), layer.input(1), layer.output)


def wide_bias(layer: Layer) -> bool:
    """The bias is int64."""
    return not layer.has_input(2) or layer.input(2).dtype is DType.INT64


def small_factors(layer: Layer[Weighted]) -> bool:
    """The rescaling factor from accumulator to output is below 2¹⁴."""
    return largest_shift(layer) <= LARGEST_SHIFT_INT16


def scaling(layer: Layer[Weighted], sheet: Sheet) -> dict[str, object]:
    """Members from sums to outputs, which all records have."""
    return {".bias": bias_table(layer, sheet), **factor_tables(layer, sheet), **rounding(layer)}


class ConvInt16(Kernel[Convolution]):
    """Any groups and dilations, in portable C."""

    name = "tinyml_conv_s16"
    library = Library.PORTABLE
    sources = ("conv/conv_s16.c",)
    constraints = (int16_by_int8, wide_bias, constant_weights, small_factors, small_extents)
    in_bands = True

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        return forwards(layer, copied=False)

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """What one filter sees."""
        return 2 * self.filters(layer)[0].size

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        weights = self.filters(layer)
        sheet.include("<tinyml/conv_s16.h>")
        members = {
            **geometry(layer),
            ".groups": self.groups(layer),
            ".weights": sheet.table("weights", weights),
            **scaling(layer, sheet),
        }
        name = sheet.record("struct tinyml_conv_s16", "params", members)
        sheet.call("tinyml_conv_s16", name, sheet.x(), sheet.y(), sheet.scratch)

    def filters(self, layer: Layer[Convolution]) -> Array:
        """Weights with the output channels first."""
        return layer.input(1).value

    def groups(self, layer: Layer[Convolution]) -> int:
        """Groups of input channels."""
        return layer.input(0).shape[3] // self.filters(layer).shape[3]

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        windows = windows_of(layer, self.groups(layer))
        return int16_counts.convolution(windows, layer.op.round_once)


class DepthwiseConvInt16(ConvInt16):
    """A convolution in which every input channel is a group."""

    def filters(self, layer: Layer[Convolution]) -> Array:
        return np.ascontiguousarray(np.transpose(layer.input(1).value, (3, 1, 2, 0)))


class DepthwiseChannelsInt16(DepthwiseConvInt16):
    """The same channel by channel, each copied first: what the player does where outputs replace inputs."""

    def groups(self, layer: Layer[Convolution]) -> int:
        return 0

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """What one filter sees, and a channel."""
        return super().scratch_bytes(layer, target) + 2 * int(np.prod(layer.input(0).shape[1:3]))


class DenseInt16(Kernel[Weighted]):
    """Matrix-vector products in portable C."""

    name = "tinyml_dense_s16"
    library = Library.PORTABLE
    sources = ("dense/dense_s16.c",)
    constraints = (int16_by_int8, wide_bias, constant_weights, small_factors)

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        sheet.include("<tinyml/conv_s16.h>")
        members = {
            **matrix(layer),
            ".weights": sheet.table("weights", layer.input(1).value),
            **scaling(layer, sheet),
        }
        name = sheet.record("struct tinyml_dense_s16", "params", members)
        sheet.call("tinyml_dense_s16", name, sheet.x(), sheet.y())

    def loop_counts(self, layer: Layer[Weighted], target: Target) -> Work | None:
        return int16_counts.dense(layer)
