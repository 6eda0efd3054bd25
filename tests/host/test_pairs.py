# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Two filters in one int16: the layout, and the proof that it is exact, at its limits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.pair_layers import FIRST, LIMIT, limited_layer, only_layer, single_layer
from tinyml.cores.targets import find_target
from tinyml.ir import Array
from tinyml.memory.select import select
from tinyml.ops.conv.conv import Conv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.framework.kernel import Library
from tinyml.ops.shared.quant import quant_of
from tinyml.ops.weighted.pairs import pair_stream, pairs_are_exact, six_stream, sum_limits


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
@pytest.mark.parametrize("kind", ["conv", "dense", "wide"])
def test_layers_at_the_limit(kind: str, name: str, expected: str) -> None:
    """Wide layers are dense ones with many filters, which are taken by sixes. Convolutions correct -128."""
    if kind == "conv" and name == "least_weight":
        expected = "pairs_corrected"
    if kind == "wide":
        kind, expected = "dense", expected.replace("pairs", "sixes")
        name = f"wide_{name}"
    else:
        name = f"{kind}_{name}"
    assert kernel_of(name) == f"tinyml_{kind}_{expected}_s8"


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


@pytest.mark.parametrize("channels", range(32, 38))
def test_sixes_can_be_read_back(channels: int) -> None:
    """Sixes, then what another kernel reads: three to eight filters, or none."""
    rng = np.random.default_rng(2)
    filters = rng.integers(-127, 128, (channels, 8)).astype(np.int8)
    bias = rng.integers(-1000, 1000, channels).astype(np.int32)
    multipliers = (
        rng.integers(2**30, 2**31 - 1, channels).astype(np.int32),
        rng.integers(-9, -1, channels).astype(np.int32),
    )
    last = {32: 8, 33: 3, 34: 4, 35: 5, 36: 0, 37: 7}[channels]
    words = six_stream(filters, bias, multipliers)
    sixes, rest = np.split(words, [(channels - last) // 6 * (6 + 12 + 8)])
    for index, block in enumerate(sixes.reshape(-1, 6 + 12 + 8)):
        chosen = slice(6 * index, 6 * index + 6)
        np.testing.assert_array_equal(block[:6], bias[chosen])
        halves = np.ascontiguousarray(block[6:18]).view(np.int16).reshape(2, 2, 3, 2).astype(np.int64)
        elements = halves.transpose(2, 0, 3, 1).reshape(3, 8)  # by four: 0 2, 1 3
        second = (elements + 128) % 256 - 128
        both = np.stack([(elements - second) // 256, second], axis=1).reshape(6, 8)
        np.testing.assert_array_equal(both, filters[chosen])
        threes = block[18:].reshape(2, 4)
        exponents = np.ascontiguousarray(threes[:, :1]).view(np.int8)[:, :3].reshape(-1)
        np.testing.assert_array_equal(exponents, -multipliers[1][chosen] - 1)
        factors = np.ascontiguousarray(threes[:, 1:]).view(np.uint32).reshape(-1)
        np.testing.assert_array_equal(factors, 2 * multipliers[0][chosen].astype(np.int64))
    of_rest = slice(channels - last, None)
    multiplier, shift = (values[of_rest] for values in multipliers)
    expected = pair_stream(filters[of_rest], bias[of_rest], (multiplier, shift)) if last else np.array([])
    np.testing.assert_array_equal(rest, expected)


def test_odd_filters_are_first_of_their_pair() -> None:
    """A last filter without a partner is the one whose sums are limited."""
    assert not pairs_are_exact(single_layer(Conv(), bias=LIMIT))
    assert pairs_are_exact(single_layer(Conv(), bias=0))
    assert not pairs_are_exact(single_layer(Dense(), bias=-2 * LIMIT))
