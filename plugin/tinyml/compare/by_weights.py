# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers with weights, compared by their weights: an integer layer with a float one between Dequantize and
Quantize, whatever the size of their tensors.

Around the float layer there may be movements of elements, which are followed element by element, and clamps.
A clamp is monotone, and so is rounding: round(clamp(v, a, b)) = clamp(round(v), round(a), round(b)). So
clamps are equal if their stored limits are, and they make no two values more different.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from tinyml.compare.chains import (
    At,
    Chain,
    chain_of,
    ends_alike,
    ends_in_order,
    gives_back,
    keeps_order,
    seen_by,
)
from tinyml.compare.parts import Cuts, Slice
from tinyml.ir import Array, Layer, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.shared.quant import NO_CLAMP, clamp_range, quant_of
from tinyml.ops.weighted.weighted import Weighted, channel_multipliers


def selects_the_same(mine: Slice, theirs: Slice, cuts: Cuts) -> bool:
    """Both select elements, one among stored integers and one among what Dequantize makes of them.

    Dequantize keeps their order, and Quantize gives the integers back.
    """
    a, b = chain_of(mine), chain_of(theirs)
    if a is None or b is None or len(b.layers) < 3:
        return False
    works = [i for i, layer in enumerate(a.layers) if not layer.op.movement]
    between = [i for i, layer in enumerate(b.layers[1:-1], 1) if not layer.op.movement]
    if len(works) != 1 or len(between) != 1:
        return False
    layer, other = a.layers[works[0]], b.layers[between[0]]
    ends = isinstance(b.layers[0].op, Dequantize) and isinstance(b.layers[-1].op, Quantize)
    if not ends or layer.op != other.op or sum(t is not None for t in layer.inputs) != 1:
        return False
    x, y = layer.input(0), layer.output
    return (
        not layer.op.elementwise  # those are enumerated
        and layer.op.selects(layer.inputs)
        and x.quant == y.quant
        and b.layers[0].input(0).quant == b.layers[-1].output.quant
        and gives_back(b.layers[0].input(0), b.layers[-1])
        and keeps_order(mine, theirs, cuts, At(a, works[0]), At(b, between[0]))
    )


def same_in_order(mine: Slice, theirs: Slice, cuts: Cuts) -> bool:
    """Both are one operator with the same constants, which sees the same elements in the same order."""
    both = [chain_of(part) for part in (mine, theirs)]
    if both[0] is None or both[1] is None:
        return False
    a, b = both[0], both[1]
    works = [[i for i, layer in enumerate(c.layers) if not layer.op.movement] for c in (a, b)]
    if len(works[0]) != 1 or len(works[1]) != 1:
        return False
    (i,), (j,) = works
    first, second = a.layers[i], b.layers[j]
    if first.op != second.op or len(first.inputs) != len(second.inputs):
        return False
    if _kind(first.output) != _kind(second.output) or _kind(first.input(0)) != _kind(second.input(0)):
        return False
    if first.op.elementwise and len(first.inputs) == 1 and _is_per_tensor(first):
        return ends_alike(mine, theirs, cuts, a, b)
    if first.input(0).shape != second.input(0).shape:
        return False
    pairs = zip(first.inputs[1:], second.inputs[1:], strict=True)
    return all(_is_equal(a, x, b, y) for x, y in pairs) and keeps_order(
        mine, theirs, cuts, At(a, i), At(b, j)
    )


def _kind(tensor: Tensor) -> tuple[object, ...]:
    return (tensor.dtype, tensor.quant)


def _is_per_tensor(layer: Layer) -> bool:
    return all(
        t is None or t.quant is None or not t.quant.per_channel for t in (*layer.inputs, *layer.outputs)
    )


def _is_equal(a: Chain, x: Tensor | None, b: Chain, y: Tensor | None) -> bool:
    if x is None or y is None:
        return x is y
    one, other = a.constant(x), b.constant(y)
    equal = one is not None and other is not None and np.array_equal(one, other)
    return equal and (x.dtype, x.quant) == (y.dtype, y.quant)


def apart_by_weights(mine: Slice, theirs: Slice, cuts: Cuts) -> float | None:
    """By how many steps the two can be apart before they round; None if they are of another form."""
    a, b = chain_of(mine), chain_of(theirs)
    if a is None or b is None:
        return None
    own = [i for i, layer in enumerate(a.layers) if not layer.op.movement]
    place = [i for i, layer in enumerate(b.layers) if isinstance(layer.op, Weighted)]
    if len(own) != 1 or len(place) != 1 or not isinstance(a.layers[own[0]].op, Weighted):
        return None
    layer, real = (cast(Layer[Weighted], c.layers[i]) for c, i in ((a, own[0]), (b, place[0])))
    here, there = At(a, own[0]), At(b, place[0])
    if not _has_form(b.layers, place[0]) or not ends_in_order(mine, cuts, here, there):
        return None
    seen, other = seen_by(mine, theirs, cuts, here, there)
    columns = None
    if not np.array_equal(seen, other):
        if not isinstance(layer.op, Dense) or not _is_one_row(seen, other):
            return None
        columns = np.argsort(other.reshape(-1))[np.argsort(np.argsort(seen.reshape(-1)))]
    if layer.op.real or _geometry(layer.op) != _geometry(real.op) or layer.input(0).quant is None:
        return None
    if layer.output.quant is None or layer.output.quant.per_channel or quant_of(layer.input(0)).per_channel:
        return None
    low, high = NO_CLAMP
    for one in b.layers[place[0] :]:
        if isinstance(one.op, Clamp | Weighted):
            low, high = max(low, one.op.limits[0]), min(high, one.op.limits[1])
    if clamp_range((low, high), layer.output) != clamp_range(layer.op.clamp, layer.output):
        return None
    return _apart(layer, real, b, columns)


def _is_one_row(seen: Array, other: Array) -> bool:
    """Two rows of the same elements, perhaps in another order."""
    rows = all(array.ndim > 0 and array.shape[-1] == array.size for array in (seen, other))
    return rows and np.array_equal(np.sort(seen.reshape(-1)), np.sort(other.reshape(-1)))


def _geometry(op: Weighted) -> Weighted:
    """The operator without what it says about clamps, integers and kernels."""
    plain = replace(op, few=False) if isinstance(op, Conv) else op
    return replace(plain, clamp=NO_CLAMP, round_once=False, single_scales=False, real=False)


def _has_form(layers: Sequence[Layer], place: int) -> bool:
    before, after = layers[1:place], layers[place + 1 : -1]
    return (
        isinstance(layers[0].op, Dequantize)
        and isinstance(layers[-1].op, Quantize)
        and all(one.op.movement for one in before)
        and all(one.op.movement or isinstance(one.op, Clamp) for one in after)
    )


def _apart(
    layer: Layer[Weighted], real: Layer[Weighted], chain: Chain, columns: Array | None
) -> float | None:
    """The sum of all differences of weights, over the range of the input, and those of the bias.

    ``columns``: which weights of the float layer belong to those of the other, if their order differs.
    """
    x, w, step = layer.input(0), layer.input(1), quant_of(layer.output).scale
    weights = chain.constant(real.input(1))
    if not w.is_constant or w.quant is None or weights is None or weights.shape != w.shape:
        return None
    if columns is not None:
        weights = weights[:, columns]
    multiplier, shift = (part.astype(np.float64) for part in channel_multipliers(layer))
    factors = np.asarray(multiplier * 2.0 ** (shift - 31))
    axis = layer.op.channel_axis % len(w.shape)
    along = [-1 if i == axis else 1 for i in range(len(w.shape))]
    zeros = np.asarray(quant_of(w).zero_points, np.float64)
    if zeros.size not in (1, w.shape[axis]):
        return None
    stored = w.value.astype(np.float64) - (zeros if zeros.size == 1 else zeros.reshape(along))
    own = stored * (factors if factors.size == 1 else factors.reshape(along))
    other = weights.astype(np.float64) * quant_of(x).scale / step
    low, high = x.dtype.limits
    far = max(high - quant_of(x).zero_point, quant_of(x).zero_point - low)
    rest = tuple(i for i in range(len(w.shape)) if i != axis)
    worst = np.abs(own - other).sum(axis=rest) * far
    mine_bias = layer.input(2).value.reshape(-1) * factors if layer.has_input(2) else np.zeros(1)
    their_bias: Array | None = np.zeros(1)
    if real.has_input(2):
        their_bias = chain.constant(real.input(2))
    if their_bias is None:
        return None
    difference = mine_bias - their_bias.reshape(-1).astype(np.float64) / step
    return float((worst + np.abs(difference)).max(initial=0.0))
