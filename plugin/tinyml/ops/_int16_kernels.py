"""Convolutions and dense layers with int16 activations and int8 weights: sums of 64 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tinyml import c
from tinyml.ir import Array, DType, Layer
from tinyml.kernel import Kernel, Library, Sheet
from tinyml.ops._conv_records import constant_weights, geometry, small_extents
from tinyml.ops._convolution import Convolution, convolution
from tinyml.ops._quant import Multipliers, clamp_range, output_multipliers, per_channel, words_and_bytes
from tinyml.targets import Target

if TYPE_CHECKING:
    from tinyml.ops.dense import Dense


def words_by_bytes(layer: Layer) -> bool:
    """Input and output are int16, weights int8, all with zero points of 0."""
    return words_and_bytes(layer.input(0), layer.input(1), layer.output)


def wide_bias(layer: Layer) -> bool:
    """The bias is int64."""
    return not layer.has_input(2) or layer.input(2).dtype is DType.INT64


def small_factors(layer: Layer) -> bool:
    """From sums to outputs, scales shrink, or grow less than 2**14 times."""
    return bool(np.max(output_multipliers(layer)[1]) <= 14)


def _scales(
    layer: Layer, sheet: Sheet, op: Convolution | Dense, channels: int, scales: Multipliers
) -> dict[str, object]:
    """Members that all of these records have."""
    low, high = clamp_range(op.clamp, layer.output)
    bias = sheet.table("bias", layer.input(2).value.reshape(-1)) if layer.has_input(2) else "NULL"
    return {
        ".bias": bias,
        ".multiplier": sheet.table("multiplier", per_channel(scales[0], channels)),
        ".shift": sheet.table("shift", per_channel(scales[1], channels).astype(np.int8)),
        ".out_min": low,
        ".out_max": high,
        ".round_once": c.boolean(op.round_once),
    }


class ConvInt16(Kernel):
    """Any groups and dilations, in portable C."""

    name = "tinyml_conv_s16"
    library = Library.PORTABLE
    sources = ("conv_s16.c",)
    constraints = (words_by_bytes, wide_bias, constant_weights, small_factors, small_extents)

    def scratch_bytes(self, layer: Layer, target: Target) -> int:
        """What one filter sees."""
        return 2 * self.filters(layer)[0].size

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op = convolution(layer)
        weights = self.filters(layer)
        sheet.include("<tinyml/conv_s16.h>")
        members = {
            **geometry(layer),
            ".groups": layer.input(0).shape[3] // weights.shape[3],
            ".weights": sheet.table("weights", weights),
            **_scales(layer, sheet, op, weights.shape[0], output_multipliers(layer)),
        }
        name = sheet.record("struct tinyml_conv_s16", "params", members)
        sheet.line(f"tinyml_conv_s16(&{name}, {sheet.x()}, {sheet.y()}, {sheet.scratch});")

    def filters(self, layer: Layer) -> Array:
        """Weights with the output channels first."""
        return layer.input(1).value


class DepthwiseConvInt16(ConvInt16):
    """A convolution in which every input channel is a group."""

    def filters(self, layer: Layer) -> Array:
        return np.ascontiguousarray(np.transpose(layer.input(1).value, (3, 1, 2, 0)))


class DenseInt16(Kernel):
    """Matrix-vector products in portable C."""

    name = "tinyml_dense_s16"
    library = Library.PORTABLE
    sources = ("dense_s16.c",)
    constraints = (words_by_bytes, wide_bias, constant_weights, small_factors)

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        from tinyml.ops.dense import Dense, multipliers

        assert isinstance(layer.op, Dense)
        outputs, inputs = layer.input(1).shape
        sheet.include("<tinyml/conv_s16.h>")
        members = {
            ".rows": layer.output.elements // outputs,
            ".inputs": inputs,
            ".outputs": outputs,
            ".weights": sheet.table("weights", layer.input(1).value),
            **_scales(layer, sheet, layer.op, outputs, multipliers(layer)),
        }
        name = sheet.record("struct tinyml_dense_s16", "params", members)
        sheet.line(f"tinyml_dense_s16(&{name}, {sheet.x()}, {sheet.y()});")
