# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Two filters in one int16: the layout, and the proof that it is exact, at its limits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.pair_layers import FIRST, LIMIT, limited_layer, only_layer, single_layer
from tinyml.ir import Array
from tinyml.kernel import Library
from tinyml.ops.conv.conv import Conv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.shared.quant import quant_of
from tinyml.ops.weighted.pairs import pair_stream, pairs_are_exact, sum_limits
from tinyml.select import select
from tinyml.targets import find_target


def kernel_of(name: str) -> str:
    graph = limited_layer(name)
    (chosen,) = select(graph, find_target("cortex-m4"), frozenset((Library.GENERATED, Library.PORTABLE)))
    return chosen.kernel.name


@pytest.mark.parametrize(
    "name,expected",
    [
        ("largest", "pairs"),  # the largest sum that a pair allows
        ("smallest", "pairs"),
        ("too_large", "dsp"),  # one more
        ("too_small", "dsp"),
        ("second_filter_large", "pairs"),  # only the first of a pair is limited
        ("least_weight_above", "pairs"),  # -128 over a weight that is not negative fits
        ("least_weight", "dsp"),
    ],
)
@pytest.mark.parametrize("kind", ["conv", "dense"])
def test_layers_at_the_limit(kind: str, name: str, expected: str) -> None:
    assert kernel_of(f"{kind}_{name}") == f"tinyml_{kind}_{expected}_s8"


def test_limits_are_reached() -> None:
    """The bound is that of some input, not more: what the layer computes there is the bound."""
    graph = limited_layer("conv_largest")
    layer = only_layer(graph)
    low, high = sum_limits(layer)
    assert high[FIRST] == LIMIT - 1
    weights = layer.input(1).value[FIRST].reshape(-1).astype(np.int64)
    zero = quant_of(layer.input(0)).zero_point
    best = np.where(weights > 0, 127, -128) - zero
    bias = int(layer.input(2).value[FIRST])
    assert int(best @ weights) + bias == high[FIRST]
    worst = np.where(weights > 0, -128, 127) - zero
    assert int(worst @ weights) + bias == low[FIRST]


@pytest.mark.parametrize("channels,groups", [(1, 1), (2, 1), (3, 1), (7, 1), (8, 1), (10, 2), (6, 3)])
def test_stream_can_be_read_back(channels: int, groups: int) -> None:
    """A reader of the documented layout finds all weights, biases, factors and exponents."""
    rng = np.random.default_rng(1)
    filters = rng.integers(-127, 128, (channels, 1, 1, 6)).astype(np.int8)
    bias = rng.integers(-1000, 1000, channels).astype(np.int32)
    multipliers = (rng.integers(2**30, 2**31 - 1, channels).astype(np.int32), np.full(channels, -5, np.int32))
    words = list(pair_stream(filters, bias, multipliers, groups))

    def take(count: int) -> Array:
        taken, words[:count] = np.array(words[:count], np.int32), []
        return taken

    each, found = channels // groups, []
    for _ in range(groups):
        left = each
        while left > 0:
            size = 4 if left > 2 else 2
            biases = take(size)
            halves = take(size * 2).view(np.int16).reshape(2, 2, size // 2, 2).astype(np.int64)
            factors, exponents = take(size).view(np.uint32), take(1).view(np.int8)
            elements = halves.transpose(2, 0, 3, 1).reshape(size // 2, 8)  # by four: 0 2, 1 3
            second = (elements + 128) % 256 - 128
            first = (elements - second) // 256
            both = np.stack([first, second], axis=1).reshape(size, 8)
            found += list(zip(both, biases, factors, exponents, strict=False))[:left]
            left -= size
    assert not words
    for channel, (weights, b, factor, exponent) in enumerate(found):
        np.testing.assert_array_equal(weights[:6], filters[channel].reshape(-1))
        assert not weights[6:].any()
        assert (b, factor, exponent) == (bias[channel], 2 * int(multipliers[0][channel]), 4)


def test_odd_filters_are_first_of_their_pair() -> None:
    """A last filter without a partner is the one whose sums are limited."""
    assert not pairs_are_exact(single_layer(Conv(), bias=LIMIT))
    assert pairs_are_exact(single_layer(Conv(), bias=0))
    assert not pairs_are_exact(single_layer(Dense(), bias=-2 * LIMIT))
