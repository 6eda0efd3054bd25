# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""DepthwiseConv: every input channel has its own filters; weights (1, kernel_h, kernel_w, out)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer, Tensor
from tinyml.ops.conv import cmsis_four_bits, convolution
from tinyml.ops.conv.cmsis import DEPTHWISE_KERNELS
from tinyml.ops.conv.conv_float import ConvFloat, ConvFloat16
from tinyml.ops.conv.conv_loops import DepthwiseConvLoops
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.depthwise_nibbles import (
    DepthwiseNibbles,
    DepthwiseNibblesDsp,
    DepthwiseNibblesHalves,
)
from tinyml.ops.conv.depthwise_vectors import (
    DepthwiseConvHelium,
    DepthwiseConvHeliumScaled,
    DepthwiseConvVector,
    DepthwiseConvVectorScaled,
    DepthwiseNibblesHelium,
    DepthwiseNibblesRowsHelium,
    DepthwiseNibblesVector,
)
from tinyml.ops.conv.planes import DepthwiseDsp, DepthwiseHalves, DepthwisePlanes
from tinyml.ops.conv.planes_int16 import DepthwisePlanesInt16
from tinyml.ops.conv.strips_int16 import DepthwiseStripsInt16
from tinyml.ops.conv.whole import DepthwiseWhole
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.framework.tally import Tally
from tinyml.ops.framework.work import Work
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.overlay import forwards
from tinyml.ops.weighted import float_counts
from tinyml.ops.weighted.float16_weights import even, float16_table, float16_weights
from tinyml.ops.weighted.float_counts import TILES
from tinyml.ops.weighted.int16 import DepthwiseConvInt16
from tinyml.ops.weighted.int16_dsp import DepthwiseConvInt16Dsp, DepthwiseConvInt16Helium
from tinyml.ops.weighted.into_float import DepthwiseIntoFloat
from tinyml.ops.weighted.records import (
    TOGETHER,
    constant_weights,
    float_limits,
    float_tensors,
    geometry,
    small_extents,
)
from tinyml.ops.weighted.walked import windows_of


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


class DepthwiseConvFloat(Kernel[DepthwiseConv]):
    """Float depthwise convolution in portable C."""

    name = "tinyml_depthwise_conv_f32"
    library = Library.PORTABLE
    header: ClassVar[str] = "<tinyml/depthwise_conv.h>"
    sources: ClassVar[tuple[str, ...]] = (
        *("conv/depthwise_conv_f32.c", "conv/windows_f32.c"),
        "weighted/filters_f32.c",
    )
    in_bands = True
    constraints: ClassVar[tuple[Constraint, ...]] = (float_tensors, constant_weights, small_extents)

    def overlays(self, layer: Layer[DepthwiseConv]) -> tuple[Overlay, ...]:
        return forwards(layer, False, TOGETHER)

    def emit(self, layer: Layer[DepthwiseConv], sheet: Sheet) -> None:
        sheet.include(self.header)
        members = {
            **geometry(layer),
            ".weights": self.weights(layer.input(1).value, sheet),
            **float_limits(layer, sheet),
        }
        name = sheet.record(f"struct {self.name}", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y())

    def weights(self, filters: Array, sheet: Sheet) -> str:
        """The table of weights."""
        return sheet.table("weights", filters)

    def loop_counts(self, layer: Layer[DepthwiseConv], target: Target) -> Work | None:
        return self.placed_counts(layer, target, Tally())

    def placed_counts(self, layer: Layer[DepthwiseConv], target: Target, tally: Tally) -> Work | None:
        tiles, overlap = (8, 4) if target.mve else TILES, float_counts.overlap_of(tally)
        return float_counts.depthwise(layer, windows_of(layer), tiles, target.mve, overlap)


class DepthwiseConvFloat16(DepthwiseConvFloat):
    """The same with float16 weights, which become floats before they are multiplied."""

    name = "tinyml_depthwise_conv_f32_f16"
    header = "<tinyml/half_weights.h>"
    sources = (
        *("conv/depthwise_conv_f32_f16.c", "conv/windows_f32.c"),
        "weighted/filters_f32.c",
    )
    constraints = (*DepthwiseConvFloat.constraints, float16_weights)
    weights_are_float16 = True

    def weights(self, filters: Array, sheet: Sheet) -> str:
        return float16_table(sheet, "weights", even(filters, 3), "for each tap, a weight of each channel")

    loop_counts = DepthwiseConvFloat.loop_counts
    placed_counts = DepthwiseConvFloat.placed_counts


def one_channel(layer: Layer[Convolution]) -> bool:
    """The input has one channel."""
    return layer.input(0).shape[3] == 1


class DepthwiseOfOneChannel(ConvFloat):
    """Float filters of the same channel are those of a convolution."""

    constraints = (one_channel, *ConvFloat.constraints)

    def filters(self, layer: Layer[Convolution]) -> Array:
        return np.transpose(layer.input(1).value, (3, 1, 2, 0))


class DepthwiseOfOneChannelFloat16(ConvFloat16):
    """The same with float16 weights."""

    constraints = (one_channel, *ConvFloat16.constraints)

    def filters(self, layer: Layer[Convolution]) -> Array:
        return np.transpose(layer.input(1).value, (3, 1, 2, 0))


register_kernels(
    DepthwiseConv,
    DepthwiseNibblesHelium(),
    DepthwiseNibblesRowsHelium(),
    DepthwiseNibblesVector(),
    DepthwiseNibblesDsp(),
    DepthwiseNibblesHalves(),
    DepthwiseNibbles(),
    *cmsis_four_bits.DEPTHWISE_KERNELS,
    *DEPTHWISE_KERNELS,
    DepthwiseConvHelium(),
    DepthwiseConvHeliumScaled(),
    DepthwiseConvVector(),
    DepthwiseConvVectorScaled(),
    DepthwiseWhole(),
    DepthwiseDsp(),
    DepthwiseHalves(),
    DepthwisePlanes(),
    DepthwiseStripsInt16(),
    DepthwiseConvInt16Helium(),
    DepthwisePlanesInt16(),
    DepthwiseConvInt16Dsp(),
    DepthwiseConvInt16(),
    DepthwiseIntoFloat(),
    DepthwiseOfOneChannelFloat16(),
    DepthwiseOfOneChannel(),
    DepthwiseConvFloat16(),
    DepthwiseConvFloat(),
    DepthwiseConvLoops(),
)


@tflite_op("DEPTHWISE_CONV_2D")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return convolution.read_tflite(node, build, DepthwiseConv())


@onnx_writer(DepthwiseConv)
def write_onnx(op: DepthwiseConv, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    weights = out.permuted(layer.input(1), x[1], (3, 0, 1, 2), "weights")
    convolution.write_convolution(op, layer.input(0).shape[3], weights, x, y, out)
