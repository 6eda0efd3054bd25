# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Attention on emulated cores: the kernels in plain C, with DSP instructions and with Helium."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.ops.attention import CASES
from tests.support.any_plan import any_plan
from tests.support.cases import Case
from tests.support.interpret import interpret
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import Array, Graph, Node, Tensor
from tinyml.pipeline import Options, compile_graph

CHECKED = harness.Options(check_arena=True)
KERNELS = {
    "qemu-cortex-m3": ("tinyml_attention_s8", "tinyml_attention_masked_s8", "tinyml_attention_biased_s8"),
    "qemu-cortex-m4": (
        "tinyml_attention_dsp_s8",
        "tinyml_attention_masked_dsp_s8",
        "tinyml_attention_biased_dsp_s8",
    ),
    "qemu-cortex-m55": (
        "tinyml_attention_mve_s8",
        "tinyml_attention_masked_mve_s8",
        "tinyml_attention_biased_mve_s8",
    ),
}


def together(cases: Sequence[Case]) -> tuple[Graph, dict[str, Array]]:
    """All cases in one model, each with inputs and outputs of its own."""
    tensors: dict[str, Tensor] = {}
    nodes: list[Node] = []
    sample: dict[str, Array] = {}
    outputs: list[str] = []
    for number, case in enumerate(cases):
        graph = case.graph()
        names = {name: f"c{number}_{name}" for name in graph.tensors} | {"": ""}
        tensors |= {names[t.name]: replace(t, name=names[t.name]) for t in graph.tensors.values()}
        for node in graph.nodes:
            inputs, results = (tuple(names[n] for n in part) for part in (node.inputs, node.outputs))
            nodes.append(Node(case.name, node.op, inputs, results))
        sample |= {names[name]: array for name, array in case.inputs.items()}
        outputs += [names[name] for name in graph.outputs]
    return Graph("all", tensors, tuple(nodes), tuple(sample), tuple(outputs)), sample


@pytest.mark.parametrize("half", range(2))
@pytest.mark.parametrize("machine", KERNELS)
def test_attention(machine: str, half: int) -> None:
    graph, sample = together(CASES[half::2])
    options = Options(target=harness.find_machine(machine).target.name)
    with any_plan():
        compiled = compile_graph(graph, "case", Provenance("all", "0" * 64, ""), options)
    for kernel in KERNELS[machine]:
        assert any(kernel in one.kernel.functions(one.layer) for one in compiled.selected)
    (found,) = harness.run_files(compiled.files, machine, [sample], options=CHECKED).outputs
    for name, expected in interpret(graph, sample).items():
        if expected.dtype == np.float32:
            np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], expected, err_msg=name)
