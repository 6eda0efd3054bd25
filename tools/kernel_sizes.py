# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sizes and costs of kernels on RISC-V, from single layers: how kernels are chosen there.

``python -m tools.kernel_sizes`` links every kernel alone, fits what it takes to the layers that
``python -m tools.kernel_counts`` counted, and writes plugin/tinyml/cost/data/kernels. It takes a minute.
"""

from __future__ import annotations

import json
import sys

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.cores.core_data import kernels_file
from tools import code_tables
from tools.cost_examples import single_layers
from tools.fit_speed import fit_speed

MACHINES = ("qemu-riscv32", "qemu-riscv32-zve32x")


def sizes_on(machine: str) -> dict[str, object]:
    """The pieces of code, and which of them each function links."""
    linked = code_tables.library_functions(harness.find_machine(machine), ())
    kernels = {name: pieces for name, pieces in linked.items() if name.startswith(("tinyml_", "arm_"))}
    sizes = {piece: size for pieces in kernels.values() for piece, size in pieces}
    numbers = {piece: number for number, piece in enumerate(sorted(sizes))}
    functions = {name: sorted(numbers[piece] for piece, _ in kernels[name]) for name in sorted(kernels)}
    return {
        "code": {"pieces": [[piece, sizes[piece]] for piece in sorted(sizes)], "functions": functions},
        "instructions": {"kernels": fit_speed(single_layers(machine, "instructions")).kernels},
    }


def main() -> int:
    for machine in MACHINES:
        file = kernels_file(harness.find_machine(machine).target.name)
        file.parent.mkdir(exist_ok=True)
        rows = json.dumps(sizes_on(machine), indent=1).replace("\n    ", " ").replace("\n   ]", " ]")
        file.write_text(rows + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
