# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions with int16 activations and Helium that copy the rows of eight channels at a time."""

from __future__ import annotations

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Array, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.planes import turned
from tinyml.ops.framework.kernel import Overlay, Sheet, over_inputs
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.window import Pair
from tinyml.ops.weighted import int16_counts
from tinyml.ops.weighted.int16 import DepthwiseChannelsInt16
from tinyml.ops.weighted.int16_dsp import DepthwiseConvInt16Dsp, factors, whole_factors
from tinyml.ops.weighted.records import geometry, rounding
from tinyml.ops.weighted.walked import Windows, groups_of, windows_of

LANES = 8
TAPS = 3
FACTOR_BITS = 31


def narrow_windows(layer: Layer[Convolution]) -> bool:
    """Along rows or columns, the kernel has two or three taps, stride 1 and dilation 1; the other way it has
    at most three taps. There are eight channels or more, and three outputs along."""
    return _fits(layer, 0) or _fits(layer, 1)


def long_lines(layer: Layer[Convolution]) -> bool:
    """Lines of outputs are long enough: four outputs with few channels, six with many."""
    windows = _walked(layer)
    rows, cols, eights = windows.rows, windows.cols, groups_of(windows.in_c, LANES)
    pair = 27 + 31 * rows.kernel
    strip = rows.out * (150 + groups_of(cols.out, 2) * pair) + 5 * rows.copied * cols.copied
    singly = 30 * windows.positions + rows.taps * (3 * cols.out + 8 * cols.taps)  # depthwise_mve_s16.c
    return eights * strip < eights * singly + 75 * windows.positions


def lines_down(layer: Layer[Convolution]) -> bool:
    """Whether lines of outputs are columns: where these are longer, or rows cannot be walked."""
    _, rows, columns, _ = layer.output.shape
    return _fits(layer, 0) and (not _fits(layer, 1) or rows > columns)


def _fits(layer: Layer[Convolution], axis: int) -> bool:
    """Whether the kernel can walk along this axis."""
    op, kernel, outputs = layer.op, layer.input(1).shape[1:3], layer.output.shape[1 + axis]
    along, across = kernel[axis], kernel[1 - axis]
    plain = op.strides[axis] == op.dilations[axis] == 1 and outputs >= 3
    return bool(plain and 2 <= along <= TAPS and across <= TAPS and layer.output.shape[3] >= LANES)


def _across(layer: Layer[Convolution]) -> int:
    """The axis from a line to the next."""
    return 1 if lines_down(layer) else 0


def _walked(layer: Layer[Convolution]) -> Windows:
    """Lines of outputs as rows."""
    windows = windows_of(layer)
    return windows.turned if lines_down(layer) else windows


def in_strips(values: Array) -> Array:
    """Of each eight channels those with even numbers first."""
    filled = np.pad(values, (0, -len(values) % LANES))
    return np.ascontiguousarray(filled.reshape(-1, LANES // 2, 2).transpose(0, 2, 1)).reshape(-1)


class DepthwiseStripsInt16(DepthwiseConvInt16Dsp):
    """Eight channels of two positions at once."""

    name = "tinyml_depthwise_strips_mve_s16"
    sources = ("conv/depthwise_strips_mve_s16.c",)
    prepares_channels = True
    constraints = (*DepthwiseConvInt16Dsp.constraints, narrow_windows, long_lines)

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        """Outputs replace inputs of the same channels, whose rows are copied by then."""
        same = layer.input(0).shape == layer.output.shape
        return over_inputs(layer, 0) if same and _copied_in_time(layer) else ()

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """Rows with their padding, and one of padding alone. The player's kernel copies a channel."""
        across = _across(layer)
        outputs = layer.output.shape[2 - across]
        positions = outputs + outputs % 2 + TAPS - 1
        rows = (layer.input(1).shape[1 + across] - 1) * layer.op.dilations[across] + 2
        return max(2 * LANES * positions * rows, DepthwiseChannelsInt16().scratch_bytes(layer, target))

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        filters = layer.input(1).value[0]
        members = dict(geometry(layer))
        if lines_down(layer):
            filters = filters.transpose(1, 0, 2)
            members = {turned(member): value for member, value in members.items()}
            members[".transposed"] = "true"
        rows, taps, channels = filters.shape
        filled = np.pad(filters, ((0, 0), (0, TAPS - taps), (0, -channels % LANES)))
        weights = filled.reshape(rows, TAPS, -1, LANES).transpose(2, 0, 1, 3)
        sheet.include("<tinyml/conv_s16.h>")
        members |= {
            ".weights": sheet.table("weights", np.ascontiguousarray(weights).reshape(-1)),
            **_scaling(layer, sheet),
        }
        name = sheet.record("struct tinyml_depthwise_strips_mve_s16", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y(), sheet.scratch)

    def play(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        DepthwiseChannelsInt16().emit(layer, sheet)

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return int16_counts.strips_with_helium(_walked(layer), whole_factors(layer, FACTOR_BITS) is None)


def _copied_in_time(layer: Layer[Convolution]) -> bool:
    """Whether a line of inputs is copied before the line of outputs in its place is written."""
    across = _across(layer)
    reach = (layer.input(1).shape[1 + across] - 1) * layer.op.dilations[across]
    pads: Pair = (layer.op.pads[0], layer.op.pads[1])
    return bool(layer.op.strides[across] == 1 and pads[across] <= reach)


def _scaling(layer: Layer[Convolution], sheet: Sheet) -> dict[str, object]:
    """The tables and limits."""
    bias = layer.input(2).value.reshape(-1) if layer.has_input(2) else np.zeros(layer.output.shape[3])
    factor, shift = factors(layer)
    whole = whole_factors(layer, FACTOR_BITS)
    limits = {name: value for name, value in rounding(layer).items() if name != ".round_once"}
    down = (-1 - shift.astype(np.int32)).astype(np.int8)
    return {
        ".bias": sheet.table("bias", in_strips(bias.astype(np.int32))),
        ".factor": sheet.table("factor", in_strips(factor if whole is None else whole)),
        ".shift": sheet.table("shift", in_strips(down)) if whole is None else "NULL",
        **limits,
    }
