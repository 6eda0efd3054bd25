# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of integer transposed convolutions, which call those of convolutions for parts of the outputs."""

from __future__ import annotations

from typing import ClassVar

from tinyml.cores.targets import Target
from tinyml.ir import Constraint, Layer
from tinyml.ops.conv import helium_counts
from tinyml.ops.conv.nibbles import ConvNibbles, ConvNibblesDsp, ConvNibblesHalves
from tinyml.ops.conv.streamed import ConvDsp, ConvHalves, ConvInt8, ConvPairs, ConvWide
from tinyml.ops.conv.transpose_kernels import ConvTransposeQuantized
from tinyml.ops.conv.transpose_parts import (
    column_bytes,
    emit_parts,
    parts,
    repeated_bytes,
    row_bytes,
    walked_parts,
)
from tinyml.ops.conv.transposed import ConvTranspose
from tinyml.ops.conv.vectors import ConvHelium
from tinyml.ops.framework.kernel import Library, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted import helium
from tinyml.ops.weighted.halves import moderate_sums, neighbours_fit
from tinyml.ops.weighted.nibbles import fields_fit, four_bit_weights, int4_weights, moderate_accumulators
from tinyml.ops.weighted.pairs import pairs_are_exact
from tinyml.ops.weighted.records import (
    SMALL,
    constant_weights,
    int8_tensors,
    one_weight_zero,
    symmetric_weights,
)
from tinyml.ops.weighted.stream import right_shifts
from tinyml.ops.weighted.walked import outputs_of


def small_image(layer: Layer[ConvTranspose]) -> bool:
    """There are two spatial axes; extents, with padding and dilation, are all below 32,768."""
    op, x, y, w = layer.op, layer.input(0).shape, layer.output.shape, layer.input(1).shape
    if len(x) != 4:
        return False
    reach = [(k - 1) * d + 1 for k, d in zip(w[1:3], op.dilations, strict=True)]
    padded = [o + p for o, p in zip(y[1:3], op.pads, strict=True)]
    return max(*x, *y, *w, *op.strides, *reach, *padded) < SMALL


def neighbours_of_parts_fit(layer: Layer[ConvTranspose]) -> bool:
    """No filter has two neighbouring weights of -128 among those that meet the same outputs."""
    return all(neighbours_fit(part.layer) for part in parts(layer, layer.op))


class ConvTransposeInt8(ConvTransposeQuantized):
    """A convolution for each remainder of output positions after the strides. The player has the loops."""

    name = "tinyml_conv_apart_s8"
    library = Library.PORTABLE
    convolution: ClassVar[ConvInt8] = ConvInt8()
    sources: ClassVar[tuple[str, ...]] = ("conv/conv_apart_s8.c", *convolution.sources)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        int8_tensors,
        constant_weights,
        one_weight_zero,
        small_image,
    )

    def runs_on(self, target: Target) -> bool:
        return self.convolution.runs_on(target)

    def scratch_bytes(self, layer: Layer[ConvTranspose], target: Target) -> int:
        return column_bytes(layer, layer.op, self.convolution) + row_bytes(layer, layer.op)

    def repeated_bytes(self, layer: Layer[ConvTranspose]) -> int:
        return repeated_bytes(layer, layer.op)

    def emit(self, layer: Layer[ConvTranspose], sheet: Sheet) -> None:
        emit_parts(layer, sheet, layer.op, self.convolution, self.name)

    def loop_counts(self, layer: Layer[ConvTranspose], target: Target) -> Work | None:
        made = outputs_of(layer)
        return walked_parts(
            layer, layer.op, layer.op.groups, lambda windows: self.convolution.walked(windows, made)
        )


class ConvTransposeWide(ConvTransposeInt8):
    """The same on processors with registers for sixteen sums."""

    name = "tinyml_conv_apart_wide_s8"
    convolution = ConvWide()
    sources = ("conv/conv_apart_wide_s8.c", *convolution.sources)
    loop_counts = ConvTransposeInt8.loop_counts


class ConvTransposeHalves(ConvTransposeInt8):
    """The same on Arm cores without DSP instructions, two windows in a word."""

    name = "tinyml_conv_apart_halves_s8"
    convolution = ConvHalves()
    sources = ("conv/conv_apart_halves_s8.c", *convolution.sources)
    constraints = (
        *ConvTransposeInt8.constraints,
        symmetric_weights,
        right_shifts,
        neighbours_of_parts_fit,
        moderate_sums,
    )
    loop_counts = ConvTransposeInt8.loop_counts


class ConvTransposeDsp(ConvTransposeInt8):
    """The same with DSP instructions."""

    name = "tinyml_conv_apart_dsp_s8"
    convolution = ConvDsp()
    sources = ("conv/conv_apart_dsp_s8.c", *convolution.sources)
    constraints = (*ConvTransposeInt8.constraints, right_shifts)
    loop_counts = ConvTransposeInt8.loop_counts


class ConvTransposePairs(ConvTransposeInt8):
    """The same with two filters in one int16, where that is exact."""

    name = "tinyml_conv_apart_pairs_s8"
    convolution = ConvPairs()
    sources = ("conv/conv_apart_pairs_s8.c", *convolution.sources)
    constraints = (*ConvTransposeDsp.constraints, symmetric_weights, pairs_are_exact)
    loop_counts = ConvTransposeInt8.loop_counts


class ConvTransposeHelium(ConvTransposeInt8):
    """The same with Helium."""

    name = "tinyml_conv_apart_mve_s8"
    convolution = ConvHelium()
    sources = ("conv/conv_apart_mve_s8.c", *convolution.sources)
    constraints = (
        *ConvTransposeInt8.constraints,
        symmetric_weights,
        helium.one_group,
        helium.proper_shifts,
    )

    def functions(self, layer: Layer[ConvTranspose]) -> tuple[str, ...]:
        return self.name, f"tinyml_conv_mve_{helium.conv_loop(layer)}"

    def loop_counts(self, layer: Layer[ConvTranspose], target: Target) -> Work | None:
        loop = helium.conv_loop(layer)
        return walked_parts(layer, layer.op, 1, lambda windows: helium_counts.convolution(windows, loop))


class ConvTransposeNibbles(ConvTransposeInt8):
    """The same with weights of four bits. The player has a byte for each weight."""

    name = "tinyml_conv_apart_nibbles_s8"
    convolution = ConvNibbles()
    sources = ("conv/conv_apart_nibbles_s8.c", *convolution.sources)
    constraints = (*ConvTransposeInt8.constraints, four_bit_weights)
    weight_bits = 4
    loop_counts = ConvTransposeInt8.loop_counts


class ConvTransposeNibblesDsp(ConvTransposeNibbles):
    """The same with DSP instructions."""

    name = "tinyml_conv_apart_nibbles_dsp_s8"
    convolution = ConvNibblesDsp()
    sources = ("conv/conv_apart_nibbles_dsp_s8.c", *convolution.sources)
    constraints = (*ConvTransposeNibbles.constraints, fields_fit)
    loop_counts = ConvTransposeInt8.loop_counts


class ConvTransposeNibblesHalves(ConvTransposeNibbles):
    """The same on Arm cores without DSP instructions, two windows in a word."""

    name = "tinyml_conv_apart_nibbles_halves_s8"
    convolution = ConvNibblesHalves()
    sources = ("conv/conv_apart_nibbles_halves_s8.c", *convolution.sources)
    constraints = (*ConvTransposeNibbles.constraints, int4_weights, right_shifts, moderate_accumulators)
    loop_counts = ConvTransposeInt8.loop_counts
