# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Depthwise layers with int16 activations whose outputs are walked in lines: equal to numpy bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import DType, Graph, Quant, Tensor
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.pipeline import Options, compile_graph

LINES = {
    "qemu-cortex-m4": "tinyml_depthwise_planes_dsp_s16",
    "qemu-cortex-m7": "tinyml_depthwise_planes_dsp_s16",
    "qemu-cortex-m55": "tinyml_depthwise_strips_mve_s16",
}
LAYERS = [
    # rows, columns, channels; taps; strides; dilations; pads
    ((9, 12, 16), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    ((12, 9, 13), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    ((25, 5, 24), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    ((1, 33, 17), (1, 3), (1, 1), (1, 1), (0, 1, 0, 1)),
    ((30, 1, 8), (3, 1), (1, 1), (1, 1), (1, 0, 1, 0)),
    ((11, 14, 9), (2, 2), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((11, 15, 10), (2, 3), (2, 1), (1, 1), (0, 2, 1, 2)),
    ((19, 8, 8), (3, 3), (1, 2), (1, 1), (1, 0, 1, 1)),
    ((13, 13, 8), (3, 3), (3, 1), (2, 1), (2, 1, 2, 1)),
    ((14, 10, 11), (3, 2), (1, 1), (1, 1), (2, 1, 2, 0)),
    ((4, 40, 12), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
]
CLAMPS = ((-np.inf, np.inf), (0, np.inf), (-3.0, 2.0))


def layers() -> Graph:
    """Chains of two, whose second output may replace its input; roundings and limits in turns."""
    sketch, outputs = Sketch(seed=7), list[Tensor]()
    quant = Quant.per_tensor(0.0002, 0)
    for number, (extents, taps, strides, dilations, pads) in enumerate(LAYERS):
        y = sketch.input((1 + number % 2, *extents), DType.INT16, quant)
        first = DepthwiseConv(strides, dilations=dilations, pads=pads)
        for op in (first, DepthwiseConv(pads=(1, 1, 1, 1)) if y.shape[1] > 1 < y.shape[2] else first):
            kernel = taps if op is first else (3, 3)
            clamp, once = CLAMPS[number % len(CLAMPS)], number % 4 == 1
            weights = sketch.weights((1, *kernel, extents[2]), 3)
            bias = sketch.bias(extents[2], 200000, "int64")
            y = sketch.add(replace(op, clamp=clamp, round_once=once), y, weights, bias, quant=quant)
        outputs.append(y)
    return sketch.graph(*outputs)


@pytest.mark.parametrize("machine", LINES)
def test_lines(machine: str) -> None:
    graph = layers()
    options = Options(target=harness.find_machine(machine).target.name, kernels="portable", bands=False)
    compiled = compile_graph(graph, "lines", Provenance("lines", "0" * 64, ""), options)
    names = [one.kernel.name for one in compiled.selected]
    assert names.count(LINES[machine]) >= 2 * len(LAYERS) - 3, names
    rng = np.random.default_rng(3)
    feed = {name: rng.integers(-32768, 32768, graph.tensors[name].shape, np.int16) for name in graph.inputs}
    values = dict(feed)
    for node, layer in zip(graph.nodes, graph.layers(), strict=True):
        given = [values.get(name, graph.tensors[name].data) for name in node.inputs]
        values |= zip(node.outputs, layer.op.evaluate(layer, given), strict=True)
    checked = harness.Options(check_arena=True)
    (found,) = harness.run_files(compiled.files, machine, [feed], options=checked).outputs
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], values[name], name)
