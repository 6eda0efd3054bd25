# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions with int16 activations that copy one channel at a time into a plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.planes import turned
from tinyml.ops.framework.kernel import Overlay, Sheet, over_inputs
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.window import Pair
from tinyml.ops.weighted import int16_counts
from tinyml.ops.weighted.int16 import DepthwiseChannelsInt16
from tinyml.ops.weighted.int16_dsp import DepthwiseConvInt16Dsp, positive, scaling, whole_factors
from tinyml.ops.weighted.records import geometry
from tinyml.ops.weighted.walked import windows_of

FACTOR_BITS = 32
TWO_PLANES = 16
"""From so many channels on, if they are even, two are copied at once: TINYML_PLANES_S16_CHANNELS."""


def lines_of_outputs(layer: Layer[Convolution]) -> bool:
    """Along rows or columns, the kernel has at most three taps and stride 1, and there are three outputs."""
    return _fits(layer, 0) or _fits(layer, 1)


def lines_down(layer: Layer[Convolution]) -> bool:
    """Whether it is less work to go down columns than along rows, or only these can be walked."""
    return _fits(layer, 0) and (not _fits(layer, 1) or _work(layer, 0) < _work(layer, 1))


def _fits(layer: Layer[Convolution], axis: int) -> bool:
    """Whether the kernel can walk along this axis."""
    op, taps, outputs = layer.op, layer.input(1).shape[1 + axis], layer.output.shape[1 + axis]
    return bool(taps <= 3 and op.strides[axis] == op.dilations[axis] == 1 and outputs >= 3)


def _work(layer: Layer[Convolution], axis: int) -> int:
    """Instructions, about: of a line, of four outputs, of a row of the kernel."""
    lines, outputs = layer.output.shape[2 - axis], layer.output.shape[1 + axis]
    return lines * (40 + -(-outputs // 4) * (32 + 15 * layer.input(1).shape[2 - axis]))


def two_planes(layer: Layer[Convolution]) -> bool:
    """Whether two channels are copied at once."""
    channels = layer.output.shape[3]
    return bool(channels % 2 == 0 and channels >= TWO_PLANES)


def _along(layer: Layer[Convolution], extents: Sequence[int]) -> Pair:
    """Down and along, as the kernel sees it, which may go down columns."""
    return (extents[1], extents[0]) if lines_down(layer) else (extents[0], extents[1])


class DepthwisePlanesInt16(DepthwiseConvInt16Dsp):
    """Channel by channel, four outputs of a line at once."""

    name = "tinyml_depthwise_planes_dsp_s16"
    sources = ("conv/depthwise_planes_dsp_s16.c",)
    prepares_channels = True
    constraints = (*DepthwiseConvInt16Dsp.constraints, lines_of_outputs)

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        """Outputs replace inputs of the same channel, which are in the plane by then."""
        return over_inputs(layer, 0) if layer.input(0).shape[0] == 1 else ()

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """The taps of a channel, two in a word; then one or two channels, which are read in words.

        The player's kernel copies a channel without its padding.
        """
        height, width = _along(layer, layer.input(1).shape[1:3])
        outs, columns = _along(layer, layer.output.shape[1:3])
        stride, dilation = (_along(layer, pair)[0] for pair in (layer.op.strides, layer.op.dilations))
        rows = (height - 1) * dilation + (outs - 1) * stride + 1
        planes = 2 if two_planes(layer) else 1
        own = 8 * height + 2 * (planes * rows * ((width + columns) & ~1) + 5)
        return max(own, DepthwiseChannelsInt16().scratch_bytes(layer, target))

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        filters = np.transpose(layer.input(1).value[0], (2, 0, 1))
        members = dict(geometry(layer))
        if lines_down(layer):
            filters = filters.transpose(0, 2, 1)
            members = {turned(member): value for member, value in members.items()}
            members[".transposed"] = "true"
        sheet.include("<tinyml/conv_s16.h>")
        members |= {
            ".weights": sheet.table("weights", np.ascontiguousarray(filters)),
            **scaling(layer, sheet, FACTOR_BITS),
        }
        name = sheet.record("struct tinyml_depthwise_planes_dsp_s16", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y(), sheet.scratch)

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        DepthwiseChannelsInt16().emit(layer, sheet)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        windows = windows_of(layer)
        lines = windows.turned if lines_down(layer) else windows
        shifts = whole_factors(layer, FACTOR_BITS) is None
        return int16_counts.planes_with_dsp(lines, positive(layer), shifts, two_planes(layer))
