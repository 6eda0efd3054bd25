# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers on floats after ReLU: without an FPU, what they take depends on how many zeros they read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.sketch import Sketch
from tinyml.cost.error_bars import AFTER_RELU, ErrorBars
from tinyml.cost.model import Speed, by_models, find_model
from tinyml.ir import DType, Graph
from tinyml.ops.conv.conv import Conv
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.framework.rectified import rectified
from tinyml.ops.pool.max import MaxPool
from tinyml.pipeline import Compiled, Options, compile_built

RELU = (0.0, np.inf)


def convolutions(clamp: tuple[float, float]) -> Graph:
    """Two of them, with a pool between; only the first is limited."""
    sketch = Sketch(seed=2)
    x = sketch.input((1, 8, 8, 4), DType.FLOAT32)
    first = sketch.add(Conv(clamp=clamp), x, sketch.real(8, 3, 3, 4))
    pooled = sketch.add(MaxPool((2, 2), (2, 2), (1, 1), (0, 0, 0, 0)), first)
    return sketch.graph(sketch.add(Conv(), pooled, sketch.real(8, 1, 1, 8)))


def compiled(clamp: tuple[float, float]) -> Compiled:
    return compile_built(convolutions(clamp), Options("model", "cortex-m3"))


def test_zeros_are_moved_and_pooled_but_not_multiplied() -> None:
    graph = convolutions(RELU)
    first, second, last = (node.outputs[0] for node in graph.nodes)
    assert rectified(graph) == {first, second}
    assert last not in rectified(graph)
    assert not rectified(convolutions((-1.0, 1.0)))


def test_a_limit_of_its_own_leaves_zeros_too() -> None:
    sketch = Sketch()
    y = sketch.add(Clamp(0.0, 6.0), sketch.input((4,), DType.FLOAT32))
    assert rectified(sketch.graph(y)) == {y.name}


@pytest.mark.parametrize("clamp,part", [(RELU, 0.75), ((-1.0, 1.0), 1.0)])
def test_a_layer_after_relu_takes_a_part_and_has_a_bar_of_its_own(
    clamp: tuple[float, float], part: float
) -> None:
    model = compiled(clamp)
    costs = find_model("cortex-m3")
    assert costs is not None
    last = len(model.selected) - 1
    chosen, tally = model.selected[last], model.tallies[last]
    name = chosen.kernel.name
    loops = {name: {"calls": 10.0, "images": 1000.0}}
    speed = Speed(loops=loops, core="cortex-m3", rectified={name: 0.75})
    whole = replace(speed, rectified={}).of_layer(chosen.layer, chosen.kernel, tally)
    assert whole
    assert speed.of_layer(chosen.layer, chosen.kernel, tally) == part * whole
    assert speed.bar_name(chosen.kernel, tally) == (name + AFTER_RELU if part < 1 else name)


def test_a_bar_after_relu_is_that_of_the_kernel_if_it_has_none_of_its_own() -> None:
    bars = ErrorBars({"a": [0.4] * 4, f"a{AFTER_RELU}": [0.2] * 4, "b": [0.3] * 4}, {})
    assert bars.of_layer(f"a{AFTER_RELU}", 10) == 0.2
    assert bars.of_layer(f"b{AFTER_RELU}", 10) == 0.3


def test_large_loops_whose_time_depends_on_data_are_estimated_by_models() -> None:
    """Below the limit the figures of loops hold, from it on those that were fitted to models."""
    model = compiled(RELU)
    step = next(i for i, one in enumerate(model.selected) if one.kernel.name == "max-pool loops")
    chosen, tally = model.selected[step], model.tallies[step]
    figures = {"layer max-pool loops": 100.0}
    speed = Speed(operations={"layer": 7.0}, own_loops=figures)
    limited = {
        name: replace(speed, own_loops={**figures, by_models(chosen.layer, chosen.kernel): limit})
        for name, limit in (("above", 101.0), ("below", 100.0))
    }
    assert speed.of_loops(chosen.layer, chosen.kernel, tally) == 100
    assert limited["above"].of_loops(chosen.layer, chosen.kernel, tally) == 100
    assert limited["below"].of_loops(chosen.layer, chosen.kernel, tally) == 7
