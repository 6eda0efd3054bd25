# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions by CMSIS-NN: which of its functions fits, and how much scratch memory it needs.

The sizes are those of the library's own get_buffer_size functions for code built with GCC.
"""

from __future__ import annotations

from tinyml.cores.targets import Target
from tinyml.ir import Array, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.weighted import cmsis_nn as nn
from tinyml.ops.weighted.records import constant_weights, int8_tensors, small_extents, symmetric_weights

COMMON = (int8_tensors, constant_weights, symmetric_weights, small_extents, nn.moderate_outputs)
GEMM = f"{nn.SUPPORT}/arm_nn_mat_mult_nt_t_s8.c"
GENERAL = (
    f"{nn.CONVOLUTION}/arm_convolve_s8.c",
    f"{nn.CONVOLUTION}/arm_nn_mat_mult_kernel_row_offset_s8_s16.c",
    f"{nn.CONVOLUTION}/arm_nn_mat_mult_kernel_s8_s16.c",
    GEMM,
    f"{nn.SUPPORT}/arm_q7_to_q15_with_offset.c",
    f"{nn.SUPPORT}/arm_s8_to_s16_unordered_with_offset.c",
)


def pointwise(layer: Layer[Convolution]) -> bool:
    """The kernel is 1x1 without padding or groups."""
    x, w = layer.input(0), layer.input(1)
    return w.shape[1:3] == (1, 1) and not any(layer.op.pads) and w.shape[3] == x.shape[3]


def unit_stride(layer: Layer[Convolution]) -> bool:
    """The stride is 1."""
    return layer.op.strides == (1, 1)


class ConvolutionKernel(nn.RoundingKernel[Convolution]):
    """Shared by the kernels below: parameters, filter dimensions and the call."""

    upscale = False

    def packed(self, layer: Layer[Convolution]) -> Array | None:
        """Weights that are not stored as a byte each."""
        return None

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        op = layer.op
        members = nn.window_params(layer, op.strides, op.dilations, op.pads, op.clamp)
        params = sheet.record("cmsis_nn_conv_params", "params", members)
        filter_dims = nn.shape_dims(sheet, "filter_dims", layer.input(1).shape)
        scratch = self.scratch_bytes(layer, sheet.target)
        nn.convolution_call(
            layer, sheet, self.name, params, filter_dims, scratch, self.upscale, self.packed(layer)
        )


class PointwiseConv(ConvolutionKernel):
    """1x1 convolution with stride 1: one matrix product, no scratch memory."""

    name = "arm_convolve_1x1_s8_fast"
    sources = (f"{nn.CONVOLUTION}/arm_convolve_1x1_s8_fast.c", GEMM)
    constraints = (*COMMON, pointwise, unit_stride)


class StridedPointwiseConv(ConvolutionKernel):
    """1x1 convolution with any stride."""

    name = "arm_convolve_1x1_s8"
    sources = (f"{nn.CONVOLUTION}/arm_convolve_1x1_s8.c", GEMM)
    constraints = (*COMMON, pointwise)


def one_row(layer: Layer[Convolution]) -> bool:
    """Input, kernel and output are one row high, undilated, ungrouped, with padding split evenly."""
    op, x, w, y = layer.op, layer.input(0), layer.input(1), layer.output
    if not (x.shape[1] == w.shape[1] == y.shape[1] == 1 and w.shape[3] == x.shape[3]):
        return False
    stride, left, kernel = op.strides[1], op.pads[1], w.shape[2]
    total = (y.shape[2] - 1) * stride + kernel - x.shape[2]
    if op.dilations[1] != 1 or op.pads[0] or op.pads[2] or stride * x.shape[3] % 4:
        return False
    return kernel <= x.shape[2] and total >= 0 and 2 * left + total % 2 == total


class RowConv(ConvolutionKernel):
    """One-dimensional convolution without an im2col buffer, on cores with Helium."""

    name = "arm_convolve_1_x_n_s8"
    sources = (f"{nn.CONVOLUTION}/arm_convolve_1_x_n_s8.c", *GENERAL)
    constraints = (*COMMON, one_row)

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        op, x, w, y = layer.op, layer.input(0), layer.input(1), layer.output
        stride, pad, kernel, channels = op.strides[1], op.pads[1], w.shape[2], x.shape[3]
        uneven = ((y.shape[2] - 1) * stride + kernel - x.shape[2]) % 2
        right = max(1, -(-(pad + uneven) // stride)) if pad + uneven else 0
        left = max(1, -(-pad // stride)) if pad else 0
        if left + right + max(y.shape[2] - left - right, 0) != y.shape[2]:
            return im2col_bytes(layer, target)
        beside = right * channels if uneven else pad * channels
        return max(kernel * channels + pad * channels, (kernel - 1) * channels + beside)


def im2col_bytes(layer: Layer, target: Target) -> int:
    """Two columns of int16 or, with Helium, four of int8 in whole vectors."""
    column = layer.input(1).shape[1] * layer.input(1).shape[2] * layer.input(0).shape[3]
    if target.mve:
        return 4 * 16 * -(-column // 16)
    return 2 * 2 * 4 * -(-column // 4)


def bias_of_groups(layer: Layer[Convolution]) -> bool:
    """There is a bias, or only one group: without a bias, CMSIS-NN reads past a null pointer in the second
    group."""
    return layer.has_input(2) or layer.input(1).shape[3] == layer.input(0).shape[3]


def short_filters(layer: Layer[Convolution]) -> bool:
    """A filter has fewer than 65,536 elements, which CMSIS-NN counts in 16 bits."""
    return layer.input(1).elements // layer.input(1).shape[0] < 1 << 16


class GeneralConv(ConvolutionKernel):
    """Any convolution, through an im2col buffer."""

    name = "arm_convolve_s8"
    sources = GENERAL
    constraints = (*COMMON, bias_of_groups, short_filters)
    upscale = True

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        return im2col_bytes(layer, target)


def one_filter_per_channel(layer: Layer[Convolution]) -> bool:
    """Input and output have the same number of channels, the batch is 1, and there is no dilation."""
    x, y = layer.input(0), layer.output
    return x.shape[3] == y.shape[3] and x.shape[0] == 1 and layer.op.dilations == (1, 1)


def three_by_three(layer: Layer[Convolution]) -> bool:
    """The kernel is 3x3 with at most one row and column of padding before the input, and one column after."""
    op, x, y = layer.op, layer.input(0), layer.output
    top, left, _, _ = op.pads
    last = (y.shape[2] - 1) * op.strides[1] - left  # column at which the last windows begin
    middle_inside = last + 1 < x.shape[2]  # CMSIS-NN reads it without a check
    return layer.input(1).shape[1:3] == (3, 3) and top <= 1 and left <= 1 and middle_inside


class DepthwiseKernel(nn.RoundingKernel[Convolution]):
    """Shared by the depthwise kernels below."""

    def packed(self, layer: Layer[Convolution]) -> Array | None:
        """Weights that are not stored as a byte each."""
        return None

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        op = layer.op
        multiple = layer.output.shape[3] // layer.input(0).shape[3]
        members = nn.window_params(layer, op.strides, op.dilations, op.pads, op.clamp)
        params = sheet.record("cmsis_nn_dw_conv_params", "params", {**members, ".ch_mult": multiple})
        filter_dims = nn.shape_dims(sheet, "filter_dims", layer.input(1).shape)
        scratch = self.scratch_bytes(layer, sheet.target)
        packed = self.packed(layer)
        nn.convolution_call(layer, sheet, self.name, params, filter_dims, scratch, packed=packed)


class DepthwiseConv3x3(DepthwiseKernel):
    """The usual depthwise layer, without scratch memory, on cores without Helium."""

    name = "arm_depthwise_conv_3x3_s8"
    sources = (f"{nn.CONVOLUTION}/arm_depthwise_conv_3x3_s8.c",)
    constraints = (*COMMON, one_filter_per_channel, three_by_three)

    def runs_on(self, target: Target) -> bool:
        return not target.mve


CHANNEL_BLOCK_MVE = 124  # CH_IN_BLOCK_MVE of the library


def bias_of_blocks(layer: Layer[Convolution]) -> bool:
    """There is a bias, or at most 124 channels: without a bias, CMSIS-NN reads past a null pointer in later
    channels."""
    return layer.has_input(2) or layer.output.shape[3] <= CHANNEL_BLOCK_MVE


class DepthwiseConvBuffered(DepthwiseKernel):
    """Depthwise layers of other sizes, on cores with DSP instructions or Helium."""

    name = "arm_depthwise_conv_s8_opt"
    sources = (
        f"{nn.CONVOLUTION}/arm_convolve_get_buffer_sizes_s8.c",
        f"{nn.CONVOLUTION}/arm_depthwise_conv_get_buffer_sizes_s8.c",
        f"{nn.CONVOLUTION}/arm_depthwise_conv_s8.c",
        f"{nn.CONVOLUTION}/arm_depthwise_conv_s8_opt.c",
        f"{nn.SUPPORT}/arm_nn_depthwise_conv_nt_t_s8.c",
        f"{nn.SUPPORT}/arm_q7_to_q15_with_offset.c",
    )
    constraints = (*COMMON, one_filter_per_channel, bias_of_blocks)

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        _, kernel_h, kernel_w, channels = layer.input(1).shape
        if target.mve:
            return 4 * CHANNEL_BLOCK_MVE * kernel_h * kernel_w
        return 2 * channels * kernel_h * kernel_w


class DepthwiseConvAny(DepthwiseKernel):
    """Depthwise layers with a channel multiplier or dilation."""

    name = "arm_depthwise_conv_s8"
    sources = (f"{nn.CONVOLUTION}/arm_depthwise_conv_s8.c",)
    prepares_channels = True
    constraints = COMMON


CONV_KERNELS = (PointwiseConv(), StridedPointwiseConv(), RowConv(), GeneralConv())
DEPTHWISE_KERNELS = (DepthwiseConv3x3(), DepthwiseConvBuffered(), DepthwiseConvAny())
