# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Armv8-M cores that run practically the code of another one: a selection of the tests, not all."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tinyml import harness
from tinyml.cores.machines import MACHINES
from tinyml.cores.targets import find_target
from tinyml.cores.toolchains import ARM
from tinyml.datasets.model_inputs import load_samples
from tinyml.harness import tools
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, WARNINGS
from tinyml.ir.interpreter import interpret
from tinyml.pipeline import Options, compile_model

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "digits" / "model.onnx"
ALIKE = [name for name in MACHINES if name.startswith("qemu-cortex-m33")]


def instructions(machine: str) -> int:
    """Of one run of the digits sample, whose results must be those of the interpreter."""
    compiled = compile_model(DIGITS, Options(target=MACHINES[machine].target.name))
    samples = load_samples(None, compiled.graph)[:2]
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


@pytest.mark.skipif(shutil.which("clang-19") is None, reason="no clang-19, which knows the Cortex-M85")
def test_a_compiler_that_knows_the_cortex_m85(tmp_path: Path) -> None:
    """GCC does from version 13 on. All Helium kernels, and a model that uses some of them."""
    compiled = compile_model(DIGITS, Options(target="cortex-m85", kernels="portable"))
    for name, text in compiled.files.items():
        (tmp_path / name).write_text(text)
    used = {RUNTIME_C / name for name in compiled.summary["sources"]["runtime"]}
    kernels = sorted(used | set(RUNTIME_C.glob("*/*_mve_*.c")))
    assert len(kernels) >= 4
    headers = Path(shutil.which("arm-none-eabi-gcc") or "/").parents[1] / "lib" / "arm-none-eabi" / "include"
    flags = [
        *("--target=thumbv8.1m.main-none-eabihf", "-mcpu=cortex-m85", "-O2", "-std=c11", *WARNINGS),
        *("-isystem", str(headers), f"-I{RUNTIME_INCLUDE}", f"-I{RUNTIME_C}"),
    ]
    sources = map(str, (tmp_path / f"{compiled.name}.c", *kernels))
    subprocess.run(["clang-19", *flags, "-c", *sources], cwd=tmp_path, check=True)
    assert "tinyml_conv_mve_s8" in tools.defined(ARM, tmp_path / "conv_mve_s8.o")
