# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Conv: two-dimensional convolution, NHWC, weights (out, kernel_h, kernel_w, in / groups)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Tensor, TensorType
from tinyml.ops.conv import cmsis_four_bits, convolution, joined_groups
from tinyml.ops.conv.cmsis import CONV_KERNELS
from tinyml.ops.conv.conv_float import ConvFloat, ConvFloat16
from tinyml.ops.conv.conv_float16_sums import ConvFloat16Sums
from tinyml.ops.conv.conv_loops import ConvLoops
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.depth_windows import DepthWindows
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.few import (
    ConvFew,
    ConvFewGroups,
    ConvFewHelium,
    ConvFewHeliumInt16,
)
from tinyml.ops.conv.grouped import ConvGroupsDsp, ConvGroupsHelium
from tinyml.ops.conv.nibbles import ConvNibbles, ConvNibblesDsp, ConvNibblesHalves
from tinyml.ops.conv.short import ConvShortDsp, ConvShortHelium
from tinyml.ops.conv.streamed import (
    ConvDsp,
    ConvHalves,
    ConvInt8,
    ConvPairs,
    ConvPairsCorrected,
    ConvWide,
)
from tinyml.ops.conv.vectors import ConvHelium, ConvNibblesHelium, ConvNibblesVector, ConvVector
from tinyml.ops.conv.volumes import image_filters, images_of, volume_of
from tinyml.ops.framework.kernel import register_kernels
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.axis_order import channels_first, channels_last, depthwise_weights
from tinyml.ops.shared.window import onnx_window
from tinyml.ops.weighted.block_weights import PointwiseNibbles
from tinyml.ops.weighted.byte_weights import ConvByteWeights
from tinyml.ops.weighted.int16 import ConvInt16
from tinyml.ops.weighted.int16_dsp import ConvInt16Dsp, ConvInt16Helium
from tinyml.ops.weighted.into_float import ConvIntoFloat, PointwiseIntoFloat

FEW_FILTERS = 8
"""Up to so many filters may be computed by kernels that share no windows among them."""

SHORT = 32
"""So may filters of up to so many elements, whose windows take long to copy for what is multiplied."""


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
    few: bool = False  # kernels for few filters, or for groups of few channels, are preferred

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
        own = {"joined": 1, "few": False}
        return {name: value for name, value in super().attributes().items() if own.get(name) != value}

    def macs(self, layer: Layer) -> int:
        """Without the products of zeros that joined groups have."""
        return super().macs(layer) // self.joined

    def other_forms(self, layer: Layer) -> Iterator[tuple[Op, Sequence[Tensor | None]]]:
        """Kernels gather a window for each position, which few filters share.

        On a Cortex-M4, a 3x3 layer of one channel with one filter takes 28 instructions per multiplication,
        and 3 as a depthwise layer. Groups of few channels have fewer windows if they are joined. Some cores
        have kernels that gather nothing, for few filters or channels, or for taps that are apart.
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
        if any(weights.quant.zero_points) or self.joined > 1 or self.few:
            return
        apart = self.groups > 1 or x.shape[3] == 1 or set(self.dilations) != {1}
        if apart or values.shape[0] <= FEW_FILTERS or values[0].size <= SHORT:
            yield replace(self, few=True), layer.inputs
        if self.groups == 1:
            return
        counts = joined_groups.counts(
            self.groups, values.size, joined_groups.GROWTH, lambda n: n * values.size
        )
        for count in counts[1:]:
            wide = joined_groups.side_by_side(values, self.groups, count)
            name = f"{weights.name}/{layer.name}/{count}"
            joined = replace(self, groups=self.groups // count, joined=self.joined * count)
            yield joined, (x, Tensor.constant(name, wide, weights.quant), *bias)


register_kernels(
    Conv,
    ConvNibblesHelium(),
    ConvNibblesVector(),
    ConvNibblesDsp(),
    ConvNibblesHalves(),
    ConvNibbles(),
    *cmsis_four_bits.CONV_KERNELS,
    *CONV_KERNELS,
    ConvShortHelium(),
    ConvFewHelium(),
    ConvShortDsp(),
    ConvFew(),
    ConvFewGroups(),
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
    ConvFewHeliumInt16(),
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
