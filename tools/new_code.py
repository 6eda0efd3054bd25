# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Add the code of functions that were never linked alone to plugin/tinyml/cost/data: python -m tools.new_code

Everything else in these files stays as it is. ``tools.fit_costs`` and ``tools.kernel_sizes`` measure all
functions again; this is for kernels that are new, whose layers were not counted yet.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.cores.core_data import data_file, kernels_file
from tools import code_tables, kernel_sizes, layer_counts
from tools.fit_costs import narrow


def extended(code: dict[str, Any], machine: str) -> dict[str, Any]:
    """The same table with what is missing in it."""
    new = code_tables.library_functions(harness.find_machine(machine), (), code["functions"])
    new = {name: pieces for name, pieces in new.items() if name.startswith("tinyml_")}
    names = [piece for piece, _ in code["pieces"]]
    functions = {name: [names[piece] for piece in pieces] for name, pieces in code["functions"].items()}
    sizes = dict(code["pieces"])
    for name, linked in new.items():
        functions[name] = [piece for piece, _ in linked]
        sizes.update({piece: size for piece, size in linked if piece not in sizes})
    numbers = {piece: number for number, piece in enumerate(sorted(sizes))}
    return {
        **code,
        "pieces": [[piece, sizes[piece]] for piece in sorted(sizes)],
        "functions": {name: sorted(numbers[p] for p in functions[name]) for name in sorted(functions)},
    }


def update(file: Path, machine: str) -> None:
    data = json.loads(file.read_text(encoding="utf-8"))
    data["code"] = extended(data["code"], machine)
    text = json.dumps(data, indent=1)
    if file == kernels_file(harness.find_machine(machine).target.name):
        text = text.replace("\n    ", " ").replace("\n   ]", " ]")
    else:
        text = narrow(text)
    file.write_text(text + "\n", encoding="utf-8")


def main() -> int:
    for machine in layer_counts.MACHINES:
        update(data_file(harness.find_machine(machine).target.name), machine)
    for machine in kernel_sizes.MACHINES:
        update(kernels_file(harness.find_machine(machine).target.name), machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
