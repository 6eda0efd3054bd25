# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers on int8 whose sums become real numbers: those whose result a quantised model does not quantise."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, DType, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Kernel, Library, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.quant import is_quantized, quant_of
from tinyml.ops.weighted import float_counts
from tinyml.ops.weighted.records import (
    constant_weights,
    float_limits,
    folded_bias,
    geometry,
    in_zero,
    one_weight_zero,
    small_extents,
    weight_zero,
)
from tinyml.ops.weighted.walked import windows_of
from tinyml.ops.weighted.weighted import Weighted, real_scales

ZERO_WORDS = "for each output, what the zero points of input and weights add to the sums"


def int8_to_float(layer: Layer[Weighted]) -> bool:
    """Input and weights are int8, quantised; the output is float32."""
    integers = all(is_quantized(t, DType.INT8) for t in layer.inputs[:2])
    return layer.op.real and integers and layer.output.dtype is DType.FLOAT32


def one_tap(layer: Layer[Convolution]) -> bool:
    """The kernel is 1x1 without strides, padding and groups."""
    op, weights = layer.op, layer.input(1).shape
    plain = op.strides == (1, 1) and not any(op.pads)
    return plain and weights[1:] == (1, 1, layer.input(0).shape[3])


def _filters(layer: Layer[Weighted], sheet: Sheet, filters: Array) -> dict[str, object]:
    """Members of struct tinyml_filters_to_f32, which is called ``filters``."""
    without_bias = Layer(layer.name, layer.op, layer.inputs[:2], layer.outputs)
    members = {
        "weights": sheet.table("weights", filters),
        "zeros": sheet.table("zeros", folded_bias(without_bias, filters), holds=ZERO_WORDS),
        "scales": sheet.table("scales", real_scales(layer)),
        **{name.removeprefix("."): value for name, value in float_limits(layer, sheet).items()},
        "inputs": filters[0].size,
        **{name.removeprefix("."): value for name, value in weight_zero(layer).items()},
    }
    return {f".filters.{name}": value for name, value in members.items()}


class DenseIntoFloat(Kernel[Weighted]):
    """Products of int8 with exact sums, scaled to float."""

    name = "tinyml_dense_s8_to_f32"
    library = Library.PORTABLE
    sources = ("dense/dense_s8_to_f32.c", "weighted/filters_s8_to_f32.c")
    constraints: ClassVar[tuple[Constraint, ...]] = (int8_to_float, constant_weights, one_weight_zero)

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        sheet.include("<tinyml/to_f32.h>")
        outputs = layer.output.shape[-1]
        filters = layer.input(1).value.reshape(outputs, -1)
        members = {
            ".rows": layer.output.elements // outputs,
            ".outputs": outputs,
            **_filters(layer, sheet, filters),
        }
        name = sheet.record("struct tinyml_dense_s8_to_f32", "params", members)
        sheet.call("tinyml_dense_s8_to_f32", name, sheet.x(), sheet.y())

    def loop_counts(self, layer: Layer[Weighted], target: Target) -> Work | None:
        outputs, zero = layer.output.shape[-1], bool(quant_of(layer.input(1)).zero_points[0])
        return float_counts.into_float(
            layer, layer.output.elements // outputs, layer.input(1).elements // outputs, outputs, zero
        )


class PointwiseIntoFloat(DenseIntoFloat):
    """A convolution with one tap is a dense layer at every position."""

    constraints = (int8_to_float, constant_weights, one_weight_zero, one_tap)


class ConvIntoFloat(Kernel[Convolution]):
    """The same for convolutions with any groups and dilations."""

    name = "tinyml_conv_s8_to_f32"
    library = Library.PORTABLE
    sources = ("conv/conv_s8_to_f32.c", "weighted/filters_s8_to_f32.c")
    constraints = (int8_to_float, constant_weights, one_weight_zero, small_extents)

    def scratch_bytes(self, layer: Layer[Convolution], target: Target) -> int:
        """What one filter sees."""
        return int(self.filters(layer)[0].size)

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        sheet.include("<tinyml/to_f32.h>")
        filters = self.filters(layer)
        members = {
            **geometry(layer),
            ".groups": layer.input(0).shape[3] // filters.shape[3],
            **in_zero(layer),
            **_filters(layer, sheet, filters),
        }
        name = sheet.record("struct tinyml_conv_s8_to_f32", "params", members)
        sheet.call("tinyml_conv_s8_to_f32", name, sheet.x(), sheet.y(), sheet.scratch)

    def filters(self, layer: Layer[Convolution]) -> Array:
        """Weights with the output channels first."""
        return layer.input(1).value

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        groups = layer.input(0).shape[3] // self.filters(layer).shape[3]
        return float_counts.windows_into_float(
            layer, windows_of(layer, groups), bool(quant_of(layer.input(1)).zero_points[0])
        )


class DepthwiseIntoFloat(ConvIntoFloat):
    """A convolution in which every input channel is a group."""

    def filters(self, layer: Layer[Convolution]) -> Array:
        return np.ascontiguousarray(np.transpose(layer.input(1).value, (3, 1, 2, 0)))
