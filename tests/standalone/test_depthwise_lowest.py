# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights of -128 in depthwise layers with Helium: sums of two products are 16 bits wide there."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import Array, DType, Quant
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.pipeline import Options, compile_graph

HELIUM = "tinyml_depthwise_conv_mve_s8"
CHANNELS = 20


def weights(sketch: Sketch, lowest: int) -> Array:
    """3x3 kernels of large weights; each channel has so many of -128, in all places in turns."""
    values = np.where(sketch.rng.random((1, 3, 3, CHANNELS)) < 0.8, -127, 127).astype(np.int8)
    for channel in range(CHANNELS):
        for tap in range(lowest):
            row, column = divmod((channel + tap) % 9, 3)
            values[0, row, column, channel] = -128
    return values


@pytest.mark.parametrize("lowest, fits", [(0, True), (1, True), (2, False)])
def test_weights_of_minus_128(lowest: int, fits: bool) -> None:
    sketch = Sketch(seed=5)
    scales = Quant((0.001,) * CHANNELS, (0,) * CHANNELS, 3)
    x = sketch.input((1, 8, 9, CHANNELS), DType.INT8, Quant.per_tensor(0.02, 3))
    kernel = sketch.constant(weights(sketch, lowest), scales, "int8")
    op = DepthwiseConv(pads=(1, 1, 1, 1))
    y = sketch.add(op, x, kernel, sketch.bias(CHANNELS), quant=Quant.per_tensor(0.03, 0))
    graph = sketch.graph(y)
    options = Options(target="cortex-m55", kernels="portable", bands=False)
    compiled = compile_graph(graph, "lowest", Provenance("lowest", "0" * 64, ""), options)
    (one,) = compiled.selected
    assert (one.kernel.name == HELIUM) == fits
    shape = graph.tensors[x.name].shape
    inputs = [np.full(shape, -128), np.full(shape, 127), sketch.rng.choice([-128, 127], shape)]
    samples = [{x.name: array.astype(np.int8)} for array in inputs]
    checked = harness.Options(check_arena=True)
    runs = harness.run_files(compiled.files, "qemu-cortex-m55", samples, options=checked).outputs
    layer = graph.layer(graph.nodes[0])
    for sample, run in zip(samples, runs, strict=True):
        (wanted,) = op.evaluate(
            layer, [sample[x.name], *(t.value for t in layer.inputs[1:] if t is not None)]
        )
        np.testing.assert_array_equal(run[y.name], wanted)
