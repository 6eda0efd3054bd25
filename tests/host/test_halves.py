# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Two windows in one word, four filters in one word: which layers, on which cores, and the layout."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.support import depthwise_half_layers
from tests.support.half_layers import CASES, limited_layers
from tinyml.cores.targets import find_target
from tinyml.memory.select import select
from tinyml.ops.framework.kernel import Library
from tinyml.ops.weighted.stream import quads

OWN = frozenset((Library.GENERATED, Library.PORTABLE))


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m3"])
def test_layers_at_the_limit(target: str) -> None:
    chosen = select(limited_layers(), find_target(target), OWN)
    names = {"halves": "tinyml_conv_halves_s8", "plain": "tinyml_conv_s8"}
    expected = {name: names[kind] for name, kind in CASES.items()}
    assert {each.layer.name: each.kernel.name for each in chosen} == expected


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m3"])
def test_depthwise_layers_at_the_limit(target: str) -> None:
    chosen = select(depthwise_half_layers.limited_layers(), find_target(target), OWN)
    names = {"halves": "tinyml_depthwise_halves_s8", "plain": "tinyml_depthwise_conv_s8"}
    expected = {name: names[kind] for name, kind in depthwise_half_layers.CASES.items()}
    assert {each.layer.name: each.kernel.name for each in chosen} == expected


@pytest.mark.parametrize("target", ["host", "generic", "riscv32", "cortex-m4", "cortex-m55"])
def test_other_cores_have_other_kernels(target: str) -> None:
    for graph in (limited_layers(), depthwise_half_layers.limited_layers()):
        names = {each.kernel.name for each in select(graph, find_target(target), OWN)}
        assert not [name for name in names if "halves" in name or "quads" in name]


def test_words_of_four_filters_can_be_taken_apart() -> None:
    """As the kernel does: sums of the word and of what is left of it after shifts, modulo 2³²."""
    rng = np.random.default_rng(2)
    filters = rng.integers(-128, 128, (8, 6)).astype(np.int8)
    x = rng.integers(-128, 128, 6)
    stored = quads(filters).reshape(2, 4, 2, 4)  # fours of filters; elements of a word; words; filters
    for four, words in enumerate(stored.transpose(0, 2, 1, 3).reshape(2, 8, 4)):
        whole = np.ascontiguousarray(words).view("<i4")[:6, 0].astype(np.int64)
        sums = [int(((whole >> shift) * x).sum()) for shift in (0, 8, 16, 24)]
        found = [a - 256 * b - 128 * int(x.sum()) for a, b in pairwise(sums)]
        expected = (filters[4 * four : 4 * four + 4].astype(np.int64) * x).sum(axis=1)
        assert [*found, sums[3]] == expected.tolist()
