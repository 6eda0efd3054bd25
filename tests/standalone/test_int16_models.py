# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Whole models on int16 activations: equal to numpy, and as many instructions as the page says."""

from __future__ import annotations

import numpy as np
import pytest

from tinyml.ir import Array, Graph
from tools import int16_models, worst_shapes

RECORDED = {(one.machine, one.kind, one.layer): one for one in worst_shapes.load()[1]}
OF_CORE = {"qemu-cortex-m4": "_dsp_s16", "qemu-cortex-m55": "_mve_s16"}
INT8_TIMES = {
    ("qemu-cortex-m4", "keyword spotter"): 0.85,
    ("qemu-cortex-m4", "1-D denoiser"): 1.0,
    ("qemu-cortex-m55", "keyword spotter"): 1.3,
    ("qemu-cortex-m55", "1-D denoiser"): 1.5,
}
"""Helium multiplies half as many int16 as int8 at once."""


def evaluated(graph: Graph, inputs: dict[str, Array]) -> dict[str, Array]:
    values = dict(inputs)
    for layer, node in zip(graph.layers(), graph.nodes, strict=True):
        given = [values.get(name, graph.tensors[name].data) for name in node.inputs]
        values |= zip(node.outputs, node.op.evaluate(layer, given), strict=True)
    return {name: values[name] for name in graph.outputs}


@pytest.mark.parametrize("name", int16_models.MODELS)
@pytest.mark.parametrize("machine", OF_CORE)
def test_model(name: str, machine: str) -> None:
    found = int16_models.run(name, "int16", machine)
    wanted = evaluated(int16_models.MODELS[name]("int16"), dict(found.inputs))
    for output, values in wanted.items():
        np.testing.assert_array_equal(found.outputs[output], values)
    weighted = {kernel for kernel in found.kernels if kernel.endswith("_s16") and "pool" not in kernel}
    assert all(kernel.endswith(OF_CORE[machine]) for kernel in weighted)
    assert not any(kernel.endswith("loops") for kernel in found.kernels)
    recorded = RECORDED[machine, "int16", name]
    assert found.instructions == pytest.approx(recorded.instructions, rel=0.01)
    assert recorded.instructions <= INT8_TIMES[machine, name] * RECORDED[machine, "int8", name].instructions
