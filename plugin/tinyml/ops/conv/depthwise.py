# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""DepthwiseConv: every input channel has its own filters; weights (1, kernel_h, kernel_w, out)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer, Tensor
from tinyml.ops.conv import convolution
from tinyml.ops.conv.cmsis import DEPTHWISE_KERNELS
from tinyml.ops.conv.conv_loops import DepthwiseConvLoops
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.depthwise_nibbles import (
    DepthwiseNibbles,
    DepthwiseNibblesDsp,
    DepthwiseNibblesHalves,
)
from tinyml.ops.conv.planes import DepthwiseDsp, DepthwiseHalves, DepthwisePlanes
from tinyml.ops.conv.whole import DepthwiseWhole
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.overlay import forwards
from tinyml.ops.weighted import helium, rvv
from tinyml.ops.weighted.int16 import DepthwiseConvInt16
from tinyml.ops.weighted.into_float import DepthwiseIntoFloat
from tinyml.ops.weighted.nibbles import int4_weights
from tinyml.ops.weighted.records import (
    constant_weights,
    float_record,
    float_tensors,
    int8_tensors,
    quantized_record,
    small_extents,
    symmetric_weights,
)
from tinyml.ops.weighted.scaled import scaled


def whole_filters(layer: Layer[DepthwiseConv]) -> bool:
    """The weights have the shape 1 x height x width x channels, a multiple of the input's channels."""
    first, _, _, outs = layer.input(1).shape
    channels = layer.input(0).shape[3]
    return first == 1 and channels >= 1 and outs % channels == 0


@dataclass(frozen=True)
class DepthwiseConv(Convolution):
    """Output channel c * multiplier + m is filter m of input channel c. Inputs: x, weights, optional bias."""

    operands = (*Convolution.operands, whole_filters)
    mixes_channels: ClassVar[bool] = False

    @property
    def sums_all_inputs(self) -> bool:
        return True

    @property
    def channel_axis(self) -> int:
        return 3

    def sums(self, columns: Array, weights: Array) -> Array:
        columns = np.repeat(columns, weights.shape[3] // columns.shape[-1], axis=-1)
        return np.asarray(np.einsum("nhwklc,klc->nhwc", columns, weights[0]))


def moderate_padding(layer: Layer[DepthwiseConv]) -> bool:
    """The padding before the input is smaller than the span of the kernel."""
    op = layer.op
    kernel = layer.input(1).shape[1:3]
    return all(op.pads[i] <= op.dilations[i] * (kernel[i] - 1) for i in range(2))


def as_one_row(layer: Layer[DepthwiseConv]) -> Layer[DepthwiseConv]:
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


class DepthwiseConvHelium(Kernel[DepthwiseConv]):
    """Sixteen channels at a time, through a ring of rows; a single row is read from the input itself."""

    name = "tinyml_depthwise_conv_mve_s8"
    library = Library.PORTABLE
    sources = ("conv/depthwise_conv_mve_s8.c",)
    in_bands = True
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        symmetric_weights,
        helium.one_filter_per_channel,
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

    def functions(self, layer: Layer[DepthwiseConv]) -> tuple[str, ...]:
        return self.name, f"tinyml_depthwise_mve_{helium.depthwise_loop(layer)}"

    def scratch_bytes(self, layer: Layer[DepthwiseConv], target: Target) -> int:
        """The rows that the kernel spans, each with its padding."""
        if self.reads_in_place(layer):
            return 0
        op = layer.op
        _, kernel_h, kernel_w, _ = layer.input(1).shape
        _, _, in_w, channels = layer.input(0).shape
        reach = (kernel_w - 1) * op.dilations[1] + (layer.output.shape[2] - 1) * op.strides[1] + 1
        rows = (kernel_h - 1) * op.dilations[0] + 1
        return rows * max(reach, op.pads[1] + in_w) * channels + self.spare_bytes

    def overlays(self, layer: Layer[DepthwiseConv]) -> tuple[Overlay, ...]:
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

    def emit(self, layer: Layer[DepthwiseConv], sheet: Sheet) -> None:
        layer = as_one_row(layer) if self.reads_in_place(layer) else layer
        sheet.include("<tinyml/depthwise_conv.h>")
        filters = np.transpose(layer.input(1).value, (3, 0, 1, 2))
        name = sheet.record(self.struct, "params", self.members(layer, sheet, filters))
        scratch = "NULL" if self.reads_in_place(layer) else sheet.scratch
        sheet.call(self.name, name, sheet.x(), sheet.y(), scratch)

    def members(self, layer: Layer[DepthwiseConv], sheet: Sheet, filters: Array) -> dict[str, object]:
        """Members of the struct; ``filters`` have their channels first."""
        channels = filters.shape[0]
        blocks = filters.reshape(channels, -1)[helium.channel_blocks(channels)]
        weights = blocks.transpose(0, 2, 1).reshape(-1)
        members = quantized_record(layer, sheet, filters, weights, helium.channel_order(channels))
        return {**members, ".loop": f"&tinyml_depthwise_mve_{helium.depthwise_loop(layer)}"}

    def reads_in_place(self, layer: Layer[DepthwiseConv]) -> bool:
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


class DepthwiseConvHeliumScaled(DepthwiseConvHelium):
    """The same for small weights, which it multiplies by powers of two where outputs are large for sums."""

    constraints = (*DepthwiseConvHelium.constraints, int4_weights)

    def refusal(self, layer: Layer[DepthwiseConv]) -> str | None:
        """The other constraints are those of the scaled weights."""
        small = int8_tensors(layer) and constant_weights(layer) and int4_weights(layer)
        return DepthwiseConvHelium().refusal(scaled(layer)) if small else super().refusal(layer)

    def emit(self, layer: Layer[DepthwiseConv], sheet: Sheet) -> None:
        super().emit(scaled(layer), sheet)


class DepthwiseConvVector(DepthwiseConvHelium):
    """As many channels at a time as a vector of RISC-V holds, through a ring of rows."""

    name = "tinyml_depthwise_conv_rvv_s8"
    sources = ("conv/depthwise_conv_rvv_s8.c",)
    constraints = (
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

    def functions(self, layer: Layer[DepthwiseConv]) -> tuple[str, ...]:
        return (self.name,)

    def members(self, layer: Layer[DepthwiseConv], sheet: Sheet, filters: Array) -> dict[str, object]:
        return quantized_record(layer, sheet, filters, rvv.channels_last(filters))


class DepthwiseConvFloat(Kernel[DepthwiseConv]):
    """Float depthwise convolution in portable C."""

    name = "tinyml_depthwise_conv_f32"
    library = Library.PORTABLE
    sources = ("conv/depthwise_conv_f32.c",)
    in_bands = True
    constraints = (float_tensors, constant_weights, small_extents)

    def overlays(self, layer: Layer[DepthwiseConv]) -> tuple[Overlay, ...]:
        return forwards(layer, copied=False)

    def emit(self, layer: Layer[DepthwiseConv], sheet: Sheet) -> None:
        sheet.include("<tinyml/depthwise_conv.h>")
        name = sheet.record("struct tinyml_depthwise_conv_f32", "params", float_record(layer, sheet))
        sheet.call("tinyml_depthwise_conv_f32", name, sheet.x(), sheet.y())


register_kernels(
    DepthwiseConv,
    DepthwiseNibblesDsp(),
    DepthwiseNibblesHalves(),
    DepthwiseNibbles(),
    *DEPTHWISE_KERNELS,
    DepthwiseConvHelium(),
    DepthwiseConvHeliumScaled(),
    DepthwiseConvVector(),
    DepthwiseWhole(),
    DepthwiseDsp(),
    DepthwiseHalves(),
    DepthwisePlanes(),
    DepthwiseConvInt16(),
    DepthwiseIntoFloat(),
    DepthwiseConvFloat(),
    DepthwiseConvLoops(),
)


@tflite_op("DEPTHWISE_CONV_2D")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return convolution.read_tflite(node, build, DepthwiseConv())


@onnx_writer(DepthwiseConv)
def write_onnx(op: DepthwiseConv, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    weights = layer.input(1).value.transpose(3, 0, 1, 2)
    convolution.write_convolution(op, layer.input(0).shape[3], weights, x, y, out)
