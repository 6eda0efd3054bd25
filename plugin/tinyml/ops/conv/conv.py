# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Conv: two-dimensional convolution, NHWC, weights (out, kernel_h, kernel_w, in / groups)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer, Op, Tensor, TensorType
from tinyml.ops.conv import cmsis_four_bits, convolution, helium_counts, joined_groups
from tinyml.ops.conv.cmsis import CONV_KERNELS
from tinyml.ops.conv.conv_float import ConvFloat, ConvFloat16
from tinyml.ops.conv.conv_float16_sums import ConvFloat16Sums
from tinyml.ops.conv.conv_loops import ConvLoops
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.depth_windows import DepthWindows
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.grouped import ConvGroupsDsp, ConvGroupsHelium
from tinyml.ops.conv.nibbles import ConvNibbles, ConvNibblesDsp, ConvNibblesHalves
from tinyml.ops.conv.streamed import (
    ConvDsp,
    ConvHalves,
    ConvInt8,
    ConvPairs,
    ConvPairsCorrected,
    ConvWide,
)
from tinyml.ops.conv.volumes import image_filters, images_of, volume_of
from tinyml.ops.framework.kernel import Sheet, register_kernels
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.work import Work
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.axis_order import channels_first, channels_last, depthwise_weights
from tinyml.ops.shared.window import onnx_window
from tinyml.ops.weighted import helium, rvv, rvv_counts
from tinyml.ops.weighted.block_weights import PointwiseNibbles
from tinyml.ops.weighted.byte_weights import ConvByteWeights
from tinyml.ops.weighted.int16 import ConvInt16
from tinyml.ops.weighted.int16_dsp import ConvInt16Dsp, ConvInt16Helium
from tinyml.ops.weighted.into_float import ConvIntoFloat, PointwiseIntoFloat
from tinyml.ops.weighted.nibbles import (
    PAIR_BYTES,
    elements_in_pairs,
    int4_weights,
    pairs_fit_bytes,
    vectors_in_pairs,
)
from tinyml.ops.weighted.records import (
    channel_tables,
    constant_weights,
    int8_tensors,
    small_extents,
    symmetric_weights,
)
from tinyml.ops.weighted.walked import outputs_of, windows_of
from tinyml.ops.weighted.weighted import Weighted


def whole_groups(layer: Layer[Conv]) -> bool:
    """The number of groups must divide the output channels, and groups x weight channels must equal the input
    channels."""
    groups, (outs, _, _, ins) = layer.op.groups, layer.input(1).shape
    return groups >= 1 and outs % groups == 0 and groups * ins == layer.input(0).shape[3]


@dataclass(frozen=True)
class Conv(Convolution):
    """Every filter sees all input channels of its group. Inputs: x, weights, optional bias."""

    operands = (*Convolution.operands, whole_groups)
    groups: int = 1
    joined: int = 1  # as many of the groups that the model has

    @property
    def channel_axis(self) -> int:
        return 0

    @property
    def sums_all_inputs(self) -> bool:
        return self.groups == 1

    def sums(self, columns: Array, weights: Array) -> Array:
        outs, ins = weights.shape[0] // self.groups, columns.shape[-1] // self.groups
        parts = []
        for g in range(self.groups):
            part = columns[..., g * ins : (g + 1) * ins]
            filters = weights[g * outs : (g + 1) * outs].reshape(outs, -1)
            parts.append(part.reshape(*columns.shape[:3], -1) @ filters.T)
        return np.concatenate(parts, axis=-1)

    def attributes(self) -> dict[str, Any]:
        """Only what the model has, unless groups are joined."""
        return {name: value for name, value in super().attributes().items() if name != "joined" or value > 1}

    def macs(self, layer: Layer) -> int:
        """Without the products of zeros that joined groups have."""
        return super().macs(layer) // self.joined

    def other_forms(self, layer: Layer) -> Iterator[tuple[Op, Sequence[Tensor | None]]]:
        """Kernels gather a window for each position, which few filters share.

        On a Cortex-M4, a 3x3 layer of one channel with one filter takes 28 instructions per multiplication,
        and 3 as a depthwise layer. Groups of few channels have fewer windows if they are joined.
        """
        x, weights, *bias = layer.inputs
        if (
            x is None
            or weights is None
            or self.real
            or not (x.quant and weights.quant and weights.is_constant)
        ):
            return
        values = weights.value
        if x.shape[3] == 1:
            quant = weights.quant if weights.quant.axis is None else replace(weights.quant, axis=3)
            turned = np.ascontiguousarray(values.transpose(3, 1, 2, 0))
            op = DepthwiseConv(
                self.strides,
                self.dilations,
                self.pads,
                clamp=self.clamp,
                round_once=self.round_once,
                single_scales=self.single_scales,
            )
            yield op, (x, Tensor.constant(f"{weights.name}/{layer.name}", turned, quant), *bias)
        if self.groups == 1 or any(weights.quant.zero_points):
            return
        counts = joined_groups.counts(
            self.groups, values.size, joined_groups.GROWTH, lambda n: n * values.size
        )
        for count in counts[1:]:
            wide = joined_groups.side_by_side(values, self.groups, count)
            name = f"{weights.name}/{layer.name}/{count}"
            joined = replace(self, groups=self.groups // count, joined=self.joined * count)
            yield joined, (x, Tensor.constant(name, wide, weights.quant), *bias)


class ConvHelium(ConvInt8):
    """Four windows times two filters at once, sixteen elements of each."""

    name = "tinyml_conv_mve_s8"
    struct = "struct tinyml_conv_mve_s8"
    apart = "struct tinyml_conv_apart_mve_s8"
    sources = ("conv/conv_mve_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        symmetric_weights,
        helium.one_group,
        helium.proper_shifts,
        small_extents,
    )

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def columns_bytes(self, elements: int, channels: int) -> int:
        """Four columns in whole vectors."""
        return 4 * helium.whole_vectors(elements)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return helium_counts.convolution(windows_of(layer), helium.conv_loop(layer))

    def functions(self, layer: Layer[Convolution]) -> tuple[str, ...]:
        return self.name, f"tinyml_conv_mve_{helium.conv_loop(layer)}"

    def weight_layout(self, layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
        return self._tables(layer, sheet, "")

    def part_layout(self, layer: Layer[Weighted], sheet: Sheet, number: int) -> dict[str, object]:
        return self._tables(layer, sheet, str(number))

    def _tables(self, layer: Layer[Weighted], sheet: Sheet, number: str) -> dict[str, object]:
        filters = layer.input(1).value
        channels = helium.channel_words(layer, filters)
        return {
            ".weights": sheet.table(f"weights{number}", helium.in_pairs(filters), holds=helium.PAIR_WORDS),
            ".channels": sheet.table(f"channels{number}", channels, holds=helium.CHANNEL_WORDS),
            ".loop": f"&tinyml_conv_mve_{helium.conv_loop(layer)}",
        }


class ConvNibblesHelium(ConvHelium):
    """The same with weights of four bits: two filters in one byte."""

    name = "tinyml_conv_nibbles_mve_s8"
    constraints = (
        int8_tensors,
        constant_weights,
        int4_weights,
        pairs_fit_bytes,
        helium.one_group,
        helium.proper_shifts,
        small_extents,
    )
    weight_bits = 4

    def functions(self, layer: Layer[Convolution]) -> tuple[str, ...]:
        return self.name, f"tinyml_conv_mve_nibbles_{helium.conv_loop(layer)}"

    def weight_layout(self, layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
        channels = helium.channel_words(layer, layer.input(1).value)
        return {
            ".weights": sheet.table("weights", vectors_in_pairs(layer, helium.LANES), holds=PAIR_BYTES),
            ".channels": sheet.table("channels", channels, holds=helium.CHANNEL_WORDS),
            ".loop": f"&tinyml_conv_mve_nibbles_{helium.conv_loop(layer)}",
        }

    loop_counts = ConvHelium.loop_counts


class ConvVector(ConvInt8):
    """One element of each of four windows times as many filters as a vector of RISC-V holds."""

    name = "tinyml_conv_rvv_s8"
    struct = "struct tinyml_conv_rvv_s8"
    sources = ("conv/conv_rvv_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        symmetric_weights,
        helium.one_group,
        rvv.several_channels,
        helium.right_shifts,
        small_extents,
    )

    def runs_on(self, target: Target) -> bool:
        return target.rvv

    def columns_bytes(self, elements: int, channels: int) -> int:
        """Four columns."""
        return 4 * elements

    def weight_layout(self, layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
        filters = layer.input(1).value
        return channel_tables(layer, sheet, filters, rvv.channels_last(filters))

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return rvv_counts.convolution(windows_of(layer), outputs_of(layer), packed=self.weight_bits == 4)


class ConvNibblesVector(ConvVector):
    """The same with weights of four bits: two elements in one byte."""

    name = "tinyml_conv_nibbles_rvv_s8"
    constraints = (
        int8_tensors,
        constant_weights,
        int4_weights,
        helium.one_group,
        rvv.several_channels,
        helium.right_shifts,
        small_extents,
    )
    weight_bits = 4

    def weight_layout(self, layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
        return channel_tables(layer, sheet, layer.input(1).value, elements_in_pairs(layer))

    loop_counts = ConvVector.loop_counts


register_kernels(
    Conv,
    ConvNibblesHelium(),
    ConvNibblesVector(),
    ConvNibblesDsp(),
    ConvNibblesHalves(),
    ConvNibbles(),
    *cmsis_four_bits.CONV_KERNELS,
    *CONV_KERNELS,
    ConvGroupsHelium(),
    ConvHelium(),
    ConvVector(),
    ConvGroupsDsp(),
    ConvPairs(),
    ConvPairsCorrected(),
    ConvDsp(),
    ConvHalves(),
    ConvWide(),
    ConvInt8(),
    ConvInt16Helium(),
    ConvInt16Dsp(),
    ConvInt16(),
    PointwiseIntoFloat(),
    ConvIntoFloat(),
    PointwiseNibbles(),
    ConvByteWeights(),
    ConvFloat16Sums(),
    ConvFloat16(),
    ConvFloat(),
    ConvLoops(),
)


quantizes("Conv", channel_axis=lambda node, rank: 0)


@onnx_op("Conv")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [read_conv(node, build, node.input(0), node.input(1), node.optional(2))]


def read_conv(
    node: OnnxNode,
    build: Builder,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    output: TensorType | None = None,
) -> Tensor:
    """An ONNX convolution (NCDHW, NCHW or NCL) as the NHWC operator between two transposes."""
    spatial, batches = len(x.shape) - 2, x.shape[0]
    groups = int(node.attr("group", 1))
    window = onnx_window(node, x.shape[2:], w.shape[2:])
    depth = window.depth
    depthwise = 1 < groups == x.shape[1] and depth.kernel == 1
    x = channels_last(build, x)
    if spatial == 3:
        windows = DepthWindows(depth.kernel, depth.stride, depth.dilation, depth.pads, groups)
        x = images_of(build, x, windows)
    op: Op
    if depthwise:
        w = depthwise_weights(build, w)
        op = DepthwiseConv(window.strides, window.dilations, window.pads)
    else:
        w = channels_last(build, w)
        w = image_filters(build, w) if spatial == 3 else w
        op = Conv(window.strides, window.dilations, window.pads, groups=groups)
    y = build.add1(op, [x, w] if bias is None else [x, w, bias], output)
    return channels_first(build, volume_of(build, y, batches) if spatial == 3 else y, spatial)


@tflite_op("CONV_2D")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    groups = node.input(0).shape[3] // node.input(1).shape[3]
    return convolution.read_tflite(node, build, Conv(groups=groups))


@onnx_writer(Conv)
def write_onnx(op: Conv, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    weights = out.permuted(layer.input(1), x[1], (0, 3, 1, 2), "weights")
    convolution.write_convolution(op, op.groups, weights, x, y, out)
