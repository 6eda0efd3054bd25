# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions that copy one input channel at a time into a separate plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.conv import halves_counts, plane_counts
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet, over_inputs
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.quant import clamp_range, quant_of
from tinyml.ops.shared.window import Pair
from tinyml.ops.weighted.halves import MOST, SUM_LIMIT
from tinyml.ops.weighted.records import (
    constant_weights,
    folded_bias,
    int8_tensors,
    one_weight_zero,
    padded_weights,
    quantized_record,
    small_extents,
    weight_zero,
)
from tinyml.ops.weighted.stream import right_shifts
from tinyml.ops.weighted.walked import Windows, outputs_of, windows_of


def plain_taps(layer: Layer[Convolution]) -> bool:
    """There is no dilation and no weight zero point."""
    return layer.op.dilations == (1, 1) and not any(quant_of(layer.input(1)).zero_points)


def unlimited(layer: Layer[Convolution]) -> bool:
    """Outputs are clamped to the range of int8 and no further."""
    return clamp_range(layer.op.clamp, layer.output) == (-128, 127)


def several_outputs(layer: Layer[Convolution]) -> bool:
    """Each channel has more than one output."""
    return max(layer.output.shape[1:3]) > 1


def windows_reach_inputs(layer: Layer[Convolution]) -> bool:
    """Windows do not all lie in the padding before the input."""
    op, kernel, out = layer.op, layer.input(1).shape[1:3], layer.output.shape[1:3]
    return all(op.pads[i] < (out[i] - 1) * op.strides[i] + kernel[i] for i in range(2))


def taps_fit(layer: Layer[Convolution]) -> bool:
    """No two neighbouring weights are both -128."""
    taps = np.abs(layer.input(1).value[0].astype(np.int64))
    return all(_most_of_two(way) <= MOST for way in (taps, taps.transpose(1, 0, 2)))


def _most_of_two(taps: Array) -> int:
    """The largest sum of two taps that kernels add along rows."""
    even = np.pad(taps, ((0, 0), (0, taps.shape[1] % 2), (0, 0)))
    sums = [(even[:, ::2] + even[:, 1::2]).max(initial=0)]
    if taps.shape[:2] == (3, 3):
        sums.append((taps[0, 2] + taps[1, 2]).max(initial=0))
    return int(max(sums))


def moderate_sums(layer: Layer[Convolution]) -> bool:
    """Accumulators stay below 2²⁹ for every input."""
    filters = np.transpose(layer.input(1).value, (3, 0, 1, 2))
    bias = np.abs(folded_bias(layer, filters).astype(np.int64))
    most = bias + 128 * np.abs(filters.reshape(len(filters), -1).astype(np.int64)).sum(axis=1)
    return bool(most.max(initial=0) < SUM_LIMIT)


class DepthwisePlanes(Kernel[Convolution]):
    """Integer depthwise convolution in portable C, with any dilation, multiplier and weight zero point."""

    name = "tinyml_depthwise_conv_s8"
    library = Library.PORTABLE
    sources = ("conv/depthwise_conv_s8.c",)
    ways = "tinyml_depthwise_"
    prepares_channels = True
    in_bands = True
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        one_weight_zero,
        small_extents,
    )

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """One channel with its padding, as far as windows reach."""
        op, kernel, out = layer.op, layer.input(1).shape[1:3], layer.output.shape[1:3]
        height, width = (
            (kernel[i] - 1) * op.dilations[i] + (out[i] - 1) * op.strides[i] + 1 for i in range(2)
        )
        return height * width

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        """Outputs replace inputs of the same channel, which are in the plane by then."""
        x, y = layer.input(0), layer.output
        return over_inputs(layer, 0) if x.shape[0] == 1 and x.shape[3] == y.shape[3] else ()

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        self.write(layer, sheet, self.function(layer), self.loops(layer))

    def write(self, layer: Layer[Convolution], sheet: Sheet, function: str, loops: Sequence[str]) -> None:
        """The call of this function, with these loops."""
        filters = np.transpose(layer.input(1).value, (3, 0, 1, 2))
        across = self.across(layer)
        sheet.include("<tinyml/depthwise_conv.h>")
        members = self.tables(layer, sheet, filters, across)
        if across:
            members = {turned(member): value for member, value in members.items()}
            members[".transposed"] = "true"
        name = sheet.record("struct tinyml_depthwise_conv_s8", "params", members)
        sheet.call(function, name, sheet.x(), sheet.y(), sheet.scratch, *(f"&{loop}" for loop in loops))

    def tables(
        self, layer: Layer[Convolution], sheet: Sheet, filters: Array, across: bool
    ) -> dict[str, object]:
        """Members of the record, with weights of rows or of columns."""
        weights = padded_weights(filters.transpose(0, 1, 3, 2) if across else filters)
        return {**quantized_record(layer, sheet, filters, weights), **weight_zero(layer)}

    def across(self, layer: Layer[Convolution]) -> bool:
        """Whether the kernel goes down columns."""
        return transposed(layer)

    def functions(self, layer: Layer[Convolution]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.function(layer), *self.loops(layer))))

    def function(self, layer: Layer[Convolution]) -> str:
        """What the generated C calls."""
        return self.name

    def loops(self, layer: Layer[Convolution]) -> tuple[str, ...]:
        """What the function is given to walk with."""
        return (f"{self.ways}{self.way(layer)}",)

    def way(self, layer: Layer[Convolution]) -> str:
        """How the kernel is walked: the end of a name in <tinyml/depthwise_conv.h>."""
        _, stride = _along(layer, layer.op.strides)
        several = _along(layer, layer.output.shape[1:3])[1] > 1
        if not (three_by_three(layer) and several):
            return "any"
        return "3x3" if stride == 1 else "3x3_strided"

    def planes(self, layer: Layer[Convolution]) -> Windows:
        """The windows in a plane, which may be turned."""
        windows = windows_of(layer)
        return windows.turned if self.across(layer) else windows

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return plane_counts.in_c(self.planes(layer), self.way(layer), outputs_of(layer))


class DepthwiseHalves(DepthwisePlanes):
    """The same on Arm cores without DSP instructions: elements of two outputs in one word."""

    name = "tinyml_depthwise_halves_s8"
    sources = ("conv/depthwise_halves_s8.c",)
    ways = "tinyml_depthwise_halves_"
    prepares_channels = True
    constraints = (
        *DepthwisePlanes.constraints,
        right_shifts,
        plain_taps,
        unlimited,
        several_outputs,
        windows_reach_inputs,
        taps_fit,
        moderate_sums,
    )

    def runs_on(self, target: Target) -> bool:
        return target.arm and not target.dsp

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """A word for every element that windows of the upper half of the output reach, and for every tap."""
        (rows, cols), (down, along), kernel = (
            (pair[1], pair[0]) if self.across(layer) else (pair[0], pair[1])
            for pair in (layer.output.shape[1:3], layer.op.strides, layer.input(1).shape[1:3])
        )
        height, width = (-(-rows // 2) - 1) * down + kernel[0], (cols - 1) * along + kernel[1]
        if width == 1:
            kernel = (1, kernel[0])
        return 4 * (height * width + (0 if kernel == (3, 3) else kernel[0] * (kernel[1] + kernel[1] % 2)))

    def across(self, layer: Layer[Convolution]) -> bool:
        """A row in the middle of an odd number is computed twice; rows and rows of taps cost something."""
        (rows, cols), kernel = layer.output.shape[1:3], layer.input(1).shape[1:3]
        return _work_of_halves((cols, rows), (kernel[1], kernel[0])) < _work_of_halves((rows, cols), kernel)

    def way(self, layer: Layer[Convolution]) -> str:
        kind = "3x3" if three_by_three(layer) else "any"
        return f"{kind}_{'once' if layer.op.round_once else 'twice'}"

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return halves_counts.depthwise(self.planes(layer), self.way(layer))


class DepthwiseDsp(DepthwisePlanes):
    """The same with DSP instructions, two taps at a time."""

    name = "tinyml_depthwise_conv_dsp_s8"
    sources = ("conv/depthwise_conv_dsp_s8.c",)
    ways = "tinyml_depthwise_dsp_"
    prepares_channels = True
    constraints = (*DepthwisePlanes.constraints, right_shifts)

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """The plane, which is read in words; then the weights of a channel as int16, in whole words.

        A single row of taps is read with nine taps, up to six bytes past the plane's end.
        """
        rows, _ = _along(layer, layer.input(1).shape[1:3])
        fast = self.way(layer).startswith("3x3")
        plane = -(-(super().scratch_bytes(layer, target) + (6 if fast and rows == 1 else 3)) // 4) * 4
        if fast:
            return plane
        return plane + 8 * rows * -(-self.reach(layer) // 4)

    def reach(self, layer: Layer[Convolution]) -> int:
        """Elements that a row of the kernel spans."""
        _, cols = _along(layer, layer.input(1).shape[1:3])
        return (cols - 1) * _along(layer, layer.op.dilations)[1] + 1

    def way(self, layer: Layer[Convolution]) -> str:
        _, stride = _along(layer, layer.op.strides)
        _, length = _along(layer, layer.output.shape[1:3])
        if nine_taps(layer) and stride in (1, 2) and length > 1 and unlimited(layer):
            return f"3x3_by_{stride}_{'once' if layer.op.round_once else 'twice'}"
        kind = "3x3" if three_by_three(layer) else "two_words" if 5 <= self.reach(layer) <= 7 else "any"
        return kind if kind == "any" or stride == 1 else f"{kind}_strided"

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        return plane_counts.with_dsp(self.planes(layer), self.way(layer), outputs_of(layer))


def three_by_three(layer: Layer[Convolution]) -> bool:
    """Whether it is the usual 3x3 kernel, which has faster variants."""
    weights, dilations = layer.input(1), layer.op.dilations
    return weights.shape[1:3] == (3, 3) and dilations == (1, 1) and not quant_of(weights).zero_points[0]


def nine_taps(layer: Layer[Convolution]) -> bool:
    """Whether it is a 3x3 kernel, or a single row of up to nine, which are walked alike."""
    weights = layer.input(1)
    (rows, cols), (_, dilation) = _along(layer, weights.shape[1:3]), _along(layer, layer.op.dilations)
    return three_by_three(layer) or (
        rows == 1 and cols <= 9 and dilation == 1 and not quant_of(weights).zero_points[0]
    )


def _along(layer: Layer, extents: Sequence[int]) -> Pair:
    """Down and along, as the kernel sees it, which may go down columns."""
    return (extents[1], extents[0]) if transposed(layer) else (extents[0], extents[1])


def transposed(layer: Layer) -> bool:
    """Whether it is less work to go down columns than along rows.

    Two outputs in a line are computed together, and kernels are read in words along the line.
    """
    _, out_h, out_w, _ = layer.output.shape
    _, kernel_h, kernel_w, _ = layer.input(1).shape
    return _work((out_w, out_h), (kernel_w, kernel_h)) < _work((out_h, out_w), (kernel_h, kernel_w))


def _work(out: Pair, kernel: Pair) -> int:
    """Instructions, about: of a line, of two outputs, of a line of the kernel, of a word of it."""
    words = -(-kernel[1] // 4)
    return out[0] * (16 + -(-out[1] // 2) * (42 + kernel[0] * (10 + 16 * words)))


def _work_of_halves(out: Pair, kernel: Sequence[int]) -> int:
    """Instructions, about: of a line, of two outputs, of a line of the kernel, of two taps of it."""
    rows, taps = kernel
    if out[1] == kernel[1] == 1:  # a column, which is walked like a row
        return 16 + -(-out[0] // 2) * (76 + 10 * -(-rows // 2))
    return -(-out[0] // 2) * (16 + out[1] * (70 + rows * (6 + 10 * -(-taps // 2))))


def turned(member: str) -> str:
    """The member of a window that takes this one's place where rows and columns are exchanged."""
    others = {".window.pad_top": ".window.pad_left", ".window.pad_left": ".window.pad_top"}
    if member in others or member[-2:] not in ("_h", "_w"):
        return others.get(member, member)
    return member[:-1] + ("w" if member[-1] == "h" else "h")
