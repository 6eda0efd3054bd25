# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Calling CMSIS-NN: its parameter structures, and what its functions require of a layer.

Functions are called directly instead of through the library's wrappers: the right one is known at compile
time, and the others do not end up in flash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from tinyml.ir import Array, Layer
from tinyml.ops.framework.kernel import Kernel, Library, Sheet
from tinyml.ops.shared.quant import Clamp, clamp_range, quant_of
from tinyml.ops.shared.window import Pads, Pair
from tinyml.ops.weighted.weighted import Weighted, channel_multipliers

HEADER = "<arm_nnfunctions.h>"
HEADER_ONCE = "<tinyml/cmsis_nn_once.h>"  # the same functions, built to round once
CONVOLUTION = "Source/ConvolutionFunctions"
SUPPORT = "Source/NNSupportFunctions"
NEEDED_BY_ONCE = (  # what runtime/cmsis_nn/cmsis_nn_once.c calls without a rounding in it
    f"{CONVOLUTION}/arm_convolve_get_buffer_sizes_s8.c",
    f"{CONVOLUTION}/arm_depthwise_conv_get_buffer_sizes_s8.c",
    f"{SUPPORT}/arm_q7_to_q15_with_offset.c",
    f"{SUPPORT}/arm_s8_to_s16_unordered_with_offset.c",
)


def header(layer: Layer[Weighted]) -> str:
    """The header that declares the functions with the rounding that the layer requires."""
    return HEADER_ONCE if layer.op.round_once else HEADER


W = TypeVar("W", bound=Weighted, contravariant=True)


class RoundingKernel(Kernel[W]):
    """A kernel of CMSIS-NN that rescales its results: it exists with one rounding and with two."""

    library = Library.CMSIS_NN

    def runtime_sources(self, layer: Layer[W]) -> tuple[str, ...]:
        return ("cmsis_nn/cmsis_nn_once.c",) if header(layer) == HEADER_ONCE else ()

    def cmsis_nn_sources(self, layer: Layer[W]) -> tuple[str, ...]:
        return NEEDED_BY_ONCE if header(layer) == HEADER_ONCE else self.sources


LARGEST_OUTPUT = 1 << 30
"""Of rescaled sums: the library computes them in 32 bits, and adds the zero point before it limits them."""


def moderate_outputs(layer: Layer[Weighted]) -> bool:
    """Accumulators times the rescaling factor stay below 2³⁰ for every input."""
    _, shift = channel_multipliers(layer)
    if shift.max() < 0:
        return True
    filters = np.moveaxis(layer.input(1).value, layer.op.channel_axis, 0).astype(np.int64)
    most = 255 * np.abs(filters.reshape(len(filters), -1)).sum(axis=1)
    if layer.has_input(2):
        most = most + np.abs(layer.input(2).value.reshape(-1).astype(np.int64))
    return bool(np.all(most * 2.0**shift < LARGEST_OUTPUT))


def dims(sheet: Sheet, suffix: str, n: int, h: int, w: int, c: int) -> str:
    """A constant cmsis_nn_dims; returns its name."""
    return sheet.record("cmsis_nn_dims", suffix, {".n": n, ".h": h, ".w": w, ".c": c})


def shape_dims(sheet: Sheet, suffix: str, shape: Sequence[int]) -> str:
    n, h, w, c = shape
    return dims(sheet, suffix, n, h, w, c)


def activation(clamp: Clamp, layer: Layer) -> dict[str, object]:
    low, high = clamp_range(clamp, layer.output)
    return {".activation.min": low, ".activation.max": high}


def offsets(layer: Layer) -> dict[str, object]:
    """CMSIS-NN adds offsets: the input's is the negative of its zero point."""
    return {
        ".input_offset": -quant_of(layer.input(0)).zero_point,
        ".output_offset": quant_of(layer.output).zero_point,
    }


def window_params(
    layer: Layer, strides: Pair, dilations: Pair, pads: Pads, clamp: Clamp
) -> dict[str, object]:
    """Members that convolution parameters have in common."""
    return {
        **offsets(layer),
        ".stride.h": strides[0],
        ".stride.w": strides[1],
        ".padding.h": pads[0],
        ".padding.w": pads[1],
        ".dilation.h": dilations[0],
        ".dilation.w": dilations[1],
        **activation(clamp, layer),
    }


def channel_quant(layer: Layer[Weighted], sheet: Sheet) -> str:
    """A constant cmsis_nn_per_channel_quant_params; its members lack a const that they deserve."""
    multiplier, shift = channel_multipliers(layer)
    return sheet.record(
        "cmsis_nn_per_channel_quant_params",
        "quant",
        {
            ".multiplier": f"(int32_t *){sheet.table('multiplier', multiplier)}",
            ".shift": f"(int32_t *){sheet.table('shift', shift)}",
        },
    )


def bias_table(layer: Layer, sheet: Sheet) -> str:
    if not layer.has_input(2):
        return "NULL"
    return sheet.table("bias", layer.input(2).value.astype(np.int32).reshape(-1))


def context(sheet: Sheet, scratch_bytes: int) -> str:
    """A cmsis_nn_context around the scratch memory; returns the expression for its address."""
    sheet.include("<stddef.h>")
    if scratch_bytes:
        sheet.line(f"const cmsis_nn_context context = {{{sheet.scratch}, {scratch_bytes}}};")
    else:
        sheet.line("const cmsis_nn_context context = {NULL, 0};")
    return "&context"


def convolution_call(
    layer: Layer[Weighted],
    sheet: Sheet,
    function: str,
    params: str,
    filter_dims: str,
    scratch_bytes: int,
    upscale: bool = False,
    packed: Array | None = None,
) -> None:
    """The call that all convolution functions share; ``upscale`` is an argument of one of them.

    ``packed``: the weights as the function reads them, if that is not a byte each.
    """
    sheet.include(header(layer))
    quant = channel_quant(layer, sheet)
    weights = sheet.table("weights", layer.input(1).value if packed is None else packed)
    arguments = [
        context(sheet, scratch_bytes),
        f"&{params}",
        f"&{quant}",
        f"&{shape_dims(sheet, 'in_dims', layer.input(0).shape)}",
        sheet.x(),
        f"&{filter_dims}",
        weights,
        f"&{dims(sheet, 'bias_dims', 1, 1, 1, layer.output.shape[3])}",
        bias_table(layer, sheet),
        *(["NULL"] if upscale else []),
        f"&{shape_dims(sheet, 'out_dims', layer.output.shape)}",
        sheet.y(),
    ]
    sheet.line(f"(void){function}({', '.join(arguments)});")
