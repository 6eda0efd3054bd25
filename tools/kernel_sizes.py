# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sizes and costs of kernels on RISC-V, from single layers: how kernels are chosen there.

``python -m tools.kernel_sizes [--new]`` links every kernel alone, fits what it takes to the layers that
``python -m tools.kernel_counts`` counted, and writes plugin/tinyml/cost/data/kernels. It takes a minute.
With ``--new``, kernels that have figures keep them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.cores.core_data import kernels_file
from tools import code_tables
from tools.cost_examples import single_layers
from tools.fit_speed import fit_speed

MACHINES = ("qemu-riscv32", "qemu-riscv32-zve32x")


def sizes_on(machine: str) -> dict[str, Any]:
    """The pieces of code, and which of them each function links."""
    linked = code_tables.library_functions(harness.find_machine(machine), ())
    kernels = {name: pieces for name, pieces in linked.items() if name.startswith(("tinyml_", "arm_"))}
    return {
        "code": tables(kernels),
        "instructions": {"kernels": fit_speed(single_layers(machine, "instructions")).kernels},
    }


def tables(linked: Mapping[str, Iterable[tuple[str, int]]]) -> dict[str, Any]:
    """What functions link, by the numbers of pieces of code."""
    sizes = {piece: size for pieces in linked.values() for piece, size in pieces}
    numbers = {piece: number for number, piece in enumerate(sorted(sizes))}
    functions = {name: sorted(numbers[piece] for piece, _ in linked[name]) for name in sorted(linked)}
    return {"pieces": [[piece, sizes[piece]] for piece in sorted(sizes)], "functions": functions}


def linked_by(code: Mapping[str, Any]) -> dict[str, list[tuple[str, int]]]:
    """The reverse of ``tables``."""
    pieces = [(piece, size) for piece, size in code["pieces"]]
    return {name: [pieces[number] for number in numbers] for name, numbers in code["functions"].items()}


def with_new(old: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """The old figures, and those of kernels that have none."""
    known, fitted = old["instructions"]["kernels"], found["instructions"]["kernels"]
    new = {key.split()[0] for key in fitted.keys() - known.keys()}
    linked = {name: pieces for name, pieces in linked_by(found["code"]).items() if name in new}
    kernels = {key: fitted[key] if key not in known else known[key] for key in sorted({*known, *fitted})}
    return {
        "code": tables({**linked, **linked_by(old["code"])}),
        "instructions": {"kernels": kernels},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--new", action="store_true", help="keep the figures of kernels that have some")
    args = parser.parse_args()
    for machine in MACHINES:
        file = kernels_file(harness.find_machine(machine).target.name)
        file.parent.mkdir(exist_ok=True)
        found = sizes_on(machine)
        if args.new:
            found = with_new(json.loads(file.read_text(encoding="utf-8")), found)
        rows = json.dumps(found, indent=1).replace("\n    ", " ").replace("\n   ]", " ]")
        file.write_text(rows + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
