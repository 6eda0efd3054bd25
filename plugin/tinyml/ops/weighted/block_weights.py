# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float layers whose weights stay packed in flash: four bits, or bytes in blocks, each with a scale."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, DType, Layer
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.overlay import forwards
from tinyml.ops.weighted import float_counts
from tinyml.ops.weighted.block_form import BlockForm, block_form
from tinyml.ops.weighted.into_float import one_tap
from tinyml.ops.weighted.records import constant_weights, float_limits, float_tensors
from tinyml.ops.weighted.weighted import Weighted

NIBBLE_WORDS = "steps of 4 bits, 8 to a word: 0 to 3 in the lower halves of its bytes, 4 to 7 in the upper"
SCALE_WORDS = "for each filter, the value of one step of each block"
ZERO_WORDS = "the same: the step that means 0"


def steps_of_four_bits(layer: Layer) -> bool:
    """The weights of each filter, or of each block of it, are integers of 4 bits times one scale."""
    return layer.input(1).dtype is DType.FLOAT32 and block_form(layer.input(1).value, 4) is not None


def steps_of_eight_bits(layer: Layer) -> bool:
    """The weights of each block of a filter are integers of 8 bits times one scale."""
    return layer.input(1).dtype is DType.FLOAT32 and block_form(layer.input(1).value, 8) is not None


def packed_form(values: Array, bits: int) -> BlockForm:
    form = block_form(values, bits)
    assert form is not None
    return form


def steps_members(sheet: Sheet, values: Array, bits: int) -> dict[str, object]:
    """Members of struct tinyml_steps_s4 or tinyml_steps_s8."""
    form = packed_form(values, bits)
    stored, zeros = form.packed() if bits == 4 else form.bytes()
    usual = 8 if bits == 4 else 0
    sheet.include("<tinyml/block_weights.h>")
    return {
        "inputs": form.steps.shape[1],
        "block": form.block,
        "weights": sheet.table("weights", stored, holds=NIBBLE_WORDS if bits == 4 else ""),
        "scales": sheet.table("scales", form.scales, holds=SCALE_WORDS),
        "zeros": sheet.table("zeros", zeros, holds=ZERO_WORDS) if np.any(zeros != usual) else "NULL",
    }


class DenseNibbles(Kernel[Weighted]):
    """Matrix-vector products with weights of four bits; with assembly or Helium where there is an FPU."""

    name = "tinyml_dense_f32_s4"
    library = Library.PORTABLE
    sources: ClassVar[tuple[str, ...]] = ("dense/dense_f32_s4.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (float_tensors, constant_weights, steps_of_four_bits)
    bits: ClassVar[int] = 4

    def scratch_bytes(self, layer: Layer[Weighted], target: Target) -> int:
        """A sum of the input for each block."""
        return packed_form(layer.input(1).value, self.bits).blocks * DType.FLOAT32.bytes

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        outputs = layer.output.shape[-1]
        steps = steps_members(sheet, layer.input(1).value, self.bits)
        members = {
            ".rows": layer.output.elements // outputs,
            ".outputs": outputs,
            **{f".steps.{name}": value for name, value in steps.items()},
            **float_limits(layer, sheet),
        }
        name = sheet.record(f"struct {self.name}", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y(), sheet.scratch)


class DenseByteBlocks(DenseNibbles):
    """The same with weights of a byte, in portable C."""

    name = "tinyml_dense_blocks_f32_s8"
    sources = ("dense/dense_blocks_f32_s8.c",)
    constraints = (float_tensors, constant_weights, steps_of_eight_bits)
    bits = 8

    def loop_counts(self, layer: Layer[Weighted], target: Target) -> Work | None:
        form = packed_form(layer.input(1).value, self.bits)
        _, zeros = form.bytes()
        rows, some = layer.output.elements // layer.output.shape[-1], bool(np.any(zeros))
        return {
            **float_counts.dense_one_by_one(layer),
            "blocks": layer.output.elements * form.blocks,
            "blocks with a zero": layer.output.elements * form.blocks * some,
            "elements summed": rows * form.steps.shape[1] * some,
        }


class PointwiseNibbles(DenseNibbles):
    """A convolution with one tap is a dense layer at every position."""

    constraints = (*DenseNibbles.constraints, one_tap)

    def overlays(self, layer: Layer[Any]) -> tuple[Overlay, ...]:
        return forwards(layer, copied=False)
