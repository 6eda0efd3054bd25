# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Code shared by Dense and the convolutions: from sums of products to outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Constraint, DType, Layer, Op, Tensor, given
from tinyml.ops.shared.clamped import Clamped
from tinyml.ops.shared.operands import not_empty, optional, plain_bias, present
from tinyml.ops.shared.quant import (
    Multipliers,
    centred,
    int16_and_int8,
    integer_bias,
    is_quantized,
    output_multipliers,
    per_channel,
    quant_of,
    requantize,
)


def per_output_channel(layer: Layer[Weighted]) -> bool:
    """The weights are quantised per tensor or per output channel."""
    quant = layer.input(1).quant
    return quant is None or quant.axis in (None, layer.op.channel_axis)


def one_bias_per_channel(layer: Layer[Weighted]) -> bool:
    """The bias has one element for each output channel of the weights."""
    return plain_bias(optional(layer, 2), layer.input(1).shape[layer.op.channel_axis])


@dataclass(frozen=True, kw_only=True)
class Weighted(Clamped):
    """y = clamp(sums of x times weights + bias), channels last. Inputs: x, weights, optional bias."""

    operands: ClassVar[tuple[Constraint, ...]] = (
        present(2),
        not_empty(1),
        per_output_channel,
        one_bias_per_channel,
    )
    round_once: bool = False  # else twice, as TensorFlow Lite does
    single_scales: bool = False  # the scales of x and weights are multiplied in float32, see scale_product()
    real: bool = False  # the sums of integers become real numbers, to which a real bias is added

    @property
    @abstractmethod
    def channel_axis(self) -> int:
        """The axis of the weights that counts output channels."""

    depends_on_cpu: ClassVar[bool] = True
    has_integer_sums: ClassVar[bool] = False  # there are kernels for ``real``
    mixes_channels: ClassVar[bool] = True  # else an output channel reads one input channel alone

    @property
    def sums_all_inputs(self) -> bool:
        """Whether every output is one sum over the whole window, and over all channels if it mixes them.

        Then a factor, an offset or a constant of an input channel can move into weights and bias.
        """
        return False

    @property
    def reads_padding(self) -> bool:
        """Whether zeros around the input take part in sums."""
        return False

    def at_one_position(self) -> Weighted:
        """The operator on an input with one spatial position, and weights with one tap."""
        return self

    @abstractmethod
    def accumulate(self, x: Array, weights: Array) -> Array:
        """The sums before bias and clamp."""

    def multipliers(self, layer: Layer) -> Multipliers:
        """From sums to outputs."""
        return output_multipliers(layer, self.single_scales)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, w = centred(layer, inputs, 0), centred(layer, inputs, 1, channel_axis=self.channel_axis)
        sums = self.accumulate(x, w)
        if self.real:
            return (self._scaled(layer, sums, given(inputs, 2) if layer.has_input(2) else None),)
        if layer.has_input(2):
            bias = given(inputs, 2)
            sums = sums + (np.clip(bias, -(1 << 62), 1 << 62) if bias.dtype == np.int64 else bias)
        if layer.input(0).quant is not None:
            return (requantize(sums, layer, self.multipliers(layer), self.clamp, self.round_once),)
        return (np.clip(sums, *self.clamp).astype(layer.output.dtype.numpy),)

    def _scaled(self, layer: Layer, sums: Array, bias: Array | None) -> Array:
        """Sums of integers as real numbers: three roundings to float32 after sums that are exact."""
        y: Array = sums.astype(np.float32) * real_scales(layer)
        y = y if bias is None else y + bias.astype(np.float32)
        return np.clip(y, *np.asarray(self.clamp, np.float32)).astype(np.float32)

    def result_type(self, x: Tensor) -> DType:
        """The element type of the output for an input ``x``."""
        return DType.FLOAT32 if self.real else x.dtype

    def macs(self, layer: Layer) -> int:
        weights = layer.input(1)
        return layer.output.elements * weights.elements // weights.shape[self.channel_axis]

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        """On int8, or on int16 activations with int8 weights; rounded once, as in ONNX.

        Layers stay float if a filter's scale is so small that its bias does not fit into the sums, or if
        filters have several zero points.
        """
        bytes_only = all(is_quantized(t, DType.INT8, DType.UINT8) for t in (*inputs[:2], outputs[0]))
        if not bytes_only and not int16_and_int8(given(inputs, 0), given(inputs, 1), outputs[0]):
            return None
        bias = integer_bias(inputs)
        if bias is None or len(set(quant_of(given(inputs, 1)).zero_points)) > 1:
            return None
        return replace(self, round_once=True), [*inputs[:2], *bias]

    def integer_sums(self, x: Tensor, w: Tensor) -> Weighted | None:
        """The operator on int8 whose sums become real numbers; None if there is none or sums may overflow."""
        plain = is_quantized(x, DType.INT8) and is_quantized(w, DType.INT8) and w.is_constant
        if not self.has_integer_sums or not plain or quant_of(x).per_channel:
            return None
        if quant_of(w).axis not in (None, self.channel_axis) or len(set(quant_of(w).zero_points)) > 1:
            return None
        fits = largest_sums(self, x, w).max(initial=0) <= np.iinfo(np.int32).max
        return replace(self, real=True) if fits else None


def largest_sums(op: Weighted, x: Tensor, w: Tensor) -> Array:
    """Per output channel, what the products of stored integers add up to at most, whatever the input is."""
    channels = w.shape[op.channel_axis]
    zero = max(abs(zero) for zero in quant_of(w).zero_points)
    if w.is_constant:
        rows = np.moveaxis(w.value, op.channel_axis, 0).reshape(channels, -1).astype(np.float64)
        sizes: Array = (np.abs(rows) + zero).sum(axis=1)
    else:
        sizes = np.full(channels, w.elements // channels * (-w.dtype.limits[0] + zero), np.float64)
    return sizes * (-x.dtype.limits[0] + abs(quant_of(x).zero_point))


def real_scales(layer: Layer) -> Array:
    """From sums of integers to real numbers, one for each output channel."""
    scales = quant_of(layer.input(0)).scale * np.asarray(quant_of(layer.input(1)).scales, np.float64)
    return per_channel(scales.astype(np.float32), layer.output.shape[-1])


def channel_multipliers(layer: Layer[Weighted]) -> Multipliers:
    """From sums to outputs, for every output channel."""
    channels = layer.output.shape[-1]
    multiplier, shift = layer.op.multipliers(layer)
    return per_channel(multiplier, channels), per_channel(shift, channels)


def largest_shift(layer: Layer[Weighted]) -> int:
    """The n for which the largest factor from sums to outputs is below 2**n, and not below half of that."""
    return int(np.max(layer.op.multipliers(layer)[1]))
