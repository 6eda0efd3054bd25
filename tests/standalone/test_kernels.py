# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""int8 layers of every geometry, with every choice of kernels, on every core: equal to numpy, byte for byte.

All layers are in one model, so that a machine and a choice of kernels cost one build and one start.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.support import depthwise_half_layers, half_layers, pair_layers
from tests.support.any_plan import any_plan
from tests.support.weighted_layers import Layers, Weighted
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import Array, Graph, Node
from tinyml.memory.plan import Plan, plan
from tinyml.memory.select import Selected
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.pool.average import AveragePool
from tinyml.passes.bound_sums import bound_sums
from tinyml.pipeline import Options, compile_graph
from tinyml.setup.workspace import find_cmsis_nn

CHECKED = harness.Options(check_arena=True)

VECTORS = "qemu-riscv32-zve32x"
MACHINES = ["host", *harness.CORES, VECTORS]


SAME = (1, 1, 1, 1)
RELU = (0.0, np.inf)
WEIGHTED = {
    "pointwise": Weighted(Conv(), (1, 5, 5, 64), (64, 1, 1, 64)),
    "pointwise_odd": Weighted(Conv(clamp=RELU), (1, 5, 5, 33), (35, 1, 1, 33)),
    "pointwise_tiny": Weighted(Conv(), (1, 3, 3, 7), (5, 1, 1, 7)),
    "pointwise_one": Weighted(Conv(), (1, 1, 2, 16), (1, 1, 1, 16), bias=False),
    "pointwise_stride": Weighted(Conv((2, 2)), (1, 6, 6, 16), (8, 1, 1, 16)),
    "pointwise_padded": Weighted(Conv((2, 2), pads=SAME), (1, 2, 2, 8), (4, 1, 1, 8)),
    "pointwise_padded_after": Weighted(Conv((2, 2), pads=(0, 0, 2, 2)), (1, 2, 2, 8), (4, 1, 1, 8)),
    "pointwise_dilated": Weighted(Conv(dilations=(1, 2)), (1, 3, 4, 4), (5, 1, 1, 4)),
    "pointwise_deep": Weighted(Conv(clamp=RELU), (1, 1, 7, 80), (6, 1, 1, 80), y_zero=-128),
    "pointwise_relu": Weighted(Conv(clamp=RELU), (2, 3, 3, 40), (9, 1, 1, 40), y_zero=-128),
    "square": Weighted(Conv(pads=SAME), (1, 7, 7, 16), (12, 3, 3, 16)),
    "square_wide": Weighted(Conv(pads=SAME), (1, 5, 6, 12), (5, 3, 3, 12)),
    "square_deep": Weighted(Conv(pads=SAME, clamp=RELU), (1, 3, 6, 32), (4, 3, 3, 32), y_zero=-128),
    "square_stride": Weighted(Conv((2, 2), pads=(0, 0, 1, 1)), (1, 8, 8, 5), (6, 3, 3, 5)),
    "first_of_image": Weighted(
        Conv((2, 2), pads=(0, 0, 1, 1), clamp=RELU), (1, 6, 22, 3), (8, 3, 3, 3), y_zero=-128
    ),
    "first_of_audio": Weighted(Conv((2, 2), pads=(4, 1, 5, 1)), (1, 13, 10, 1), (8, 10, 4, 1)),
    "dilated": Weighted(Conv(dilations=(2, 2), pads=(2, 2, 2, 2)), (2, 7, 7, 6), (3, 3, 3, 6)),
    "groups": Weighted(Conv(pads=SAME, groups=2), (1, 5, 5, 6), (10, 3, 3, 3)),
    "groups_of_one_channel": Weighted(Conv(pads=(0, 2, 1, 1), groups=16), (2, 7, 1, 16), (128, 3, 3, 1)),
    "groups_without_bias": Weighted(Conv(groups=2), (1, 5, 5, 8), (8, 3, 2, 4), bias=False),
    **{  # every number of channels and filters that words and blocks of four leave
        f"groups_{groups}_of_{ins}_to_{outs}": Weighted(
            Conv(strides, dilations, pads=(1, 1, 1, 2), groups=groups, clamp=clamp),
            (batches, 5, 4, groups * ins),
            (groups * outs, height, 3, ins),
        )
        for groups, ins, outs, height, strides, dilations, batches, clamp in (
            (5, 1, 2, 3, (1, 1), (1, 1), 1, RELU),
            (4, 2, 1, 3, (1, 1), (1, 1), 1, (-np.inf, np.inf)),
            (3, 2, 3, 3, (1, 1), (1, 1), 2, (-1.0, 1.0)),
            (7, 2, 4, 2, (2, 1), (1, 1), 1, RELU),
            (4, 3, 3, 3, (1, 2), (1, 1), 1, (-np.inf, 0.5)),
            (3, 3, 5, 3, (1, 1), (2, 1), 1, (-np.inf, np.inf)),
            (5, 4, 2, 1, (1, 1), (1, 1), 1, RELU),
            (3, 5, 7, 3, (1, 1), (1, 1), 1, (-np.inf, np.inf)),
            (3, 6, 1, 3, (1, 1), (1, 2), 1, RELU),
            (2, 7, 6, 2, (1, 1), (1, 1), 3, (-np.inf, np.inf)),
            (2, 9, 4, 3, (2, 2), (1, 1), 1, (-np.inf, np.inf)),
            (2, 40, 9, 3, (1, 1), (1, 1), 1, (-np.inf, np.inf)),
        )
    },
    **{  # so few multiplications for an output that groups are joined
        f"groups_joined_{groups}_of_{ins}": Weighted(
            Conv(groups=groups), (1, 3, 3, groups * ins), (groups * outs, 1, 1, ins)
        )
        for groups, ins, outs in ((16, 3, 1), (8, 2, 3), (6, 1, 2), (32, 2, 1))
    },
    **{  # by kernels without columns: rows of windows of every length, few and many windows without padding
        f"few_{'x'.join(map(str, kernel))}_{ins}_to_{outs}": Weighted(
            Conv(strides, dilations, pads=pads, groups=groups, clamp=clamp, few=True),
            (batches, *extents, ins),
            (outs, *kernel, ins // groups),
        )
        for ins, outs, kernel, extents, strides, dilations, pads, groups, batches, clamp in (
            (1, 1, (3, 3), (5, 9), (1, 1), (1, 1), SAME, 1, 1, RELU),
            (2, 1, (3, 3), (6, 11), (2, 2), (1, 1), (0, 0, 1, 1), 1, 2, (-np.inf, np.inf)),
            (3, 2, (1, 1), (3, 7), (1, 1), (1, 1), (0, 0, 0, 0), 1, 1, (-1.0, 1.0)),
            (1, 1, (2, 5), (4, 9), (1, 1), (1, 1), (0, 0, 0, 0), 1, 1, (-np.inf, np.inf)),
            (5, 3, (3, 2), (7, 6), (1, 1), (2, 1), (2, 1, 2, 1), 1, 2, RELU),
            (4, 1, (3, 1), (5, 8), (1, 1), (1, 2), SAME, 1, 1, (-np.inf, np.inf)),
            (64, 1, (1, 1), (2, 5), (1, 1), (1, 1), (0, 0, 0, 0), 1, 1, (-np.inf, np.inf)),
            (2, 3, (5, 5), (3, 3), (1, 1), (1, 1), (2, 2, 2, 2), 1, 1, (-np.inf, 0.5)),
            (3, 2, (3, 3), (9, 11), (2, 2), (1, 1), SAME, 1, 1, (-np.inf, np.inf)),
            (3, 7, (3, 3), (6, 5), (1, 1), (1, 1), SAME, 1, 2, (-0.8, 0.9)),
            (4, 4, (1, 1), (3, 5), (1, 1), (1, 1), (0, 0, 0, 0), 1, 2, RELU),
            (3, 6, (2, 2), (5, 4), (1, 1), (1, 1), (0, 0, 0, 0), 1, 1, (-np.inf, np.inf)),
            (1, 5, (5, 4), (8, 3), (1, 1), (2, 1), (4, 2, 4, 1), 1, 1, (-np.inf, np.inf)),
            (9, 6, (3, 3), (5, 6), (1, 1), (1, 1), SAME, 3, 1, RELU),
            (12, 4, (3, 3), (6, 7), (2, 1), (1, 1), SAME, 4, 2, (-np.inf, np.inf)),
            (48, 48, (1, 1), (3, 3), (1, 1), (1, 1), (0, 0, 0, 0), 16, 1, (-np.inf, np.inf)),
        )
    },
    "weight_zero": Weighted(Conv(pads=SAME), (1, 5, 5, 6), (3, 3, 3, 6), zero=5),
    "all_weights": Weighted(Conv(pads=SAME), (1, 5, 5, 6), (3, 3, 3, 6), lowest=-128),
    # weights of -128 beside negative ones: in some pairs of filters, in many, in all of them
    **{
        f"lowest_{outs}_to_{largest}": Weighted(op, x, (outs, *kernel, x[3]), lowest=-128, largest=largest)
        for op, x, kernel, outs, largest in (
            (Conv(), (1, 3, 3, 20), (1, 1), 9, -100),
            (Conv(pads=SAME, clamp=RELU), (2, 5, 3, 5), (3, 3), 7, -90),
            (Conv((2, 1), (1, 2), pads=SAME), (1, 6, 5, 8), (3, 3), 12, -70),
            (Conv(pads=SAME), (1, 5, 4, 3), (3, 3), 2, -80),
            (Conv(), (1, 3, 5, 12), (1, 1), 5, -126),
            (Conv(pads=SAME), (1, 3, 3, 12), (3, 3), 6, -128),
        )
    },
    "fine_output": Weighted(Conv(), (1, 3, 3, 20), (6, 1, 1, 20), scale=0.00003),
    # factors so large that nearly every sum is out of range
    **{
        f"{name}_{scale}": replace(case, scale=scale)
        for name, case in (
            ("finest", Weighted(Conv(), (1, 3, 3, 5), (6, 1, 1, 5))),
            ("finest_depthwise", Weighted(DepthwiseConv(), (1, 5, 4, 9), (1, 2, 3, 9))),
            ("finest_dense", Weighted(Dense(), (1, 9), (6, 9))),
        )
        for scale in (1e-9, 1e-13)
    },
    "row": Weighted(Conv(pads=(0, 1, 0, 1)), (1, 1, 12, 8), (8, 1, 3, 8)),
    "depthwise": Weighted(DepthwiseConv(pads=SAME), (1, 6, 5, 64), (1, 3, 3, 64)),
    "depthwise_many": Weighted(DepthwiseConv(pads=SAME), (1, 3, 3, 126), (1, 3, 3, 126), bias=False),
    "depthwise_narrow": Weighted(DepthwiseConv((3, 1), pads=(1, 1, 0, 2)), (1, 5, 1, 15), (1, 3, 3, 15)),
    "depthwise_padded_after": Weighted(DepthwiseConv(pads=(1, 1, 1, 2)), (1, 5, 4, 16), (1, 3, 3, 16)),
    "depthwise_stream": Weighted(DepthwiseConv(), (1, 21, 1, 60), (1, 21, 1, 60)),
    "depthwise_one_row": Weighted(DepthwiseConv((1, 2)), (2, 3, 9, 32), (1, 3, 3, 32)),
    "depthwise_relu": Weighted(DepthwiseConv(pads=SAME, clamp=RELU), (1, 6, 5, 21), (1, 3, 3, 21)),
    "depthwise_few": Weighted(DepthwiseConv(pads=SAME), (1, 6, 5, 3), (1, 3, 3, 3)),
    "depthwise_stride": Weighted(DepthwiseConv((2, 2), pads=(0, 0, 1, 1)), (1, 8, 8, 20), (1, 3, 3, 20)),
    "depthwise_5x5": Weighted(DepthwiseConv(pads=(2, 2, 2, 2)), (1, 7, 6, 17), (1, 5, 5, 17)),
    "depthwise_7x7": Weighted(
        DepthwiseConv((2, 2), pads=(3, 3, 3, 3)), (1, 8, 8, 16), (1, 7, 7, 16), scale=0.3
    ),
    "depthwise_eight": Weighted(DepthwiseConv(pads=SAME), (1, 4, 7, 8), (1, 3, 3, 8)),
    "depthwise_eight_by_two": Weighted(DepthwiseConv((1, 2), pads=SAME), (1, 4, 9, 8), (1, 3, 3, 8)),
    "depthwise_1x1": Weighted(DepthwiseConv(), (1, 3, 5, 3), (1, 1, 1, 3)),
    "depthwise_1x4": Weighted(DepthwiseConv((1, 2)), (1, 2, 13, 3), (1, 1, 4, 3)),
    "depthwise_1x8": Weighted(DepthwiseConv(pads=(0, 4, 0, 3)), (1, 2, 11, 3), (1, 1, 8, 3)),
    "depthwise_1x9": Weighted(DepthwiseConv(), (1, 1, 12, 3), (1, 1, 9, 3)),
    "depthwise_1x3": Weighted(DepthwiseConv(pads=(0, 1, 0, 1)), (1, 3, 9, 6), (1, 1, 3, 6)),
    "depthwise_3x1": Weighted(DepthwiseConv((2, 1)), (1, 11, 2, 5), (1, 3, 1, 5)),
    "depthwise_by_two": Weighted(DepthwiseConv((2, 2), pads=SAME), (1, 9, 14, 4), (1, 3, 3, 4)),
    "depthwise_one": Weighted(DepthwiseConv(), (1, 3, 3, 9), (1, 3, 3, 9)),
    "depthwise_long": Weighted(DepthwiseConv(), (1, 11, 1, 6), (1, 10, 1, 6)),
    "depthwise_2x4": Weighted(DepthwiseConv(), (1, 5, 8, 18), (1, 2, 4, 18)),
    "depthwise_column": Weighted(DepthwiseConv(), (1, 12, 1, 40), (1, 5, 1, 40)),
    "depthwise_dilated": Weighted(
        DepthwiseConv(dilations=(1, 2), pads=(2, 4, 2, 4)), (1, 9, 8, 3), (1, 5, 5, 3)
    ),
    "depthwise_multiple": Weighted(DepthwiseConv(pads=SAME), (2, 5, 6, 3), (1, 3, 3, 6)),
    "depthwise_zero": Weighted(DepthwiseConv(pads=SAME), (1, 5, 6, 8), (1, 3, 3, 8), zero=-3),
    "depthwise_all": Weighted(DepthwiseConv(pads=SAME), (1, 5, 6, 8), (1, 3, 3, 8), lowest=-128),
    "depthwise_fine": Weighted(
        DepthwiseConv(pads=SAME), (1, 4, 4, 8), (1, 3, 3, 8), scale=0.00003, bias=False
    ),
    "dense": Weighted(Dense(), (1, 100), (13, 100)),
    "dense_rows": Weighted(Dense(clamp=RELU), (3, 37), (8, 37)),
    "dense_zero": Weighted(Dense(), (3, 37), (7, 37), zero=4),
    **{  # whole and broken blocks of two and of four rows, of which the kernels of convolutions take some
        f"dense_{'x'.join(map(str, rows))}_rows_{ins}_to_{outs}": Weighted(
            Dense(clamp=clamp), (*rows, ins), (outs, ins), y_zero=y_zero
        )
        for rows, ins, outs, clamp, y_zero in (
            ((2,), 37, 9, (-np.inf, np.inf), 3),
            ((4,), 16, 5, RELU, -128),
            ((5,), 20, 12, (-1.0, 1.0), 0),
            ((6,), 33, 7, (-np.inf, np.inf), 0),
            ((7,), 64, 18, RELU, -128),
            ((16,), 4, 12, (-np.inf, 0.5), 0),
            ((2, 3), 40, 6, (-np.inf, np.inf), -5),
            ((3, 1, 3), 2, 4, RELU, 0),
        )
    },
    **{
        f"dense_short_{rows}x{ins}_to_{outs}": Weighted(
            Dense(clamp=clamp, few=True), (rows, ins), (outs, ins), lowest=-128
        )
        for rows, ins, outs, clamp in (
            (16, 4, 4, (-np.inf, np.inf)),
            (5, 3, 7, RELU),
            (2, 16, 9, (-np.inf, 0.5)),
            (3, 21, 6, (-np.inf, np.inf)),
            (7, 2, 1, (-np.inf, np.inf)),
        )
    },
    "dense_fine": Weighted(Dense(), (1, 16), (5, 16), scale=0.00003),
    **{  # every number of words that is left of four, every number of filters that is left of six
        f"dense_wide_{outputs}": Weighted(Dense(clamp=clamp), (1, inputs), (outputs, inputs))
        for inputs, outputs, clamp in (
            *((16, 36, RELU), (4, 37, RELU), (24, 38, (-np.inf, 1.0))),
            *((12, 33, (-np.inf, np.inf)), (140, 34, (-np.inf, np.inf)), (8, 35, (-np.inf, np.inf))),
        )
    },
    "depthwise_above_input": Weighted(DepthwiseConv((3, 1), pads=(1, 3, 0, 3)), (1, 2, 5, 5), (1, 1, 3, 5)),
}


def layers(once: bool) -> Graph:
    sketch = Layers()
    for name, case in WEIGHTED.items():
        sketch.weighted(name, case, once)
    for name, shape, scales, zeros in (
        ("add", (1, 5, 5, 7), (0.05, 0.021, 0.06), (3, -20, -7)),
        ("add_even", (1, 4, 4, 16), (0.05, 0.05, 0.1), (3, -20, -7)),
        ("add_small", (1, 1, 1, 3), (0.05, 0.002, 0.04), (3, -20, -7)),
        ("add_negative", (1, 4, 1, 16), (0.021, 0.005, 0.1), (127, 127, -128)),
        ("add_positive", (1, 4, 1, 16), (0.021, 0.005, 0.1), (-128, -128, -128)),
    ):
        a = sketch.tensor(f"{name}_a", shape, scales[0], zeros[0])
        b = sketch.tensor(f"{name}_b", shape, scales[1], zeros[1])
        y = sketch.tensor(f"{name}_y", shape, scales[2], zeros[2])
        sketch.nodes.append(Node(name, Binary("add"), (a.name, b.name), (y.name,)))
    for name, shape, kernel, pads, scale in (
        ("pool_all", (1, 7, 5, 35), (7, 5), (0, 0, 0, 0), 0.05),
        ("pool_blocks", (1, 7, 5, 24), (7, 5), (0, 0, 0, 0), 0.05),
        ("pool_stride", (2, 6, 6, 16), (2, 2), (0, 0, 0, 0), 0.05),
        ("pool_scale", (1, 4, 6, 16), (3, 3), (0, 0, 0, 0), 0.03),
        ("pool_pads", (1, 6, 6, 16), (3, 3), (1, 1, 1, 1), 0.05),
    ):
        x = sketch.tensor(f"{name}_x", shape, 0.05, 3)
        strides = (2, 2) if name == "pool_stride" else (1, 1)
        op = AveragePool(kernel, strides, (1, 1), pads)
        y = sketch.tensor(f"{name}_y", op.infer([x])[0].shape, scale, 3)
        sketch.nodes.append(Node(name, op, (x.name,), (y.name,)))
    return sketch.graph()


@pytest.fixture(autouse=True)
def quick_plan() -> Iterator[None]:
    with any_plan():
        yield


@pytest.mark.parametrize(
    "kernels, once",
    [
        pytest.param("portable", True, id="portable-rounds-once"),
        pytest.param("cmsis-nn", False, id="cmsis-nn-rounds-twice"),
        pytest.param("portable", False, id="portable-rounds-twice", marks=pytest.mark.deep),
        pytest.param("cmsis-nn", True, id="cmsis-nn-rounds-once", marks=pytest.mark.deep),
    ],
)
@pytest.mark.parametrize("machine", MACHINES)
def test_layers(machine: str, kernels: str, once: bool) -> None:
    if kernels == "cmsis-nn" and machine == VECTORS:
        pytest.skip("the same as on qemu-riscv32")
    if kernels == "cmsis-nn" and find_cmsis_nn() is None:
        pytest.skip("no CMSIS-NN here (TINYML_CMSIS_NN, or a west workspace)")
    graph = layers(once)
    rng = np.random.default_rng(8)
    feed = {name: rng.integers(-128, 128, graph.tensors[name].shape).astype(np.int8) for name in graph.inputs}
    target = harness.find_machine(machine).target.name
    options = Options(target=target, kernels=kernels)
    compiled = compile_graph(graph, "layers", Provenance("layers", "0" * 64, ""), options)
    result = harness.run_files(compiled.files, machine, [feed], options=CHECKED)
    assert not different(graph, feed, result.outputs[0])


@pytest.mark.parametrize("machine", [VECTORS])
def test_layers_with_longer_vectors(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same code on a core whose vectors hold four times as many elements."""
    found = harness.find_machine(machine)
    assert found.board is not None
    options = tuple(word.replace("vlen=128", "vlen=512") for word in found.board.options)
    assert options != found.board.options
    monkeypatch.setitem(
        harness.MACHINES, machine, replace(found, board=replace(found.board, options=options))
    )
    test_layers(machine, "portable", once=False)


def different(graph: Graph, feed: Mapping[str, Array], outputs: Mapping[str, Array]) -> list[str]:
    """The layers whose outputs are not those of numpy.

    A layer whose sums leave 32 bits when they are scaled is computed in float (``passes/bound_sums.py``). Its
    output has so fine a scale that sums of 0, which float rounds, are not compared.
    """
    found = []
    kept = {node.name: node for node in bound_sums(graph).nodes}
    for node in graph.nodes:
        layer = graph.layer(node)
        values = [feed.get(n, graph.tensors[n].data) for n in node.inputs]
        (expected,) = node.op.evaluate(layer, values)
        computed = outputs[node.outputs[0]]
        if kept[node.name] != node:
            assert layer.output.quant is not None
            assert layer.output.quant.scale < 1e-6
            compared = expected != layer.output.quant.zero_point
            expected, computed = expected[compared], computed[compared]
        if not np.array_equal(computed, expected):
            found.append(node.name)
    return found


ALIGNED_DENSE = {
    **{name: case for name, case in WEIGHTED.items() if isinstance(case.op, Dense)},
    "dense_all": Weighted(Dense(), (3, 38), (11, 38), lowest=-128),
    "dense_all_whole": Weighted(Dense(clamp=RELU), (2, 40), (6, 40), lowest=-128),
    "dense_three": Weighted(Dense(), (2, 39), (3, 39)),
    "dense_two": Weighted(Dense(), (3, 12), (2, 12)),
}


CONVOLUTIONS = {name: case for name, case in WEIGHTED.items() if isinstance(case.op, Conv)}


@pytest.mark.parametrize("kernels", ["portable"])
@pytest.mark.parametrize(
    "machine, cases, names",
    [
        (
            "qemu-cortex-m4",
            ALIGNED_DENSE,
            ("tinyml_dense_sixes_s8(", "tinyml_dense_pairs_s8(", "tinyml_dense_dsp_s8("),
        ),
        (
            "qemu-cortex-m4",
            CONVOLUTIONS,
            ("tinyml_conv_pairs_s8(", "tinyml_conv_pairs_corrected_s8(", "tinyml_conv_short_dsp_s8("),
        ),
        (
            "qemu-cortex-m55",
            CONVOLUTIONS,
            ("tinyml_conv_mve_s8(", "tinyml_conv_few_mve_s8(", "tinyml_conv_short_mve_s8("),
        ),
    ],
    ids=["dense-qemu-cortex-m4", "conv-qemu-cortex-m4", "conv-qemu-cortex-m55"],
)
def test_layers_without_unaligned_words(
    machine: str,
    cases: Mapping[str, Weighted],
    names: Sequence[str],
    kernels: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cores whose words must be aligned (and those set to trap) take other loops."""
    found = harness.find_machine(machine)
    flags = (*found.target.gcc_flags, "-mno-unaligned-access")
    monkeypatch.setitem(
        harness.MACHINES, machine, replace(found, target=replace(found.target, gcc_flags=flags))
    )
    sketch = Layers()
    for once in (False, True):
        for name, case in cases.items():
            sketch.weighted(f"{name}_{'once' if once else 'twice'}", case, once)
    graph = sketch.graph()
    rng = np.random.default_rng(9)
    feed = {name: rng.integers(-128, 128, graph.tensors[name].shape).astype(np.int8) for name in graph.inputs}
    options = Options(target=found.target.name, kernels=kernels)
    compiled = compile_graph(graph, "layers", Provenance("layers", "0" * 64, ""), options)
    for kernel in names:
        assert kernel in compiled.files["layers.c"]
    result = harness.run_files(
        compiled.files, machine, [feed], options=harness.Options(strict=True, check_arena=True)
    )
    assert not different(graph, feed, result.outputs[0])


@pytest.mark.parametrize("kernels", ["portable"])
@pytest.mark.parametrize("machine", ["host", "qemu-cortex-m0", "qemu-cortex-m4", "qemu-cortex-m55", VECTORS])
def test_layers_from_the_end(machine: str, kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel that can compute its last position first does, as it would over its own input."""

    def backwards(graph: Graph, selected: Sequence[Selected], io_outside: bool = False) -> Plan:
        steps = [i for i, chosen in enumerate(selected) if any(way.backwards for way in chosen.overlays)]
        assert len(steps) > len(WEIGHTED) // 5
        return replace(plan(graph, selected, io_outside), backwards=frozenset(steps))

    for module in ("storage", "draft"):  # inputs and outputs stay apart, so that the order is free
        monkeypatch.setattr(f"tinyml.memory.plan.{module}.overlay_pairs", lambda *_: {})
    monkeypatch.setattr("tinyml.memory.placement.plan", backwards)
    # kernels for few channels never do that
    monkeypatch.setattr("tinyml.memory.placement.with_other_forms", lambda *_, **options: None)
    graph = layers(once=True)
    rng = np.random.default_rng(10)
    feed = {name: rng.integers(-128, 128, graph.tensors[name].shape).astype(np.int8) for name in graph.inputs}
    options = Options(target=harness.find_machine(machine).target.name, kernels=kernels, bands=False)
    compiled = compile_graph(graph, "layers", Provenance("layers", "0" * 64, ""), options)
    assert ".from_the_end = true" in compiled.files["layers.c"]
    result = harness.run_files(compiled.files, machine, [feed], options=CHECKED)
    assert not different(graph, feed, result.outputs[0])


@pytest.mark.parametrize(
    "kind,case",
    [
        *((kind, case) for kind in ("conv", "dense") for case in pair_layers.CASES),
        *(("wide", case) for case in ("largest", "smallest", "least_weight_above")),
    ],
)
@pytest.mark.parametrize("machine", ["qemu-cortex-m4", "qemu-cortex-m7"])
def test_pairs_of_filters_at_their_limit(machine: str, kind: str, case: str) -> None:
    """Sums as large as the proof allows, and those for which it sends the layer to another kernel."""
    graph = pair_layers.limited_layer(f"{kind}_{case}")
    target = harness.find_machine(machine).target.name
    options = Options(target=target, kernels="portable")
    compiled = compile_graph(graph, "limits", Provenance("limits", "0" * 64, ""), options)
    inputs = pair_layers.extremes(graph)
    result = harness.run_files(
        compiled.files, machine, [{"x": x} for x in inputs], options=harness.Options(strict=True)
    )
    (layer,) = graph.layers()
    for x, found in zip(inputs, result.outputs, strict=True):
        (expected,) = layer.op.evaluate(layer, [x, layer.input(1).value, layer.input(2).value])
        np.testing.assert_array_equal(found["y"], expected)


@pytest.mark.parametrize("machine", ["qemu-cortex-m0", "qemu-cortex-m3"])
def test_windows_in_halves_of_words_at_their_limit(machine: str) -> None:
    """Weights and sums as large as the proof allows, with windows that add up to the most on either side."""
    graph = half_layers.limited_layers()
    options = Options(target=harness.find_machine(machine).target.name, kernels="portable")
    compiled = compile_graph(graph, "limits", Provenance("limits", "0" * 64, ""), options)
    inputs = half_layers.extremes(graph)
    result = harness.run_files(
        compiled.files, machine, [{"x": x} for x in inputs], options=harness.Options(strict=True)
    )
    for x, found in zip(inputs, result.outputs, strict=True):
        assert not different(graph, {"x": x}, found)


@pytest.mark.parametrize("machine", ["qemu-cortex-m0", "qemu-cortex-m3"])
def test_outputs_in_halves_of_words_at_their_limit(machine: str) -> None:
    """The same for depthwise layers: taps, biases and elements as large as the proof allows."""
    graph = depthwise_half_layers.limited_layers()
    options = Options(target=harness.find_machine(machine).target.name, kernels="portable")
    compiled = compile_graph(graph, "limits", Provenance("limits", "0" * 64, ""), options)
    inputs = depthwise_half_layers.extremes()
    result = harness.run_files(
        compiled.files, machine, [{"x": x} for x in inputs], options=harness.Options(strict=True)
    )
    for x, found in zip(inputs, result.outputs, strict=True):
        assert not different(graph, {"x": x}, found)


def test_columns_over_their_own_input() -> None:
    """Depthwise layers of one column, without padding, need no memory but that of their input on Helium."""
    sketch = Layers()
    sketch.weighted("a", Weighted(DepthwiseConv(), (1, 20, 1, 32), (1, 3, 1, 32)), once=False)
    sketch.weighted("b", Weighted(DepthwiseConv((2, 1), (3, 1)), (1, 18, 1, 32), (1, 4, 1, 32)), once=False)
    first, second = sketch.nodes
    nodes = (first, replace(second, inputs=(first.outputs[0], *second.inputs[1:])))
    tensors = {name: tensor for name, tensor in sketch.tensors.items() if name != second.inputs[0]}
    graph = Graph("columns", tensors, nodes, first.inputs[:1], second.outputs)
    compiled = compile_graph(
        graph,
        "columns",
        Provenance("columns", "0" * 64, ""),
        Options(target="cortex-m55", kernels="portable"),
    )
    assert json.loads(compiled.files["columns.json"])["arena_bytes"] == 20 * 32
    x = np.random.default_rng(11).integers(-128, 128, (1, 20, 1, 32)).astype(np.int8)
    result = harness.run_files(compiled.files, "qemu-cortex-m55", [{first.inputs[0]: x}], options=CHECKED)
    for layer in graph.layers():
        constants = [layer.input(i).value for i in (1, 2)]
        (x,) = layer.op.evaluate(layer, [x, *constants])
    np.testing.assert_array_equal(result.outputs[0][second.outputs[0]], x)
