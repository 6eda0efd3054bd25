# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The simulated device of ``slot_sim.c``, compiled under sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tinyml.harness.build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.harness.objects import Unit, compile_all
from tinyml.harness.tools import host_compiler

SOURCE = Path(__file__).parent / "slot_sim.c"


def build_simulator(folder: Path, monocypher: Path | None = None) -> Path:
    """With ``monocypher``, the folder of its sources, the device checks signatures."""
    flags: tuple[str, ...] = ("-std=gnu11", "-O1", *WARNINGS, *SANITIZERS)
    includes: tuple[Path, ...] = (Path(RUNTIME_INCLUDE),)
    units = []
    if monocypher is not None:
        flags = (*flags, "-DWITH_MONOCYPHER")
        own = [monocypher / "monocypher.c", monocypher / "optional" / "monocypher-ed25519.c"]
        includes = (*includes, monocypher, monocypher / "optional")
        units = [Unit(source, "monocypher", ("-O2", "-w"), includes) for source in own]
    sources = [SOURCE, *sorted(Path(RUNTIME_C).glob("slot/*.c"))]
    units += [Unit(source, "simulator", flags, includes) for source in sources]
    compiler = host_compiler()
    program = folder / "slot_sim"
    objects = [str(path) for path in compile_all(compiler, units)]
    subprocess.run([str(compiler.path), *SANITIZERS, *objects, "-o", str(program)], check=True)
    return program
