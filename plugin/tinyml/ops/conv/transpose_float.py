# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float transposed convolutions as convolutions: one for each remainder of a position after the stride."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Protocol

from tinyml.base import c
from tinyml.ir import Layer
from tinyml.ops.conv.phases import phases
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.weighted.float16_weights import float16_table
from tinyml.ops.weighted.records import TILE_WORDS, float_limits, float_tiles
from tinyml.ops.weighted.weighted import Weighted


class Strided(Protocol):
    """What a transposed convolution is described by."""

    @property
    def strides(self) -> Sequence[int]: ...
    @property
    def pads(self) -> Sequence[int]: ...


def emit_phases(layer: Layer[Weighted], sheet: Sheet, op: Strided, float16: bool = False) -> None:
    """A call of tinyml_conv_apart_f32 for each phase of rows and each of columns."""
    function = "tinyml_conv_apart_f32_f16" if float16 else "tinyml_conv_apart_f32"
    x, y, w = layer.input(0).shape, layer.output.shape, layer.input(1).value
    sheet.include("<tinyml/half_weights.h>" if float16 else "<tinyml/conv.h>")
    limits = float_limits(layer, sheet)
    axes = [list(phases(op.strides[a], op.pads[a], w.shape[1 + a], y[1 + a])) for a in range(2)]
    for number, (rows, columns) in enumerate(product(*axes)):
        tiles, table = float_tiles(w[:, rows.taps][:, :, columns.taps]), f"weights{number}"
        weights = (
            float16_table(sheet, table, tiles, TILE_WORDS)
            if float16
            else sheet.table(table, tiles, holds=TILE_WORDS)
        )
        members = {
            ".conv.window.batches": 1,
            ".conv.window.in_h": x[1],
            ".conv.window.in_w": x[2],
            ".conv.window.in_c": x[3],
            ".conv.window.out_h": rows.outputs,
            ".conv.window.out_w": columns.outputs,
            ".conv.window.out_c": y[3],
            ".conv.window.kernel_h": len(rows.taps),
            ".conv.window.kernel_w": len(columns.taps),
            ".conv.window.stride_h": 1,
            ".conv.window.stride_w": 1,
            ".conv.window.dilation_h": 1,
            ".conv.window.dilation_w": 1,
            ".conv.window.pad_top": rows.pad,
            ".conv.window.pad_left": columns.pad,
            ".conv.weights": weights,
            **{f".conv{member}": value for member, value in limits.items()},
            ".conv.groups": 1,
            ".conv.from_the_end": c.boolean(False),
            ".step": op.strides[1] * y[3],
            ".line": op.strides[0] * y[2] * y[3],
        }
        name = sheet.record(f"struct {function}", f"params{number}", members)
        place = (rows.first * y[2] + columns.first) * y[3]
        sheet.call(function, name, sheet.x(), sheet.element(sheet.y(), place, 0))
