# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Small weights times powers of two, so that outputs are smaller than sums, as most kernels require.

With weights and bias of a channel times 2**k, sums are 2**k times as large and the shift to the left is less
by k. With two roundings, all shifts to the left happen before the first rounding and there is no second one,
so a shift of 0 gives the same outputs; with one rounding, so does every shift.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from tinyml.ir import Array, Layer, Quant, Tensor
from tinyml.ops.shared.quant import per_channel, quant_of
from tinyml.ops.weighted.weighted import Weighted, channel_multipliers

LARGEST_BIAS = 1 << 28
WeightedT = TypeVar("WeightedT", bound=Weighted)


def doublings(layer: Layer[Weighted]) -> Array:
    """The k of each channel."""
    _, shift = channel_multipliers(layer)
    found: Array = np.maximum(shift + (1 if layer.op.round_once else 0), 0).astype(np.int64)
    return found


def scaled(layer: Layer[WeightedT]) -> Layer[WeightedT]:
    """The layer with larger weights, or as it is if they would not fit into bytes."""
    weights, axis = layer.input(1), layer.op.channel_axis
    channels = weights.shape[axis]
    more = doublings(layer)
    factor = 1 << np.minimum(more, 16)
    along = factor.reshape([-1 if i == axis else 1 for i in range(len(weights.shape))])
    values = (weights.value.astype(np.int64) - quant_of(weights).zero_points[0]) * along
    bias = layer.input(2).value.astype(np.int64).reshape(-1) * factor if layer.has_input(2) else np.zeros(1)
    if not more.any() or np.abs(values).max() > 127 or np.abs(bias).max() > LARGEST_BIAS:
        return layer
    scales = per_channel(np.asarray(quant_of(weights).scales, np.float64), channels) / factor
    quant = Quant(tuple(scales.tolist()), (0,) * channels, axis)
    inputs = [layer.inputs[0], Tensor.constant(weights.name, values.astype(np.int8), quant)]
    if layer.has_input(2):
        inputs.append(Tensor.constant(layer.input(2).name, bias.astype(np.int32)))
    return replace(layer, inputs=tuple(inputs))
