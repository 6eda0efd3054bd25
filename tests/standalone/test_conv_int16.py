# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions with int16 activations whose rows of taps are about a vector, and those in groups: equal to
numpy bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import DType, Graph, Quant, Tensor
from tinyml.memory import placement
from tinyml.ops.conv.conv import Conv
from tinyml.pipeline import Options, compile_graph

KERNELS = {"qemu-cortex-m4": "tinyml_conv_dsp_s16", "qemu-cortex-m55": "tinyml_conv_mve_s16"}
FEW = {"qemu-cortex-m55": "tinyml_conv_few_mve_s16"}
LAYERS = [
    # rows, columns, channels; filters, taps; strides; dilations; pads
    ((49, 10, 1), (6, 10, 4), (2, 2), (1, 1), (4, 1, 5, 1)),
    ((9, 11, 1), (5, 3, 5), (1, 1), (1, 1), (2, 4, 2, 4)),
    ((8, 9, 2), (4, 3, 3), (1, 2), (2, 1), (3, 1, 3, 1)),
    ((7, 6, 3), (3, 5, 2), (2, 1), (1, 1), (0, 1, 4, 1)),
    ((1, 30, 1), (4, 1, 7), (1, 3), (1, 1), (0, 6, 0, 6)),
    ((12, 5, 4), (2, 2, 1), (1, 1), (1, 1), (1, 0, 1, 0)),
    ((5, 7, 1), (7, 4, 3), (1, 1), (1, 1), (3, 2, 3, 2)),
    ((6, 4, 1), (3, 9, 8), (1, 1), (1, 1), (8, 7, 8, 7)),
    ((3, 3, 3), (9, 3, 3), (1, 1), (1, 1), (2, 2, 2, 2)),
    ((10, 4, 1), (4, 8, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((18, 4, 1), (4, 8, 2), (2, 1), (2, 1), (0, 1, 0, 0)),
    ((6, 6, 2), (5, 2, 3), (1, 1), (1, 2), (1, 2, 1, 2)),
    ((7, 6, 3), (1, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),  # one filter
    ((9, 8, 2), (1, 3, 3), (2, 2), (2, 2), (2, 2, 2, 2)),
    ((4, 5, 11), (1, 2, 2), (1, 1), (1, 1), (0, 0, 1, 1)),
    ((2, 2, 5), (5, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),  # four positions, or eight of two images
    ((5, 6, 7), (4, 3, 3), (2, 2), (1, 1), (1, 1, 1, 1)),  # odd rows
    ((1, 3, 23), (9, 1, 1), (1, 2), (1, 1), (0, 0, 0, 0)),
    ((4, 9, 6), (3, 3, 5), (1, 1), (1, 1), (2, 4, 2, 4)),
    ((3, 4, 6), (2, 2, 2), (1, 1), (1, 1), (5, 3, 5, 3)),  # windows that are all padding
    ((3, 4, 5), (2, 2, 3), (1, 1), (1, 2), (5, 3, 5, 6)),
    ((3, 4, 5), (1, 2, 3), (1, 1), (1, 1), (5, 4, 5, 4)),
]
GROUPED = [
    # extents, groups, channels and filters of each, taps
    ((5, 6), 16, 2, 1, (3, 3)),
    ((3, 5), 16, 3, 1, (1, 1)),
    ((4, 3), 8, 7, 1, (1, 1)),
    ((2, 7), 7, 5, 1, (3, 3)),
    ((3, 3), 6, 2, 3, (1, 1)),
    ((4, 5), 4, 8, 5, (3, 2)),
    ((5, 6), 2, 8, 8, (5, 1)),
    ((7, 4), 2, 10, 3, (9, 1)),
]
"""Whose groups are joined, but those that would add too many weights of zero."""


def layers() -> Graph:
    """The limits in turns."""
    sketch, outputs = Sketch(seed=8), list[Tensor]()
    quant = Quant.per_tensor(0.0002, 0)
    for number, (extents, filters, strides, dilations, pads) in enumerate(LAYERS):
        x = sketch.input((1 + number % 2, *extents), DType.INT16, quant)
        clamp = (0, np.inf) if number % 2 else (-np.inf, np.inf)
        op = Conv(strides, dilations=dilations, pads=pads, clamp=clamp, round_once=number % 4 == 1)
        weights = sketch.weights((*filters, extents[2]), 0)
        bias = sketch.bias(filters[0], 200000, "int64")
        outputs.append(sketch.add(op, x, weights, bias, quant=quant))
    for number, (size, groups, ins, outs, taps) in enumerate(GROUPED):
        x = sketch.input((1 + number % 2, *size, groups * ins), DType.INT16, quant)
        clamp = (0, np.inf) if number % 2 else (-np.inf, np.inf)
        op = Conv(pads=(1, 0, 1, 2), groups=groups, clamp=clamp, round_once=number % 4 == 1)
        weights = sketch.weights((groups * outs, *taps, ins), 0)
        if number < 2:  # the largest sums
            lowest = np.full_like(weights.value, -128)
            weights = sketch.constant(lowest, weights.quant, "int8")
        bias = sketch.bias(groups * outs, 200000, "int64")
        outputs.append(sketch.add(op, x, weights, bias, quant=quant))
    return sketch.graph(*outputs)


@pytest.mark.parametrize("optimize", ["-O2", "-Os"])  # functions have other alignments
@pytest.mark.parametrize("machine", KERNELS)
def test_rows_of_taps(machine: str, optimize: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "with_other_forms", lambda *args, **options: None)
    equal(layers(), machine, KERNELS[machine], optimize)


@pytest.mark.parametrize("machine", FEW)
def test_few_channels(machine: str) -> None:
    """The same layers by kernels for few filters and channels, whichever is faster."""
    graph = layers()
    nodes = [
        replace(node, op=replace(node.op, few=True)) for node in graph.nodes if isinstance(node.op, Conv)
    ]
    equal(graph.with_nodes(nodes), machine, FEW[machine], "-O2")


def equal(graph: Graph, machine: str, kernel: str, optimize: str) -> None:
    """The kernel computes all layers, as numpy does."""
    options = Options(target=harness.find_machine(machine).target.name, kernels="portable", bands=False)
    compiled = compile_graph(graph, "rows", Provenance("rows", "0" * 64, ""), options)
    assert [one.kernel.name for one in compiled.selected] == [kernel] * len(LAYERS + GROUPED)
    rng = np.random.default_rng(4)
    feed = {name: rng.integers(-32768, 32768, graph.tensors[name].shape, np.int16) for name in graph.inputs}
    checked = harness.Options(check_arena=True, optimize=optimize)
    (found,) = harness.run_files(compiled.files, machine, [feed], options=checked).outputs
    for layer in graph.layers():
        given = [feed.get(one.name, one.data) for one in layer.inputs if one is not None]
        (expected,) = layer.op.evaluate(layer, given)
        np.testing.assert_array_equal(found[layer.output.name], expected, layer.name)
