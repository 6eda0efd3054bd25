# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Xtensa: plain C on three of QEMU's cores, where Debian's compiler is installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests import toy
from tinyml import harness
from tinyml.base.errors import ToolError
from tinyml.cores.toolchains import XTENSA
from tinyml.datasets.model_inputs import load_samples
from tinyml.harness import tools
from tinyml.harness.program_build import HARNESS_C
from tinyml.ir.interpreter import interpret
from tinyml.pipeline import Options, compile_model

MACHINES = [name for name in harness.MACHINES if name.startswith("qemu-xtensa")]
DIGITS = Path(__file__).resolve().parents[2] / "samples" / "digits" / "model.onnx"
CHECK = Path(__file__).resolve().parents[1] / "support" / "libgcc_lx106_check.c"


@pytest.fixture
def compiler() -> None:
    if absent := list(XTENSA.missing()):
        pytest.skip(f"no {', '.join(f'{part.name} (package {part.debian})' for part in absent)}")


@pytest.fixture
def folder(tmp_path: Path, compiler: None) -> Path:
    return toy.write(tmp_path, harness.find_machine(MACHINES[0]).target.name)


def check(model: Path, machine: str) -> None:
    compiled = compile_model(model, Options(target="generic"))
    samples = load_samples(None, compiled.graph)
    found = harness.run_files(compiled.files, machine, samples, options=harness.Options(strict=True))
    for outputs, expected in zip(found.outputs, interpret(compiled.graph, samples), strict=True):
        for name, value in outputs.items():
            np.testing.assert_array_equal(value, expected[name])


def test_digits(compiler: None) -> None:
    """With float layers at both ends, which use the arithmetic that the compiler's library lacks."""
    check(DIGITS, MACHINES[0])


@pytest.mark.parametrize("machine", MACHINES)
def test_keyword_spotting(machine: str, compiler: None, models_folder: Path) -> None:
    check(models_folder / "mlperf_kws_int8.tflite", machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_each_instruction_counts(machine: str, folder: Path) -> None:
    """A loop: every length counts as many more than the one before."""
    rounds = [1, 2, 3, 4, 10, 11, 100_000, 100_001]
    counted = harness.run(folder, machine, [toy.sample(n) for n in rounds]).instructions
    assert counted is not None
    step = counted[1] - counted[0]
    assert [count - counted[0] for count in counted] == [step * (n - 1) for n in rounds]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "mode, words",
    [
        (toy.BUS_FAULT, "memory that does not exist, address 0xf0000000, in toy_"),
        (toy.STACK_OVERFLOW, "the stack overflowed"),
        (toy.UNDEFINED_INSTRUCTION, "an instruction this core does not have, in toy_"),
    ],
)
def test_faults_are_named(machine: str, folder: Path, mode: int, words: str) -> None:
    with pytest.raises(ToolError, match=f"toy crashed on {machine}: .*{words}"):
        harness.run(folder, machine, [toy.sample(), toy.sample(mode)])


def test_the_arithmetic_that_the_library_lacks(tmp_path: Path) -> None:
    """On the host, where every result can be compared."""
    program = tmp_path / "check"
    source = f'-DLIBGCC_LX106="{(HARNESS_C / "libgcc_lx106.c").as_posix()}"'
    command = [str(tools.host_compiler().path), "-O2", "-ffp-contract=off", source, str(CHECK)]
    subprocess.run([*command, "-o", str(program)], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
