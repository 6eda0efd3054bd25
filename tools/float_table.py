# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Instructions per multiplication of float models on the cores whose float kernels differ."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.bench.measure import measure
from tinyml.cores.machines import Machine
from tinyml.pipeline import Options

MODELS = (
    ("image classifier", "alibaba_ic_float.onnx"),
    ("autoencoder, 1-D", "deeploy_ae1d_float.onnx"),
    ("magic wand", "mlonmcu_magicwand_float.tflite"),
)
PLAIN = "qemu-riscv32"
CORES = {
    "Cortex-M4": "qemu-cortex-m4",
    "Cortex-M55": "qemu-cortex-m55",
    "RISC-V with an FPU, plain C": PLAIN,
    "`riscv32-zve32f`": "qemu-riscv32-zve32f",
}


def with_fpu() -> Machine:
    """The machine of plain C, with floating-point registers: GCC compiles the C of the target riscv32."""
    found = harness.find_machine(PLAIN)
    flags = ("-march=rv32imafc", "-mabi=ilp32f")
    return replace(found, target=replace(found.target, gcc_flags=flags))


def rows(models: Path) -> Iterator[str]:
    """The lines of the table."""
    yield f"| model | {' | '.join(CORES)} |"
    yield f"|---|{'---:|' * len(CORES)}"
    with mock.patch.dict(harness.MACHINES, {PLAIN: with_fpu()}):
        for title, name in MODELS:
            counts = [measure(models / name, core, "portable", Options()) for core in CORES.values()]
            yield f"| {title} | {' | '.join(f'{row.instructions / row.macs:.2f}' for row in counts)} |"
