# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the kernels of float pools with vectors share: which layers they take, and the record of one."""

from __future__ import annotations

from typing import Any

from tinyml.ir import Constraint, DType, Layer
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.pool.windows import two_spatial_axes
from tinyml.ops.weighted.records import window_members

FEWEST_CHANNELS = 3
"""Of four at a time with Helium: fewer take more instructions than loops over single channels."""


def of_floats(layer: Layer[Any]) -> bool:
    """Input and output are float32."""
    return layer.input(0).dtype is layer.output.dtype is DType.FLOAT32


def several_channels(layer: Layer[Any]) -> bool:
    """The input has three channels or more."""
    return layer.input(0).shape[-1] >= FEWEST_CHANNELS


float_vectors: tuple[Constraint, ...] = (of_floats, two_spatial_axes, several_channels)


def pool_record(layer: Layer[Any], sheet: Sheet, divisor: float | None = None) -> dict[str, object]:
    """Members of struct tinyml_pool_f32, or of the player's; ``divisor``: of means."""
    op = layer.op
    return {
        **window_members(layer, op.kernel, op.strides, op.dilations, op.pads),
        **({} if divisor is None else {".divisor": sheet.number(divisor)}),
        ".out_min": sheet.number(op.clamp[0]),
        ".out_max": sheet.number(op.clamp[1]),
    }
