# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions whose kernel covers the whole input, as in streaming models and in heads."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet, over_inputs
from tinyml.ops.weighted.helium import one_filter_per_channel
from tinyml.ops.weighted.records import (
    constant_weights,
    int8_tensors,
    quantized_record,
    small_extents,
    symmetric_weights,
)


def whole_input(layer: Layer[Convolution]) -> bool:
    """The kernel has the extents of the input, and there is no padding."""
    dilated = any(
        d > 1 < extent for d, extent in zip(layer.op.dilations, layer.input(1).shape[1:3], strict=True)
    )
    same = layer.input(0).shape[1:3] == layer.input(1).shape[1:3]
    return same and not dilated and not any(layer.op.pads)


class DepthwiseWhole(Kernel[Convolution]):
    """One output per channel, four channels at a time, without scratch memory."""

    name = "tinyml_depthwise_whole_s8"
    library = Library.PORTABLE
    sources = ("conv/depthwise_whole_s8.c",)
    constraints = (
        int8_tensors,
        constant_weights,
        symmetric_weights,
        one_filter_per_channel,
        small_extents,
        whole_input,
    )

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        """Outputs lie where the first inputs of the same channels were, which have been read by then."""
        return over_inputs(layer, 0) if layer.input(0).shape[0] == 1 else ()

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        weights = layer.input(1).value
        sheet.include("<tinyml/depthwise_conv.h>")
        members = quantized_record(layer, sheet, np.transpose(weights, (3, 0, 1, 2)), weights.reshape(-1))
        name = sheet.record("struct tinyml_depthwise_conv_s8", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y())
