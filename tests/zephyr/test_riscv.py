# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""RISC-V in Zephyr, on qemu_riscv32: the sample computes what the host does, and instructions are counted.

The tests of the shell, of threads and of user mode list the board too; they take minutes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.zephyr.building import DIGITS, TWISTER_SECONDS, environment, twister
from tinyml.cores.toolchains import RISCV
from tinyml.harness.zephyr.compilers import compiler_for
from tinyml.verbs.cli import main

pytestmark = pytest.mark.timeout(TWISTER_SECONDS)

BOARD = "qemu_riscv32"
ABSENT = [part.name for part in (RISCV.compiler, RISCV.emulator) if part in RISCV.missing()]

if ABSENT:
    pytest.skip(f"{BOARD}: no {', '.join(ABSENT)}; see `tinyml doctor`", allow_module_level=True)


@pytest.mark.deep
def test_digits(tmp_path: Path) -> None:
    # Debian's linker warns of what Zephyr's linker script does, which Twister would take for an error.
    options, more = "--disable-warnings-as-errors", compiler_for(BOARD, environment())
    results = twister([DIGITS], [BOARD], tmp_path, options, more=more)
    assert [status for (name, _), status in results.items() if name == "sample.tinyml.digits"] == ["passed"]


def integer_instructions(report: Path) -> int:
    """Without the two layers in float, which Zephyr compiles for the FPU and the bare machine does not."""
    layers = json.loads(report.read_text())["layers"]
    return sum(layer["instructions"] for layer in layers if layer["op"] not in ("Quantize", "Dequantize"))


def test_layers_are_counted(tmp_path: Path) -> None:
    """`profile` in an image: as many instructions as without Zephyr."""
    image, bare = tmp_path / "image.json", tmp_path / "bare.json"
    model = [str(DIGITS / "model.onnx"), "--kernels", "portable", "--json"]
    assert main(["profile", *model, str(image), "-b", BOARD]) == 0
    assert main(["profile", *model, str(bare), "--on", "qemu-riscv32"]) == 0
    assert integer_instructions(image) == pytest.approx(integer_instructions(bare), rel=0.01)
