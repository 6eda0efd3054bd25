# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The harness on every QEMU machine, with the hand-written model of ``tests/toy``."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import toy
from tinyml import harness
from tinyml.base.errors import BudgetError, ConfigError, ToolError
from tinyml.harness.footprint import CMSIS_NN, HARNESS, LIBRARY, MODEL
from tinyml.harness.generated import read_generated
from tinyml.setup.workspace import find_cmsis_nn

ARMV6M = "qemu-cortex-m0"
"""Has neither a register for the causes of faults nor an instruction that divides."""
STRICT = harness.Options(strict=True)


@pytest.fixture(params=harness.CORES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path, machine: str) -> Path:
    return toy.write(tmp_path, harness.find_machine(machine).target.name)


def test_outputs_and_state(folder: Path, machine: str) -> None:
    samples = [toy.sample(x=(index, 2, 3, 4)) for index in range(4)]
    result = harness.run(folder, machine, samples, reset_before={2}, options=STRICT)
    assert [int(out["runs"][0]) for out in result.outputs] == [1, 2, 1, 2]
    for sample, out, earlier in zip(samples, result.outputs, (0, 1, 0, 1), strict=True):
        np.testing.assert_array_equal(out["y"], sample["x"] + toy.OFFSETS + earlier)
    assert result.console == "toy: done\n"


def test_absolute_instruction_count(folder: Path, machine: str) -> None:
    options = harness.Options(defines=("TOY_COUNTED",))
    assert harness.run(folder, machine, [toy.sample()] * 3, options=options).instructions == [2003] * 3


def test_each_instruction_counts(folder: Path, machine: str) -> None:
    """A loop of two instructions: every length counts exactly two more than the one before."""
    rounds = [*range(1, 60), 100_000, 10_000_000]
    counted = harness.run(folder, machine, [toy.sample(n) for n in rounds]).instructions
    assert counted is not None
    assert [count - counted[0] for count in counted] == [2 * (n - 1) for n in rounds]


def test_stack_high_water(folder: Path, machine: str) -> None:
    shallow = harness.run(folder, machine, [toy.sample()]).stack_bytes
    deep = harness.run(folder, machine, [toy.sample(), toy.sample(toy.DEEP_STACK), toy.sample()]).stack_bytes
    assert shallow is not None
    assert deep is not None
    assert shallow < 64
    assert 1024 <= deep < 1024 + 64


def test_footprint(folder: Path, machine: str) -> None:
    footprint = harness.run(folder, machine, [toy.sample()]).footprint
    assert footprint is not None
    model = footprint.part(MODEL)
    assert 512 <= footprint.weights_bytes < 512 + 256  # the table of offsets, and the description
    assert 100 < model.text < 1000
    assert model.data == 0
    assert model.bss >= 8 + 4 + 8 + 4 + 4
    assert footprint.part(HARNESS).text > 0
    assert footprint.total.flash == sum(
        sizes.flash for name, sizes in footprint.parts.items() if name != HARNESS
    )


def test_footprint_agrees_with_the_image(folder: Path, machine: str, tmp_path: Path) -> None:
    """No byte of the linked sections is missing but what the linker adds for alignment."""
    from elftools.elf.elffile import ELFFile

    image = harness.build(read_generated(folder), harness.find_machine(machine), tmp_path)
    assert image.footprint is not None
    with image.path.open("rb") as stream:
        sections = {section.name: section["sh_size"] for section in ELFFile(stream).iter_sections()}
    for kind in ("text", "rodata"):
        counted = sum(getattr(sizes, kind) for sizes in image.footprint.parts.values())
        assert 0 <= sections[f".{kind}"] - counted < 64


@pytest.mark.parametrize(
    "mode, words",
    [
        (toy.BUS_FAULT, "memory that does not exist, address 0xf0000000, in toy_"),
        (toy.STACK_OVERFLOW, "the stack overflowed"),
        (toy.UNDEFINED_INSTRUCTION, "an instruction this core does not have, in toy_"),
    ],
)
def test_faults_are_named(folder: Path, machine: str, mode: int, words: str) -> None:
    if machine == ARMV6M and mode == toy.BUS_FAULT:
        pytest.skip("QEMU's microbit reads zeros where it has no memory")
    if machine == ARMV6M and mode == toy.UNDEFINED_INSTRUCTION:
        words = "a fault whose cause this core does not record, in toy_"
    with pytest.raises(ToolError, match=f"toy crashed on {machine}: .*{words}"):
        harness.run(folder, machine, [toy.sample(), toy.sample(mode)])


def test_division_by_zero(folder: Path, machine: str) -> None:
    """A fault that Arm cores can be configured to raise; RISC-V computes -1, libgcc on Armv6-M 0."""
    if machine == ARMV6M:
        harness.run(folder, machine, [toy.sample(toy.DIVISION_BY_ZERO)])  # toy_run() returns the quotient
        return
    words = r"toy_run\(\) returned -1" if machine == "qemu-riscv32" else "crashed.*division by zero, in toy_"
    with pytest.raises(ToolError, match=words):
        harness.run(folder, machine, [toy.sample(), toy.sample(toy.DIVISION_BY_ZERO)])


def test_hang_is_ended(folder: Path, machine: str) -> None:
    with pytest.raises(ToolError, match=r"did not finish on .* within 2 seconds"):
        harness.run(folder, machine, [toy.sample(toy.ENDLESS_LOOP)], timeout_seconds=2)


def test_failure_of_the_model(folder: Path, machine: str) -> None:
    with pytest.raises(ToolError, match=r"toy_run\(\) returned 7 on sample 1"):
        harness.run(folder, machine, [toy.sample(), toy.sample(toy.FAILURE)])


def test_cmsis_nn_is_linked(tmp_path: Path, machine: str) -> None:
    if find_cmsis_nn() is None:
        pytest.skip("no CMSIS-NN here (TINYML_CMSIS_NN, or a west workspace)")
    source = "Source/ActivationFunctions/arm_relu_q15.c"
    toy.write(tmp_path, harness.find_machine(machine).target.name, cmsis_nn=[source])
    options = harness.Options(defines=("TOY_CMSIS_NN",), strict=True)
    result = harness.run(tmp_path, machine, [toy.sample(x=(-500, 1, -301, 1))], options=options)
    np.testing.assert_array_equal(result.outputs[0]["y"], [[0, 201], [0, 401]])
    assert result.footprint is not None
    assert result.footprint.part(CMSIS_NN).text > 0


def test_c_library_is_linked(folder: Path, machine: str) -> None:
    """Transcendental functions, 64-bit division, double precision: with or without an FPU."""
    options = harness.Options(defines=("TOY_LIBRARY",), strict=True)
    result = harness.run(folder, machine, [toy.sample(x=(5, 3, 1, 0))], options=options)
    expected = [5, 32, 800, round(1000 * math.tanh(math.erf(1)))]
    assert result.outputs[0]["y"].reshape(-1).tolist() == expected
    assert result.footprint is not None
    assert result.footprint.part(LIBRARY).text > 1000


def test_too_large_for_the_machine(tmp_path: Path) -> None:
    toy.write(tmp_path, "cortex-m3")
    text = (tmp_path / "toy.c").read_text()
    (tmp_path / "toy.c").write_text(text.replace("toy_offsets[256]", "toy_offsets[3000000]"))
    with pytest.raises(BudgetError, match="does not fit into the memory of this machine"):
        harness.run(tmp_path, "qemu-cortex-m3", [toy.sample()])


def test_sanitizers_are_for_the_host(tmp_path: Path) -> None:
    toy.write(tmp_path, "cortex-m3")
    with pytest.raises(ConfigError, match="qemu-cortex-m3 has no sanitizers"):
        harness.run(tmp_path, "qemu-cortex-m3", [toy.sample()], options=harness.Options(sanitize=True))


def test_console_through_pytest_embedded(
    folder: Path, machine: str, tmp_path: Path, start_image: Callable[[harness.Image], Any]
) -> None:
    """The image as a device under test: its console, line by line, and its exit status."""
    model = read_generated(folder)
    image = harness.build(model, harness.find_machine(machine), tmp_path)
    harness.execute(image, model, [toy.sample(toy.DEEP_STACK)])  # leaves its samples next to the image
    dut, process = start_image(image)
    dut.expect_exact("toy: done", timeout=20)
    assert process.wait(10) == 0


def test_fault_report_through_pytest_embedded(
    folder: Path, machine: str, tmp_path: Path, start_image: Callable[[harness.Image], Any]
) -> None:
    model = read_generated(folder)
    image = harness.build(model, harness.find_machine(machine), tmp_path)
    with pytest.raises(ToolError):
        harness.execute(image, model, [toy.sample(toy.UNDEFINED_INSTRUCTION)])
    dut, process = start_image(image)
    dut.expect_exact("fault", timeout=20)
    reports = {"qemu-riscv32": ("mcause", 2, 0x80000000), ARMV6M: ("cfsr", 0, 0)}
    register, cause, code = reports.get(machine, ("cfsr", 1 << 16, 0))
    assert int(dut.expect(rf"{register} ([0-9a-f]{{8}})").group(1), 16) == cause
    assert 0 <= int(dut.expect(r"pc ([0-9a-f]{8})").group(1), 16) - code < 4 * 2**20
    assert process.wait(10) == 3
