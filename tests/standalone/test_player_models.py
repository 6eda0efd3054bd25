# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Published integer models as data: the player's outputs equal those of compiled code in every bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.goldens import Published, feeds, published, resets
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.pipeline import Options, compile_graph
from tinyml.slots.data import data_image
from tinyml.slots.play import play_files
from tinyml.slots.version import Version

ABSENT = pytest.mark.skip(reason="no published models here (TINYML_MODELS names their folder)")
MACHINES = ("host", "qemu-cortex-m0", "qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m55", "qemu-riscv32")
STEPS = 2


def cases() -> list[Any]:
    found = [
        pytest.param(model, machine, id=f"{model}-{machine}")
        for model in published()
        if model.is_int8
        for machine in MACHINES
    ]
    return found or [pytest.param(None, "", id="models", marks=ABSENT)]


@pytest.mark.tenth
@pytest.mark.parametrize("model, machine", cases())
def test_published_model(model: Published, machine: str) -> None:
    target = harness.find_machine(machine).target.name
    origin = Provenance(model.path.name, model.row["sha256"], "")
    options = Options(name="net", target=target, kernels="portable")
    compiled = compile_graph(model.graph(taps=False), "net", origin, options)
    steps = model.steps()[:STEPS]
    inputs, starts = list(feeds(compiled.graph, steps)), resets(steps)
    image = data_image(compiled, Version(1, 0, 0, 0)).content
    wanted = harness.run_files(compiled.files, machine, inputs, reset_before=starts).outputs
    found = harness.run_files(play_files(image, target), machine, inputs, reset_before=starts).outputs
    for ours, theirs in zip(found, wanted, strict=True):
        for name, values in theirs.items():
            np.testing.assert_array_equal(ours[name], values)
