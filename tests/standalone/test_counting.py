# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The clocks of emulated cores count instructions: a loop of known length takes what it must, everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyml import harness
from tinyml.datasets import arrays
from tinyml.pipeline import Options, compile_model

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "digits" / "model.onnx"
MACHINES = [*harness.CORES, "qemu-riscv32-zve32x"]  # the last one has a compiler of its own
BEGIN = "int model_run(void)\n{\n"
LOOPS = {
    "arm": '".syntax unified\\n1: subs %0, #1\\n bne 1b" : "+l"(turns) : : "cc"',
    "riscv": '"1: addi %0, %0, -1\\n bnez %0, 1b" : "+r"(turns)',
}
EACH = 2  # instructions of a turn
TURNS = (1_000, 1_007, 70_000, 3_000_001)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_loop_of_known_length(machine: str) -> None:
    """Only differences matter: what surrounds the loop is the same for any number of turns."""
    place = harness.find_machine(machine)
    compiled = compile_model(DIGITS, Options(target=place.target.name, kernels="portable"))
    samples = [arrays.pattern_inputs(compiled.graph)]
    loop = LOOPS["arm" if place.target.arm else "riscv"]

    def spent(turns: int) -> int:
        asm = f"\tuint32_t turns = {turns}u;\n\n\t__asm volatile({loop});\n"
        source = compiled.files["model.c"]
        assert BEGIN in source
        files = {**compiled.files, "model.c": source.replace(BEGIN, BEGIN + asm)}
        counted = harness.run_files(files, machine, samples).instructions
        assert counted is not None
        return counted[0]

    first, *others = (spent(turns) for turns in TURNS)
    found = [count - first for count in others]
    constant = 1  # a large number may take an instruction more to load
    for turns, count in zip(TURNS[1:], found, strict=True):
        assert abs(count - EACH * (turns - TURNS[0])) <= constant
