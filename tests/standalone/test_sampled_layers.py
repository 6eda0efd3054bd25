# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers of sampled geometries on every core, all in one image; ``test_every_kernel.py`` has more."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.depth import is_deep
from tests.random_layers.batch import batch
from tests.random_layers.check import Choices, Place, check
from tests.support.any_plan import any_plan
from tests.support.layer_kinds import as_kind, random_values, same
from tests.support.weighted_layers import Layers, sampled
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import Array, Graph
from tinyml.ops.dense.dense import Dense
from tinyml.pipeline import Options, compile_graph

SHARE = 1 if is_deep() else 2
COUNTS = {"int8": 56, "int16": 24, "float32": 18, "computed": 16, "into_float": 24}
"""Layers of each kind in `make test-deep`; `make test` has half of them."""


@cache
def layers() -> Graph:
    """Layers on each type, rounded once and twice in turns; the samples are different for each type."""
    graph = Graph("layers", {}, (), (), ())
    for seed, (kind, count) in enumerate(COUNTS.items(), 40):
        made = Layers()
        for index, (name, case) in enumerate(sampled(count // SHARE, seed).items()):
            if kind != "computed" or not isinstance(case.op, Dense):  # that would be a MatMul
                made.weighted(f"{kind}_{name}", case, once=index % 2 == 0)
        more = as_kind(made.graph(), kind)
        graph = Graph(
            "layers",
            {**graph.tensors, **more.tensors},
            graph.nodes + more.nodes,
            graph.inputs + more.inputs,
            graph.outputs + more.outputs,
        )
    return graph


@cache
def expected() -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs, and outputs as numpy computes them."""
    graph, rng = layers(), np.random.default_rng(12)
    feed = {name: random_values(rng, graph.tensors[name]) for name in graph.inputs}
    results = {}
    for node in graph.nodes:
        values = [feed.get(name, graph.tensors[name].data) for name in node.inputs]
        (results[node.outputs[0]],) = node.op.evaluate(graph.layer(node), values)
    return feed, results


@pytest.mark.parametrize("machine", harness.CORES)
def test_layers(machine: str) -> None:
    feed, wanted = expected()
    options = Options(target=harness.find_machine(machine).target.name, kernels="portable", bands=False)
    with any_plan():
        compiled = compile_graph(layers(), "layers", Provenance("layers", "0" * 64, ""), options)
    checked = harness.Options(check_arena=True)
    (found,) = harness.run_files(compiled.files, machine, [feed], options=checked).outputs
    different = [
        f"{n.name}: {n.op}" for n in layers().nodes if not same(found[n.outputs[0]], wanted[n.outputs[0]])
    ]
    assert not different, "\n".join(different)


@pytest.mark.parametrize(
    "machine, kind, kernels",
    [
        ("qemu-cortex-m0", "transposed", {"conv_apart_halves_s8"}),
        ("qemu-cortex-m4", "grouped", {"conv_groups_dsp_s8", "conv_dsp_s8"}),
        ("qemu-cortex-m4", "transposed", {"conv_apart_pairs_s8", "conv_apart_dsp_s8"}),
        (
            "qemu-cortex-m4",
            "int16",
            {"conv_dsp_s16", "depthwise_planes_dsp_s16", "depthwise_dsp_s16", "dense_dsp_s16", "conv_s16"},
        ),
        ("qemu-cortex-m7", "int16", {"conv_dsp_s16", "depthwise_planes_dsp_s16", "dense_dsp_s16"}),
        ("qemu-cortex-m55", "int16", {"conv_mve_s16", "depthwise_mve_s16", "dense_mve_s16"}),
        ("qemu-cortex-m4", "transposed_int16", {"conv_apart_dsp_s16", "conv_apart_s16"}),
        ("qemu-cortex-m4", "float16", {"conv_f32_f16", "depthwise_conv_f32_f16", "dense_f32_f16"}),
        ("qemu-cortex-m55", "float16", {"conv_f32_f16", "depthwise_conv_f32_f16", "dense_f32_f16"}),
        ("qemu-cortex-m55", "grouped", {"conv_groups_mve_s8"}),
        ("qemu-cortex-m0", "few", {"conv_few_s8", "conv_few_groups_s8"}),
        ("qemu-cortex-m3", "few", {"conv_few_s8", "conv_few_groups_s8"}),
        ("qemu-cortex-m4", "few", {"conv_short_dsp_s8"}),
        ("qemu-cortex-m4", "short", {"conv_short_dsp_s8"}),
        ("qemu-cortex-m55", "few", {"conv_few_mve_s8"}),
        ("qemu-cortex-m55", "short", {"conv_short_mve_s8", "conv_few_mve_s8"}),
        ("qemu-cortex-m55", "few_int16", {"conv_few_mve_s16"}),
        ("qemu-cortex-m55", "transposed", {"conv_apart_mve_s8"}),
        ("qemu-cortex-m55", "transposed_int16", {"conv_apart_mve_s16"}),
    ],
)
def test_some_of_the_campaign(machine: str, kind: str, kernels: set[str]) -> None:
    """`python -m tools.random_layers --kind grouped` runs many more."""
    found = check(batch(40, 0, size=40, kind=kind), Place(machine, "portable"), Choices.of(0))
    assert not found.wrong
    assert {f"tinyml_{name}" for name in kernels} <= set(found.kernels)
