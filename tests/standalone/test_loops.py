# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops of layers on emulated cores: equal to numpy, and no more code for more steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tests.support import loop_models as models
from tinyml import harness
from tinyml.bounds import bound_files
from tinyml.ir.interpreter import interpret
from tinyml.pipeline import Options, compile_model, read_graph

CHECKED = harness.Options(check_arena=True)
MODELS: dict[str, Callable[[int], onnx.ModelProto]] = {
    "scan": lambda n: models.filter_scan(n, scan_input_directions=[1, 0]),
    "loop": models.counted_loop,
    "nested": lambda n: models.nested_loop(n, n + 50),
    "quantized": models.qdq_scan,
    "with a condition": lambda n: models.settling_loop(n, begins=True),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("machine", ["qemu-cortex-m3", "qemu-cortex-m4"])
def test_loops(machine: str, name: str) -> None:
    model = MODELS[name](40)
    sample = models.sample(model)
    compiled = compile_model(models.file(model), Options(target=harness.find_machine(machine).target.name))
    assert "Loop" in [one.layer.op.kind for one in compiled.selected]
    (found,) = harness.run_files(compiled.files, machine, [sample], options=CHECKED).outputs
    (wanted,) = interpret(read_graph(models.file(model)), [sample])
    for output in found:
        np.testing.assert_allclose(found[output], wanted[output], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_code_of_many_steps(name: str) -> None:
    """30 and 1,000 steps: some numbers no longer fit into short instructions."""
    sizes = []
    for steps in (30, 1000):
        model = MODELS[name](steps)
        compiled = compile_model(models.file(model), Options(target="cortex-m4"))
        result = harness.run_files(compiled.files, "qemu-cortex-m4", [models.sample(model)])
        assert result.footprint is not None
        sizes.append(result.footprint.code_bytes)
    assert abs(sizes[1] - sizes[0]) <= 48


@pytest.mark.parametrize("name", ["scan", "nested", "with a condition"])
def test_bounds_hold(name: str) -> None:
    """Also with all turns that a condition allows: no state is smaller than -1."""
    machine = harness.find_machine("qemu-cortex-m4")
    model = MODELS[name](40)
    sample = models.sample(model)
    if "small" in sample:
        sample |= {"small": np.asarray(-1, np.float32), "h0": np.ones((1, models.WIDTH), np.float32)}
    compiled = compile_model(models.file(model), Options(target="cortex-m4"))
    counted = harness.run_files(compiled.files, machine.name, [sample]).instructions
    assert counted is not None
    bound = bound_files(compiled.files, machine)
    assert bound.instructions is not None
    assert counted[0] <= bound.instructions <= 1.5 * counted[0]
