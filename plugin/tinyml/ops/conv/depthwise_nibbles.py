# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions with weights of four bits, which are unpacked channel by channel."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.planes import DepthwiseDsp, DepthwiseHalves, DepthwisePlanes
from tinyml.ops.conv.whole import whole_input
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.shared.quant import quant_of
from tinyml.ops.weighted.nibbles import channel_nibbles, few_elements, int4_weights
from tinyml.ops.weighted.records import quantized_record


def several_windows(layer: Layer[Convolution]) -> bool:
    """The kernel does not cover the whole input: kernels for that need no copy of it."""
    return not whole_input(layer)


class _Nibbles(DepthwisePlanes):
    """Mixed in before a kernel for bytes, of which it only changes how weights are stored."""

    weight_bits = 4

    def tables(
        self, layer: Layer[Convolution], sheet: Sheet, filters: Array, across: bool
    ) -> dict[str, object]:
        rows = filters.transpose(0, 1, 3, 2) if across else filters
        centred = rows.astype(np.int16) - quant_of(layer.input(1)).zero_points[0]
        packed = channel_nibbles(centred.reshape(len(centred), -1))
        return quantized_record(layer, sheet, filters, packed)


FOUR_BITS = (int4_weights, few_elements, several_windows)


class DepthwiseNibbles(_Nibbles):
    """Weights of four bits in portable C, with any dilation, multiplier and weight zero point."""

    name = "tinyml_depthwise_nibbles_s8"
    constraints = (*DepthwisePlanes.constraints, *FOUR_BITS)


class DepthwiseNibblesHalves(_Nibbles, DepthwiseHalves):
    """The same on Arm cores without DSP instructions: elements of two outputs in one word."""

    name = "tinyml_depthwise_nibbles_halves_s8"
    constraints = (*DepthwiseHalves.constraints, *FOUR_BITS)


class DepthwiseNibblesDsp(_Nibbles, DepthwiseDsp):
    """The same with DSP instructions, two taps at a time."""

    name = "tinyml_depthwise_nibbles_dsp_s8"
    constraints = (*DepthwisePlanes.constraints, *FOUR_BITS)
