# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Ways to walk over a layer, counted by hand, and the figures of kernels that are estimated by them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.host.test_loop_counts import layer_of
from tinyml.cost.model import find_model
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.weighted.shape_work import shape_work
from tools.fit_loops import few_figures


def test_windows_channels_and_elements_are_combined() -> None:
    """3x3 over 5x6 with padding: 30 windows, 12 of them inside; 10 filters of 9 * 7 elements."""
    found = shape_work(layer_of(Conv(pads=(1, 1, 1, 1)), (1, 5, 6, 7), (10, 3, 3, 7)))
    assert found is not None
    assert found["element per filter per window"] == 63 * 10 * 30
    assert found["16 elements per 4 filters per two in a row"] == 4 * 3 * 15
    assert found["last elements of 4 per last filters of 4 per window inside"] == 3 * 2 * 12
    assert found["4 elements of a row per group per window at an edge"] == 3 * 6 * 18
    assert found["element of a tap per filter per tap inside"] == 7 * 10 * (5 * 3 - 2) * (6 * 3 - 2)
    assert found["outputs"] == 300
    assert "pixels" not in found


def test_depthwise_and_dense_layers() -> None:
    depthwise = shape_work(layer_of(DepthwiseConv(), (1, 5, 5, 20), (1, 3, 3, 20)))
    dense = shape_work(layer_of(Dense(), (2, 10), (7, 10)))
    assert depthwise is not None
    assert dense is not None
    assert depthwise["tap per 16 filters per window"] == 9 * 2 * 9
    assert dense["4 elements per 4 filters per window"] == 3 * 2 * 2
    assert dense["elements of pixels"] == 20


def test_every_name_has_an_amount() -> None:
    found = shape_work(layer_of(Conv(), (1, 4, 4, 8), (4, 1, 1, 8)))
    assert found is not None
    assert len(dict(found)) == len(found)
    with pytest.raises(KeyError):
        found["filter per element per window"]


def test_the_fit_finds_what_was_put_in() -> None:
    """Of many names a few are used, and an unseen layer is estimated."""
    rng = np.random.default_rng(3)
    layers = []
    for _ in range(80):
        ins, outs = (int(n) for n in rng.integers(1, 40, 2))
        work = shape_work(layer_of(Dense(), (1, ins), (outs, ins)))
        assert work is not None
        spent = 20 + 9 * outs + 3 * work["4 elements per filter per window"]
        layers.append((work, spent))
    figures = few_figures(layers[:60])
    assert len(figures) < 40
    for work, spent in layers[60:]:
        guess = sum(figure * work[name] for name, figure in figures.items())
        assert guess == pytest.approx(spent, rel=0.1)


def test_kernels_that_say_how_often_their_loops_run_need_none() -> None:
    model = find_model("cortex-m55")
    assert model is not None
    assert "tinyml_dense_mve_s8" in model.instructions.shapes
    assert not model.instructions.shapes.keys() & model.instructions.loops.keys()
