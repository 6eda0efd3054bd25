# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one channel, with the kernels of depthwise layers, and joined groups on emulated cores."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.any_plan import any_plan
from tests.support.interpret import interpret
from tests.support.layer_kinds import as_kind, random_values
from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import Graph, Quant
from tinyml.ops.conv.conv import Conv
from tinyml.pipeline import Options, compile_graph

KERNELS = (1, 1), (3, 3), (5, 2), (1, 7), (4, 4)
MACHINES = ("qemu-cortex-m0", "qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m55", "qemu-riscv32")


def layers() -> Graph:
    """Of all extents, strides, dilations and numbers of filters that small layers have."""
    sketch = Sketch(seed=3)
    outputs = []
    for kernel in KERNELS:
        for filters in (1, 2, 3, 5):
            x = sketch.input((1 + filters % 2, 9, 11, 1), quant=Quant.per_tensor(0.05, int(filters) - 3))
            values = sketch.rng.integers(-90, 91, (filters, *kernel, 1)).astype(np.int8)
            scales = tuple(float(scale) for scale in sketch.rng.uniform(0.005, 0.02, filters))
            w = sketch.build.constant(values, "w", Quant(scales, (0,) * filters, 0))
            strides = (1 + filters % 2, 1 + (filters == 5))
            op = Conv(strides, (1, 1 + (filters == 3)), (1, 0, 1, 2))
            outputs.append(sketch.add(op, x, w, sketch.bias(filters), quant=Quant.per_tensor(0.1, -7)))
    for groups, channels, filters in ((2, 2, 4), (16, 2, 1), (8, 7, 1), (3, 3, 2), (8, 2, 3)):
        x = sketch.input((1, 5, 6, groups * channels), quant=Quant.per_tensor(0.05, 4))
        for kernel in ((1, 1), (3, 3)):
            outs = groups * filters
            values = sketch.rng.integers(-90, 91, (outs, *kernel, channels)).astype(np.int8)
            scales = tuple(float(scale) for scale in sketch.rng.uniform(0.005, 0.02, outs))
            w = sketch.build.constant(values, "w", Quant(scales, (0,) * outs, 0))
            op = Conv(pads=(kernel[0] // 2,) * 4, groups=groups)
            outputs.append(sketch.add(op, x, w, sketch.bias(outs), quant=Quant.per_tensor(0.1, -7)))
    return sketch.graph(*outputs)


@pytest.mark.parametrize("kind", ["int8", "int16"])
@pytest.mark.parametrize("machine", MACHINES)
def test_equal(machine: str, kind: str) -> None:
    graph = as_kind(layers(), kind)
    rng = np.random.default_rng(5)
    sample = {name: random_values(rng, graph.tensors[name]) for name in graph.inputs}
    options = Options(target=harness.find_machine(machine).target.name, optimize="speed")
    with any_plan():
        compiled = compile_graph(graph, "forms", Provenance("forms", "0" * 64, ""), options)
    ops = [one.layer.op for one in compiled.selected]
    changed = [
        op.kind == "DepthwiseConv" or getattr(op, "joined", 1) > 1 or getattr(op, "few", False) for op in ops
    ]
    assert kind == "int16" or sum(changed) > len(changed) // 2
    (found,) = harness.run_files(
        compiled.files, machine, [sample], options=harness.Options(check_arena=True)
    ).outputs
    for name, expected in interpret(graph, sample).items():
        np.testing.assert_array_equal(found[name], expected, err_msg=name)
