# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float layers with float16 weights on every core: the bits of the same layers with float32 weights."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.standalone.test_float_kernels import CASES, fed
from tests.standalone.test_float_kernels import layers as float_layers
from tests.support.any_plan import any_plan
from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import Array, DType, Graph, Tensor
from tinyml.ops.dense.dense import Dense
from tinyml.pipeline import Compiled, Options, compile_graph

MACHINES = ["host", *harness.CORES, "qemu-riscv32-zve32f"]
EXTREMES = np.array([0.0, -0.0, 2.0**-24, -(2.0**-24), 1023 * 2.0**-24, 2.0**-14, 65504.0], np.float32)
"""Among them the numbers below the normal ones, which have no fraction of their own as floats."""


@cache
def layers() -> Graph:
    graph, rng = float_layers(), np.random.default_rng(7)
    tensors = dict(graph.tensors)
    for name in CASES:
        values = tensors[f"{name}_w"].value.astype(np.float16).astype(np.float32)
        some = rng.random(values.shape) < 0.1
        values[some] = rng.choice(EXTREMES, some.sum())
        tensors[f"{name}_w"] = Tensor.constant(f"{name}_w", values)
    return replace(graph, tensors=tensors)


def compiled(machine: str, optimize: str) -> Compiled:
    target = harness.find_machine(machine).target.name
    options = Options(target=target, kernels="portable", optimize=optimize)
    with any_plan():
        return compile_graph(layers(), "floats", Provenance("floats", "0" * 64, ""), options)


def outputs(machine: str, optimize: str) -> dict[str, Array]:
    build = harness.Options(strict=True, sanitize=machine == "host")
    files = compiled(machine, optimize).files
    return dict(harness.run_files(files, machine, [fed()], options=build).outputs[0])


@pytest.mark.parametrize("machine", MACHINES)
def test_results_are_those_of_floats(machine: str) -> None:
    found, wanted = outputs(machine, "balanced"), outputs(machine, "speed")
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name].view(np.uint32), values.view(np.uint32), name)


def test_every_layer_has_a_kernel_for_float16() -> None:
    """But with `optimize: speed`, where the conversions would cost instructions."""
    names = {one.kernel.name for one in compiled("qemu-cortex-m4", "balanced").selected}
    assert names == {
        "tinyml_conv_apart_f32_f16",
        "tinyml_conv_f32_f16",
        "tinyml_dense_f32_f16",
        "tinyml_depthwise_conv_f32_f16",
    }
    plain = {one.kernel.name for one in compiled("qemu-cortex-m4", "speed").selected}
    assert {f"{name}_f16" for name in plain} == names


@pytest.mark.parametrize("machine", ["qemu-cortex-m4", "qemu-cortex-m55"])
def test_the_fpu_widens_single_weights_too(machine: str) -> None:
    """Five outputs are too few for a tile of eight; integers would take more than twice the instructions."""
    sketch = Sketch(seed=5)
    values = sketch.rng.normal(0, 0.3, (5, 256)).astype(np.float16).astype(np.float32)
    x = sketch.input((1, 256), DType.FLOAT32)
    graph = sketch.graph(sketch.add(Dense(), x, sketch.constant(values), sketch.real(5)))
    target = harness.find_machine(machine).target.name
    counts = {}
    for goal in ("speed", "size"):
        options = Options(target=target, kernels="portable", optimize=goal)
        found = compile_graph(graph, "few", Provenance("few", "0" * 64, ""), options)
        assert found.selected[0].kernel.weights_are_float16 == (goal == "size")
        zeros = {x.name: np.zeros((1, 256), np.float32)}
        run = harness.run_files(found.files, machine, [zeros], options=harness.Options(profile=True))
        assert run.layers is not None
        counts[goal] = run.layers[0]
    assert counts["size"] < 1.7 * counts["speed"]
