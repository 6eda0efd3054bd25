# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Functions of int16 tensors on every core: equal to numpy for inputs from end to end."""

from __future__ import annotations

import numpy as np
import pytest

from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import DType, Graph, Node, Op, Quant, Tensor
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.unary import Unary
from tinyml.pipeline import Options, compile_graph

CHECKED = harness.Options(check_arena=True)

MACHINES = ["host", *harness.CORES]

FUNCTIONS: dict[str, tuple[Op, float, float]] = {
    "sigmoid": (Unary("sigmoid"), 2.0**-12, 2.0**-15),
    "tanh": (Unary("tanh"), 0.0003, 2.0**-15),
    "tanh_table": (Unary("tanh"), 0.0001, 0.00003),
    "gelu": (Unary("gelu"), 0.0003, 0.0003),
    "leaky_relu": (Unary("leaky_relu", (0.2,)), 0.0003, 0.0001),
    "hard_sigmoid": (Unary("hard_sigmoid", (0.2, 0.5)), 0.0003, 2.0**-15),
    "clip": (Clamp(0.0, 6.0), 0.0003, 0.0002),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_functions_of_int16(machine: str) -> None:
    x = np.append(np.arange(-32768, 32768, 127), 32767).astype(np.int16)
    tensors: dict[str, Tensor] = {}
    nodes = []
    for name, (op, x_scale, y_scale) in FUNCTIONS.items():
        for place, scale in (("x", x_scale), ("y", y_scale)):
            key = f"{name}_{place}"
            tensors[key] = Tensor(key, x.shape, DType.INT16, Quant.per_tensor(scale, 0))
        form = op.quantized([tensors[f"{name}_x"]], [tensors[f"{name}_y"]])
        assert form is not None
        nodes.append(Node(name, form[0], (f"{name}_x",), (f"{name}_y",)))
    inputs, outputs = (tuple(f"{name}_{place}" for name in FUNCTIONS) for place in "xy")
    graph = Graph("int16", tensors, tuple(nodes), inputs, outputs)
    options = Options(target=harness.find_machine(machine).target.name)
    compiled = compile_graph(graph, "int16", Provenance("int16", "0" * 64, ""), options)
    (found,) = harness.run_files(compiled.files, machine, [dict.fromkeys(inputs, x)], options=CHECKED).outputs
    for node in nodes:
        (expected,) = node.op.evaluate(graph.layer(node), [x])
        np.testing.assert_array_equal(found[node.outputs[0]], expected, node.name)
