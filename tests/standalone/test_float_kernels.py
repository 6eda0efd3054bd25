# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float layers of every geometry on every core: equal to numpy within 1e-5, whatever the tile."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.any_plan import any_plan
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import DType, Graph, Node, Shape, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.dense.dense import Dense
from tinyml.pipeline import Options, compile_graph

MACHINES = ["host", *harness.CORES]
SAME = (1, 1, 1, 1)

# Operator, input, weights, bias. Filters come by eight, by four and one by one.
CASES: dict[str, tuple[Convolution | Dense, Shape, Shape, bool]] = {
    "pointwise": (Conv(), (1, 3, 3, 6), (16, 1, 1, 6), True),
    "one_filter": (Conv(pads=SAME), (1, 4, 4, 3), (1, 3, 3, 3), True),
    "all_tiles": (Conv((2, 2), pads=(0, 0, 1, 1)), (1, 6, 6, 3), (15, 3, 3, 3), False),
    "groups": (Conv(pads=SAME, groups=2, clamp=(0.0, 2.0)), (1, 4, 4, 6), (26, 3, 3, 3), True),
    "dilated": (Conv(dilations=(2, 2), pads=(2, 2, 2, 2)), (2, 5, 5, 2), (9, 3, 3, 2), True),
    "depthwise": (DepthwiseConv(pads=SAME), (1, 5, 4, 19), (1, 3, 3, 19), True),
    "depthwise_none": (DepthwiseConv((2, 1), clamp=(-1.0, 1.0)), (2, 5, 4, 8), (1, 3, 2, 8), False),
    "depthwise_dilated": (
        DepthwiseConv(dilations=(1, 2), pads=(1, 2, 1, 2)),
        (1, 4, 6, 9),
        (1, 3, 3, 9),
        True,
    ),
    "depthwise_multiple": (DepthwiseConv(pads=SAME), (1, 4, 4, 4), (1, 3, 3, 8), True),
    "dense": (Dense(), (1, 33), (13, 33), True),
    "dense_rows": (Dense(clamp=(0.0, np.inf)), (3, 8), (20, 8), False),
    "dense_few": (Dense(), (2, 1), (3, 1), True),
}


def layers() -> Graph:
    rng = np.random.default_rng(5)
    tensors: dict[str, Tensor] = {}
    nodes = []
    for name, (op, x_shape, w_shape, bias) in CASES.items():
        x = Tensor(f"{name}_x", x_shape, DType.FLOAT32)
        w = Tensor.constant(f"{name}_w", rng.standard_normal(w_shape).astype(np.float32))
        outputs = w_shape[op.channel_axis]
        found = [x, w]
        if bias:
            found.append(Tensor.constant(f"{name}_b", rng.standard_normal(outputs).astype(np.float32)))
        y = Tensor(f"{name}_y", op.infer(found)[0].shape, DType.FLOAT32)
        tensors |= {tensor.name: tensor for tensor in (*found, y)}
        nodes.append(Node(name, op, tuple(tensor.name for tensor in found), (y.name,)))
    inputs = tuple(f"{name}_x" for name in CASES)
    return Graph("floats", tensors, tuple(nodes), inputs, tuple(f"{name}_y" for name in CASES))


@pytest.mark.parametrize("machine", MACHINES)
def test_float_layers(machine: str) -> None:
    graph = layers()
    rng = np.random.default_rng(6)
    feed = {name: rng.standard_normal(graph.tensors[name].shape).astype(np.float32) for name in graph.inputs}
    target = harness.find_machine(machine).target.name
    options = Options(target=target, kernels="portable")
    with any_plan():
        compiled = compile_graph(graph, "floats", Provenance("floats", "0" * 64, ""), options)
    build = harness.Options(strict=True, sanitize=machine == "host")
    result = harness.run_files(compiled.files, machine, [feed], options=build)
    for node in graph.nodes:
        values = [feed.get(name, graph.tensors[name].data) for name in node.inputs]
        (expected,) = node.op.evaluate(graph.layer(node), values)
        np.testing.assert_allclose(
            result.outputs[0][node.outputs[0]], expected, rtol=1e-5, atol=1e-5, err_msg=node.name
        )
