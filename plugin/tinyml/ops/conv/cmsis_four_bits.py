# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions by CMSIS-NN with weights of four bits, where they compute what ours compute."""

from __future__ import annotations

from typing import ClassVar

from tinyml.cores.targets import Target
from tinyml.ir import Array, Layer
from tinyml.ops.conv.cmsis import (
    COMMON,
    ConvolutionKernel,
    DepthwiseKernel,
    pointwise,
    short_filters,
    unit_stride,
)
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.weighted import cmsis_nn as nn
from tinyml.ops.weighted.helium import one_group
from tinyml.ops.weighted.nibbles import int4_weights, neighbours_in_bytes

GEMM = f"{nn.SUPPORT}/arm_nn_mat_mult_nt_t_s4.c"


def exact_remainder(layer: Layer[Convolution]) -> bool:
    """The layer rounds twice, or its positions (of an image, and of all) are multiples of four or one more:
    with Helium, CMSIS-NN rounds the last two or three positions twice."""
    images, height, width, _ = layer.output.shape
    left = {height * width % 4, images * height * width % 4}
    return not layer.op.round_once or left <= {0, 1}


class PointwiseFourBits(ConvolutionKernel):
    """1x1 convolution with stride 1."""

    name = "arm_convolve_1x1_s4_fast"
    sources: ClassVar[tuple[str, ...]] = (f"{nn.CONVOLUTION}/arm_convolve_1x1_s4_fast.c", GEMM)
    constraints = (*COMMON, int4_weights, pointwise, unit_stride, exact_remainder)
    weight_bits = 4

    def packed(self, layer: Layer[Convolution]) -> Array:
        return neighbours_in_bytes(layer.input(1).value)


class GeneralFourBits(PointwiseFourBits):
    """Any convolution without groups, through an im2col buffer."""

    name = "arm_convolve_s4"
    sources = (
        f"{nn.CONVOLUTION}/arm_convolve_s4.c",
        f"{nn.CONVOLUTION}/arm_nn_mat_mult_kernel_s4_s16.c",
        GEMM,
        f"{nn.SUPPORT}/arm_q7_to_q15_with_offset.c",
    )
    constraints = (*COMMON, int4_weights, one_group, short_filters, exact_remainder)

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """Two columns of int16, or with Helium four of int8."""
        return 4 * layer.input(1).elements // layer.input(1).shape[0]


def even_channels(layer: Layer[Convolution]) -> bool:
    """The number of input channels is even: with an odd one, CMSIS-NN takes wrong weights where windows
    extend past the input, because it skips an odd number of them."""
    return layer.input(0).shape[3] % 2 == 0


class DepthwiseFourBits(DepthwiseKernel):
    """Any depthwise layer."""

    name = "arm_depthwise_conv_s4"
    sources = (f"{nn.CONVOLUTION}/arm_depthwise_conv_s4.c",)
    constraints = (*COMMON, int4_weights, even_channels)
    weight_bits = 4

    def packed(self, layer: Layer[Convolution]) -> Array:
        return neighbours_in_bytes(layer.input(1).value)


CONV_KERNELS = (PointwiseFourBits(), GeneralFourBits())
DEPTHWISE_KERNELS = (DepthwiseFourBits(),)
