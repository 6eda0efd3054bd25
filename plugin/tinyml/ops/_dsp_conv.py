"""Convolutions on cores with DSP instructions."""

from __future__ import annotations

import numpy as np

from tinyml import c
from tinyml.ir import Layer
from tinyml.kernel import Cost, Kernel, Library, Sheet
from tinyml.ops._cmsis_conv import pointwise
from tinyml.ops._conv_records import (
    constant_weights,
    folded_bias,
    geometry,
    int8_tensors,
    limits,
    one_weight_zero,
    small_extents,
)
from tinyml.ops._convolution import convolution
from tinyml.ops._dsp import filter_stream, right_shifts
from tinyml.ops._quant import output_multipliers
from tinyml.targets import Target

TOGETHER = 2  # filters that meet two windows


class ConvDsp(Kernel):
    """Two windows meet two filters at a time, four elements of each."""

    name = "tinyml_conv_dsp_s8"
    library = Library.PORTABLE
    sources = ("conv_dsp_s8.c",)
    cost = Cost(dsp=(1.02, 19), mve=(1.02, 19))
    constraints = (int8_tensors, constant_weights, one_weight_zero, small_extents, right_shifts)

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def scratch_bytes(self, layer: Layer, target: Target) -> int:
        """Two columns of int16; where pixels are not whole words, also one of bytes."""
        column = -(-int(np.prod(layer.input(1).shape[1:])) // 4) * 4
        return (4 if layer.input(1).shape[3] % 4 == 0 else 5) * column

    def overwrites(self, layer: Layer) -> tuple[int, ...]:
        """A 1x1 convolution reads every position before it writes there, the last first if it widens."""
        return (0,) if pointwise(layer) and convolution(layer).strides == (1, 1) else ()

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        x, w, y = layer.input(0), layer.input(1), layer.output
        groups = x.shape[3] // w.shape[3]
        filters = filter_stream(
            w.value, folded_bias(layer, w.value), output_multipliers(layer), TOGETHER, groups
        )
        sheet.include("<tinyml/conv.h>")
        members = {
            **geometry(layer),
            **limits(layer),
            ".weights": f"(const int8_t *){sheet.table('filters', filters)}",
            ".groups": groups,
            ".from_the_end": c.boolean(pointwise(layer) and y.shape[3] > x.shape[3]),
        }
        name = sheet.record("struct tinyml_conv_s8", "params", members)
        sheet.line(f"{self.name}(&{name}, {sheet.x()}, {sheet.y()}, {sheet.scratch});")
