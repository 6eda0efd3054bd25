# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions with vectors of Helium and RISC-V: many channels at a time, rows in a ring."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer, Tensor
from tinyml.ir.constraints import message
from tinyml.ops.conv import helium_counts
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet, kernels_of
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.overlay import forwards
from tinyml.ops.shared.quant import quant_of
from tinyml.ops.weighted import helium, rvv, rvv_counts
from tinyml.ops.weighted.nibbles import channel_nibbles, int4_weights
from tinyml.ops.weighted.records import (
    constant_weights,
    int8_tensors,
    quantized_record,
    small_extents,
    symmetric_weights,
)
from tinyml.ops.weighted.scaled import doublings, scaled
from tinyml.ops.weighted.walked import outputs_of, windows_of

LEAST_WEIGHTS = 1024


def moderate_padding(layer: Layer[Convolution]) -> bool:
    """The padding before the input is smaller than the span of the kernel."""
    op = layer.op
    kernel = layer.input(1).shape[1:3]
    return all(op.pads[i] <= op.dilations[i] * (kernel[i] - 1) for i in range(2))


def more_than_four_channels(layer: Layer[Convolution]) -> bool:
    """There are more than four channels: fewer take less with DSP instructions, channel by channel."""
    return layer.input(0).shape[3] > 4


def as_one_row(layer: Layer[Convolution]) -> Layer[Convolution]:
    """A layer whose input is one column, without padding, as one whose input is one row: the same bytes."""
    op, x, y, weights = layer.op, layer.input(0), layer.output, layer.input(1)
    if (x.shape[2], weights.shape[2], y.shape[2]) != (1, 1, 1) or any(op.pads):
        return layer

    def turned(tensor: Tensor) -> Tensor:
        n, height, width, channels = tensor.shape
        shape = (n, width, height, channels)
        return replace(
            tensor, shape=shape, data=tensor.data if tensor.data is None else tensor.data.reshape(shape)
        )

    return Layer(
        layer.name,
        replace(op, strides=op.strides[::-1], dilations=op.dilations[::-1]),
        (turned(x), turned(weights), *layer.inputs[2:]),
        (turned(y),),
    )


class DepthwiseConvHelium(Kernel[Convolution]):
    """Sixteen channels at a time, through a ring of rows; a single row is read from the input itself."""

    name = "tinyml_depthwise_conv_mve_s8"
    library = Library.PORTABLE
    sources: ClassVar[tuple[str, ...]] = ("conv/depthwise_conv_mve_s8.c",)
    in_bands = True
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        symmetric_weights,
        helium.one_filter_per_channel,
        more_than_four_channels,
        helium.right_shifts,
        helium.few_taps,
        helium.sums_of_two,
        small_extents,
        moderate_padding,
    )

    struct = "struct tinyml_depthwise_conv_mve_s8"
    spare_bytes = helium.LANES - 1  # that are read past the rows
    least_in_place = helium.LANES  # channels of which rows can be read where they are

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def functions(self, layer: Layer[Convolution]) -> tuple[str, ...]:
        return self.name, f"tinyml_depthwise_mve_{helium.depthwise_loop(layer)}"

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """The rows that the kernel spans, each with its padding."""
        if self.reads_in_place(layer):
            return 0
        op = layer.op
        _, kernel_h, kernel_w, _ = layer.input(1).shape
        _, _, in_w, channels = layer.input(0).shape
        reach = (kernel_w - 1) * op.dilations[1] + (layer.output.shape[2] - 1) * op.strides[1] + 1
        rows = (kernel_h - 1) * op.dilations[0] + 1
        return rows * max(reach, op.pads[1] + in_w) * channels + self.spare_bytes

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        """The output may take over rows of the input that are in the ring, or positions of a single row."""
        if self.reads_in_place(layer):
            # The last block of channels may begin with some of the block before, and comes after all others.
            whole = layer.input(0).shape[3] % helium.LANES == 0
            return forwards(as_one_row(layer), copied=True) if whole else ()
        op, x, y = layer.op, layer.input(0), layer.output
        batches, in_h, in_w, in_c = x.shape
        _, out_h, out_w, out_c = y.shape
        span = (layer.input(1).shape[1] - 1) * op.dilations[0] + 1
        for row in range(out_h):
            rows_read = min(max(row * op.strides[0] - op.pads[0] + span, 0), in_h)
            if rows_read < in_h and (row + 1) * out_w * out_c > rows_read * in_w * in_c:
                return ()
        return (Overlay(0),) if batches == 1 else ()

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        layer = as_one_row(layer) if self.reads_in_place(layer) else layer
        sheet.include("<tinyml/depthwise_conv.h>")
        filters = np.transpose(layer.input(1).value, (3, 0, 1, 2))
        name = sheet.record(self.struct, "params", self.members(layer, sheet, filters))
        sheet.call(self.name, name, sheet.x(), sheet.y(), *self.memory(layer, sheet))

    def memory(self, layer: Layer[Convolution], sheet: Sheet) -> tuple[str, ...]:
        """What the function is given to work with."""
        return ("NULL" if self.reads_in_place(layer) else sheet.scratch,)

    def members(self, layer: Layer[Convolution], sheet: Sheet, filters: Array) -> dict[str, object]:
        """Members of the struct; ``filters`` have their channels first."""
        channels = filters.shape[0]
        blocks = filters.reshape(channels, -1)[helium.channel_blocks(channels)]
        weights = blocks.transpose(0, 2, 1).reshape(-1)
        members = quantized_record(layer, sheet, filters, weights, helium.channel_order(channels))
        return {**members, ".loop": f"&tinyml_depthwise_mve_{helium.depthwise_loop(layer)}"}

    def reads_in_place(self, layer: Layer[Convolution]) -> bool:
        """Whether no row need be copied: each is read once, as in streaming models, without padding."""
        layer = as_one_row(layer)
        op, x, y = layer.op, layer.input(0), layer.output
        kernel = layer.input(1).shape[1:3]
        inside = all(
            op.pads[i] == 0
            and (y.shape[1 + i] - 1) * op.strides[i] + (kernel[i] - 1) * op.dilations[i] < x.shape[1 + i]
            for i in range(2)
        )
        return inside and y.shape[1] == 1 and x.shape[3] >= self.least_in_place

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        in_place = self.reads_in_place(layer)
        windows = windows_of(as_one_row(layer) if in_place else layer)
        return helium_counts.depthwise(windows, helium.depthwise_loop(layer), in_place)


class DepthwiseConvHeliumScaled(DepthwiseConvHelium):
    """The same for small weights, which it multiplies by powers of two where outputs are large for sums."""

    constraints = (*DepthwiseConvHelium.constraints, int4_weights)

    def refusal(self, layer: Layer[Convolution]) -> str | None:
        """The other constraints are those of the scaled weights."""
        small = int8_tensors(layer) and constant_weights(layer) and int4_weights(layer)
        return DepthwiseConvHelium().refusal(scaled(layer)) if small else super().refusal(layer)

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        super().emit(scaled(layer), sheet)


def many_weights(layer: Layer[Convolution]) -> bool:
    """There are at least 1024 weights: fewer are not worth the memory in which they are unpacked."""
    return layer.input(1).elements >= LEAST_WEIGHTS


def _play_bytes(layer: Layer[Convolution], sheet: Sheet) -> None:
    """The player has no such kernel: the one for bytes, whose scratch memory is less, plays the layer."""
    kernels = (kernel for kernel in kernels_of(type(layer.op)) if kernel.weight_bits == 8)
    next(k for k in kernels if k.runs_on(sheet.target) and k.refusal(layer) is None).play(layer, sheet)


class DepthwiseNibblesHelium(DepthwiseConvHeliumScaled):
    """With weights of four bits and Helium: two vectors in one, which are unpacked before the first row."""

    name = "tinyml_depthwise_nibbles_mve_s8"
    sources = ("conv/depthwise_nibbles_mve_s8.c", *DepthwiseConvHelium.sources)
    constraints = (*DepthwiseConvHeliumScaled.constraints, many_weights)
    weight_bits = 4

    def refusal(self, layer: Layer[Convolution]) -> str | None:
        return super().refusal(layer) or (None if many_weights(layer) else message(many_weights))

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """All weights as bytes come first; a vector more may be written."""
        _, kernel_h, kernel_w, channels = layer.input(1).shape
        vectors = -(-channels // helium.LANES) * kernel_h * kernel_w + 1
        return super().scratch_bytes(layer, target) + helium.LANES * vectors

    def memory(self, layer: Layer[Convolution], sheet: Sheet) -> tuple[str, ...]:
        return sheet.scratch, c.boolean(not self.reads_in_place(layer))

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        _play_bytes(layer, sheet)

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        DepthwiseConvHelium.emit(self, layer, sheet)

    def members(self, layer: Layer[Convolution], sheet: Sheet, filters: Array) -> dict[str, object]:
        """With the tables of the larger weights, and for each block what its channels are shifted by."""
        larger, channels = scaled(layer), filters.shape[0]
        shifts = doublings(layer) if larger is not layer else np.zeros(channels, np.int64)
        centred = filters.astype(np.int64) - quant_of(layer.input(1)).zero_points[0]
        rows = np.concatenate([shifts.reshape(-1, 1), centred.reshape(channels, -1)], axis=1)
        blocks = rows[helium.channel_blocks(channels)].transpose(0, 2, 1)
        even = np.pad(blocks, ((0, 0), (0, blocks.shape[1] % 2), (0, 0))).astype(np.uint8) & 15
        pairs = even.reshape(-1, 2, helium.LANES)
        packed = (pairs[:, 0] | pairs[:, 1] << 4).view(np.int8).reshape(-1)
        values = np.transpose(larger.input(1).value, (3, 0, 1, 2))
        members = quantized_record(larger, sheet, values, packed, helium.channel_order(channels))
        return {**members, ".loop": f"&tinyml_depthwise_mve_{helium.depthwise_loop(layer)}"}


def copied_3x3(layer: Layer[Convolution]) -> bool:
    """The kernel is 3x3, and its rows are copied: they are padded, or there are several rows of outputs."""
    return layer.input(1).shape[1:3] == (3, 3) and not DepthwiseConvHelium().reads_in_place(layer)


class DepthwiseNibblesRowsHelium(DepthwiseNibblesHelium):
    """With weights of four bits and Helium, unpacked for every row: takes no more memory than bytes."""

    name = "tinyml_depthwise_nibbles_rows_mve_s8"
    constraints = (*DepthwiseConvHeliumScaled.constraints, copied_3x3)

    def refusal(self, layer: Layer[Convolution]) -> str | None:
        if refused := DepthwiseConvHeliumScaled.refusal(self, layer):
            return refused
        return None if copied_3x3(layer) else message(copied_3x3)

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        return DepthwiseConvHelium.scratch_bytes(self, layer, target)

    def memory(self, layer: Layer[Convolution], sheet: Sheet) -> tuple[str, ...]:
        return (sheet.scratch,)

    def reads_in_place(self, layer: Layer[Convolution]) -> bool:
        """Never: a few rows of a layer are copied as well."""
        return False


class DepthwiseConvVector(DepthwiseConvHelium):
    """As many channels at a time as a vector of RISC-V holds, through a ring of rows."""

    name = "tinyml_depthwise_conv_rvv_s8"
    sources: ClassVar[tuple[str, ...]] = ("conv/depthwise_conv_rvv_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        symmetric_weights,
        helium.one_filter_per_channel,
        rvv.several_channels,
        helium.right_shifts,
        small_extents,
        moderate_padding,
    )
    struct = "struct tinyml_conv_rvv_s8"
    spare_bytes = 0
    least_in_place = 1

    def runs_on(self, target: Target) -> bool:
        return target.rvv

    def functions(self, layer: Layer[Convolution]) -> tuple[str, ...]:
        return (self.name,)

    def members(self, layer: Layer[Convolution], sheet: Sheet, filters: Array) -> dict[str, object]:
        return quantized_record(layer, sheet, filters, rvv.channels_last(filters))

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        in_place = self.reads_in_place(layer)
        windows = windows_of(as_one_row(layer) if in_place else layer)
        return rvv_counts.depthwise(windows, outputs_of(layer), in_place)


class DepthwiseConvVectorScaled(DepthwiseConvVector):
    """The same for small weights, which it multiplies by powers of two where outputs are large for sums."""

    constraints = (*DepthwiseConvVector.constraints, int4_weights)

    def refusal(self, layer: Layer[Convolution]) -> str | None:
        """The other constraints are those of the scaled weights."""
        small = int8_tensors(layer) and constant_weights(layer) and int4_weights(layer)
        return DepthwiseConvVector().refusal(scaled(layer)) if small else super().refusal(layer)

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        super().emit(scaled(layer), sheet)


class DepthwiseNibblesVector(DepthwiseConvVector):
    """With weights of four bits and vectors of RISC-V, unpacked before the first row."""

    name = "tinyml_depthwise_nibbles_rvv_s8"
    sources = ("conv/depthwise_nibbles_rvv_s8.c", *DepthwiseConvVector.sources)
    constraints = (*DepthwiseConvVector.constraints, int4_weights, many_weights)
    weight_bits = 4

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """All weights as bytes come first, and one byte more, in whole words."""
        return super().scratch_bytes(layer, target) + (layer.input(1).elements + 4) // 4 * 4

    def memory(self, layer: Layer[Convolution], sheet: Sheet) -> tuple[str, ...]:
        return sheet.scratch, c.boolean(not self.reads_in_place(layer))

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        _play_bytes(layer, sheet)

    def members(self, layer: Layer[Convolution], sheet: Sheet, filters: Array) -> dict[str, object]:
        rows = rvv.channels_last(filters).reshape(1, -1).astype(np.int16)
        return quantized_record(layer, sheet, filters, channel_nibbles(rows))
