# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops that are data on emulated cores: every bit is that of compiled code on the same core."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest

from tests.support import loop_models as models
from tinyml import harness
from tinyml.pipeline import Options, compile_model
from tinyml.slots.data import data_image
from tinyml.slots.play import play_files
from tinyml.slots.version import Version

STEPS = 40
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "directions": lambda: models.filter_scan(
        STEPS, scan_input_directions=[0, 1], scan_output_directions=[1, 0]
    ),
    "condition": lambda: models.settling_loop(STEPS, begins=True, rows=True),
    "nested": lambda: models.settling_scan(STEPS),
    "int8": lambda: models.qdq_scan(STEPS),
    "uint8": lambda: models.integer_scan(STEPS),
}
ALWAYS = ("qemu-cortex-m0", "qemu-cortex-m4", "qemu-riscv32")
MACHINES = [
    machine if machine in ALWAYS else pytest.param(machine, marks=pytest.mark.deep)
    for machine in (*harness.CORES, "qemu-riscv32-zve32x")
]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", MODELS)
def test_loops(machine: str, name: str) -> None:
    model = MODELS[name]()
    target = harness.find_machine(machine).target.name
    compiled = compile_model(models.file(model), Options(target=target, kernels="portable"))
    played = play_files(data_image(compiled, Version(1, 0, 0, 0)).content, target)
    samples = [models.sample(model, seed) for seed in (1, 2)]
    ours, theirs = (
        harness.run_files(files, machine, samples, options=harness.Options(check_arena=checked)).outputs
        for files, checked in ((played, False), (compiled.files, True))
    )
    for found, wanted in zip(ours, theirs, strict=True):
        assert {k: v.tobytes() for k, v in found.items()} == {k: v.tobytes() for k, v in wanted.items()}
