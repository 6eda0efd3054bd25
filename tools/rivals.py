# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The section of docs/BENCHMARKS.md about two interpreters, from benchmarks/rivals.json.

``python -m tools.rivals [FOLDER...]`` measures our rows again, for the models that the file names by SHA-256
and that are in these folders (default: ``TINYML_MODELS``). The rows of the interpreters stay as they are:
they were counted once, on the date and with the versions in the file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml.base.lazy_dataclass import dataclass
from tinyml.bench.measure import Row, measure
from tinyml.pipeline import Options

FILE = ROOT / "benchmarks" / "rivals.json"
OURS = "west-tinyml"
CORES = ("cortex-m4", "cortex-m55")
LEVELS = ("-O2", "-Os")
TEXT = """\
## Beside {rivals}

All rows were counted on {date} on one computer, with {compiler} and {emulator}. Flash is
code and constants; RAM is arena, pools, variables and the deepest stack of setting up and running. Both are
without start-up code, timer and console. Inputs and outputs of quantised models are int8. In brackets is how
many times as much the interpreter needs. The last column is what it executes once, before the first
inference; compiled models have nothing to set up.

{lost}

{tables}

{sources}"""


@dataclass(frozen=True)
class Run:
    """One runtime, one model, one core, one option of the C compiler."""

    runtime: str
    model: str
    core: str
    optimize: str
    instructions: int
    setup_instructions: int
    constants_bytes: int
    code_bytes: int
    buffers_bytes: int  # arena and state, or planned buffers and pools
    variables_bytes: int
    stack_bytes: int

    @property
    def costs(self) -> dict[str, int]:
        """What is compared."""
        return {
            "instructions": self.instructions,
            "flash": self.constants_bytes + self.code_bytes,
            "RAM": self.buffers_bytes + self.variables_bytes + self.stack_bytes,
        }

    @property
    def place(self) -> tuple[str, str, str]:
        return self.model, self.core, self.optimize


def load() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return {**content, "runs": [Run(**run) for run in content["runs"]]}


def ours(runs: list[Run]) -> dict[tuple[str, str, str], Run]:
    return {run.place: run for run in runs if run.runtime == OURS}


def theirs(runs: list[Run]) -> list[Run]:
    return [run for run in runs if run.runtime != OURS]


def lost(runs: list[Run]) -> list[str]:
    """Every figure in which we need as much as a rival, or more."""
    own = ours(runs)
    return [
        f"{cost} of {run.model} on {run.core} at {run.optimize} ({own[run.place].costs[cost]:,}, "
        f"{run.runtime} {amount:,})"
        for run in theirs(runs)
        for cost, amount in run.costs.items()
        if own[run.place].costs[cost] >= amount
    ]


def section() -> str:
    """In Markdown."""
    content = load()
    runs: list[Run] = content["runs"]
    compared = sum(len(run.costs) for run in theirs(runs))
    worse = lost(runs)
    summary = f"The compiled model needs less in all {compared} comparisons."
    if worse:
        summary = (
            f"The compiled model needs as much or more in {len(worse)} of {compared}: {'; '.join(worse)}."
        )
    tables = "\n\n".join(_table(content, name) for name in content["rivals"])
    sources = "\n".join(
        f"- **{name}**: {source}" for name, source in {**content["rivals"], **content["networks"]}.items()
    )
    return TEXT.format(
        rivals=" and ".join(content["rivals"]),
        date=content["date"],
        compiler=content["compiler"],
        emulator=content["emulator"],
        lost=summary,
        tables=tables,
        sources=sources,
    )


def _table(content: dict[str, Any], rival: str) -> str:
    own = ours(content["runs"])
    headings = [f"{cost}: {who}" for cost in ("instructions", "flash", "RAM") for who in ("ours", "theirs")]
    lines = [
        f"### {rival}\n",
        f"| model | core | option | {' | '.join(headings)} | set-up: theirs |",
        f"|---|---|---|{'---:|' * 7}",
    ]
    for run in content["runs"]:
        if run.runtime == rival:
            pairs = [(own[run.place].costs[cost], amount) for cost, amount in run.costs.items()]
            cells = [f"{mine:,} | {amount:,} ({amount / mine:.1f}x)" for mine, amount in pairs]
            title = content["models"][run.model]["title"]
            cells += [f"{run.setup_instructions:,}"]
            lines.append(f"| {title} | {run.core} | {run.optimize} | {' | '.join(cells)} |")
    return "\n".join(lines)


def own_run(model: str, core: str, row: Row) -> Run:
    """Our costs, as they are compared."""
    return Run(
        OURS,
        model,
        core,
        row.optimize,
        row.instructions,
        0,
        row.constants_bytes,
        row.code_bytes,
        row.arena_bytes + row.state_bytes,
        row.other_ram_bytes,
        row.stack_bytes,
    )


def _found(content: dict[str, Any], folders: list[Path]) -> Iterator[tuple[str, Path]]:
    known = {model["sha256"]: key for key, model in content["models"].items()}
    for folder in folders:
        for path in sorted((*folder.glob("*.tflite"), *folder.glob("*.onnx"))):
            key = known.get(hashlib.sha256(path.read_bytes()).hexdigest())
            if key is not None:
                yield key, path


def measured(content: dict[str, Any], folders: list[Path]) -> list[Run]:
    """All runs, ours of the models in these folders new."""
    new: dict[tuple[str, str, str], Run] = {}
    for key, path in _found(content, folders):
        options = Options(io=content["models"][key]["io"])
        for core in CORES:
            for level in LEVELS:
                print(f"{key} on {core} at {level}", flush=True)
                run = own_run(key, core, measure(path, f"qemu-{core}", "auto", options, level))
                new[run.place] = run
    kept = {**ours(content["runs"]), **new}
    return [*kept.values(), *theirs(content["runs"])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER", help="with the models")
    content = load()
    folders = parser.parse_args().folders or [Path(os.environ.get("TINYML_MODELS", "models"))]
    runs = measured(content, folders)
    text = json.dumps({**content, "runs": [asdict(run) for run in runs]}, indent=1)
    FILE.write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
