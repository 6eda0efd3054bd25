# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Code shared by Dense and the convolutions: from sums of products to outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

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

    @property
    @abstractmethod
    def channel_axis(self) -> int:
        """The axis of the weights that counts output channels."""

    depends_on_cpu: ClassVar[bool] = True
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
        if layer.has_input(2):
            bias = given(inputs, 2)
            sums = sums + (np.clip(bias, -(1 << 62), 1 << 62) if bias.dtype == np.int64 else bias)
        if layer.input(0).quant is not None:
            return (requantize(sums, layer, self.multipliers(layer), self.clamp, self.round_once),)
        return (np.clip(sums, *self.clamp).astype(layer.output.dtype.numpy),)

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


def channel_multipliers(layer: Layer[Weighted]) -> Multipliers:
    """From sums to outputs, for every output channel."""
    channels = layer.output.shape[-1]
    multiplier, shift = layer.op.multipliers(layer)
    return per_channel(multiplier, channels), per_channel(shift, channels)


def largest_shift(layer: Layer[Weighted]) -> int:
    """The n for which the largest factor from sums to outputs is below 2**n, and not below half of that."""
    return int(np.max(layer.op.multipliers(layer)[1]))
