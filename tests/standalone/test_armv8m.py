# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Armv8-M cores that run practically the code of another one: a selection of the tests, not all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tinyml import arrays, harness
from tinyml.interpret import interpret
from tinyml.machines import MACHINES
from tinyml.pipeline import Options, compile_model
from tinyml.targets import find_target

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "digits" / "model.onnx"
ALIKE = [name for name in MACHINES if name.startswith("qemu-cortex-m33")]


def instructions(machine: str) -> int:
    """Of one run of the digits sample, whose results must be those of the interpreter."""
    compiled = compile_model(DIGITS, Options(target=MACHINES[machine].target.name))
    samples = arrays.load_samples(None, compiled.graph)[:2]
    found = harness.run_files(compiled.files, machine, samples, options=harness.Options(strict=True))
    for outputs, expected in zip(found.outputs, interpret(compiled.graph, samples), strict=True):
        for name, value in outputs.items():
            np.testing.assert_array_equal(value, expected[name])
    assert found.instructions is not None
    return found.instructions[0]


@pytest.mark.parametrize("machine", ALIKE)
def test_the_same_results_and_nearly_the_same_instructions(machine: str) -> None:
    """The compiler may schedule differently for each core."""
    assert instructions(machine) == pytest.approx(instructions(MACHINES[machine].like), rel=0.05)


def test_code_for_the_cortex_m85(monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU has no Cortex-M85, but its Cortex-M55 has the same instructions."""
    same = instructions("qemu-cortex-m55")
    emulated = replace(MACHINES["qemu-cortex-m55"], target=find_target("cortex-m85"))
    monkeypatch.setitem(MACHINES, emulated.name, emulated)
    assert instructions(emulated.name) == pytest.approx(same, rel=0.05)
