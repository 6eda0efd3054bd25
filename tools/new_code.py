# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Add code and costs of new kernels to plugin/tinyml/cost/data: python -m tools.new_code [--on ...] [--costs]

Functions that were never linked alone get their sizes. Kernels without figures for instructions and cycles
get those that fit the layers that they were counted on (``python -m tools.kernel_counts``). Everything else
in these files stays as it is; ``tools.fit_costs`` and ``tools.kernel_sizes`` measure and fit all again.
``--costs`` leaves sizes as they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.cores.core_data import data_file, kernels_file
from tinyml.ops.framework.kernel_costs import Figures, variant
from tinyml.ops.framework.work import work
from tools import code_tables, kernel_sizes, layer_counts
from tools.cost_examples import Known, single_layers
from tools.fit_costs import narrow
from tools.fit_speed import fit_speed


def extended(code: dict[str, Any], machine: str) -> dict[str, Any]:
    """The same table with what is missing in it."""
    new = code_tables.library_functions(harness.find_machine(machine), (), code["functions"])
    new = {name: pieces for name, pieces in new.items() if name.startswith(("tinyml_", "arm_"))}
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


def with_figures(speed: dict[str, Any], machine: str, cost: str) -> dict[str, Any]:
    """The same figures, and those of kernels that have none."""
    known = {name.split()[0] for name in speed["kernels"]}
    new = [one for one in single_layers(machine, cost) if one.kernel.name not in known]
    fitted = fit_speed(new).kernels
    return {
        **speed,
        "kernels": dict(sorted({**fitted, **_any_taps(new, fitted), **speed["kernels"]}.items())),
    }


def _any_taps(layers: list[Known], fitted: Mapping[str, Figures]) -> dict[str, Figures]:
    """Of kernels that were counted on windows of a special size alone: its figures, for others too."""
    keys = {one.kernel.name: variant(one.kernel, work(one.layer)) for one in layers}
    return {name: fitted[key] for name, key in keys.items() if name not in fitted}


def update(file: Path, machine: str, sizes: bool) -> None:
    data = json.loads(file.read_text(encoding="utf-8"))
    if sizes:
        data["code"] = extended(data["code"], machine)
    for cost in ("instructions", "cycles"):
        if data.get(cost):
            data[cost] = with_figures(data[cost], machine, cost)
    text = json.dumps(data, indent=1)
    if file == kernels_file(harness.find_machine(machine).target.name):
        text = text.replace("\n    ", " ").replace("\n   ]", " ]")
    else:
        text = narrow(text)
    file.write_text(text + "\n", encoding="utf-8")


def main() -> int:
    machines = (*layer_counts.MACHINES, *kernel_sizes.MACHINES)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--on", default=",".join(machines), metavar="MACHINES", help="default: %(default)s")
    parser.add_argument("--costs", action="store_true", help="add no sizes of functions")
    args = parser.parse_args()
    for machine in args.on.split(","):
        target = harness.find_machine(machine).target.name
        file = kernels_file(target) if machine in kernel_sizes.MACHINES else data_file(target)
        update(file, machine, not args.costs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
