# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/COSTS.md: every estimate of ``tinyml.cost`` against what was counted."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from dataclasses import replace

from tinyml import harness
from tinyml.cost.estimate import estimate
from tinyml.cost.model import CostModel, find_model
from tools import layer_counts
from tools.cost_examples import Example, examples, left_out, single_layers
from tools.environment import ROOT
from tools.fit_costs import Errors, error_of
from tools.fit_speed import fit_speed

PAGE = ROOT / "docs" / "COSTS.md"
LIMIT = 0.10
FOLDS = 6
INTRODUCTION = """\
# How good estimates of cost are

<!-- Written by `python -m tools.fit_costs`; do not edit. -->

`tinyml cost` and `tinyml.cost()` estimate code, instructions and cycles without building or running anything.
This page compares the estimates with what was counted when published models were built and run on emulated
cores (`python -m tools.layer_counts`). For your own model, expect the error of the column "unseen".

- **Instructions** of a layer are a sum over how often the loops of its kernel run, for kernels that say that
  ([COST_ERRORS.md](COST_ERRORS.md)); for small layers of some others, over the ways in which loops may walk
  over their shape (`ops/weighted/shape_work.py`); or over its work (multiplications, outputs, rows of windows
  ...), with figures fitted to the counted layers of each kernel: those of the models, and some that every
  kernel computed (`python -m tools.kernel_counts`). The compiler chooses kernels by the figures for sizes
  ([KERNEL_CHANGES.md](KERNEL_CHANGES.md)). For layers that are loops in the model's own source, the sum is
  over what the generated C executes: operations, statements, and turns of its loops, with figures fitted to
  random layers (`python -m tools.fit_own_loops`).
- **Code** is what the linker keeps: the functions that the C calls and everything that they call, each linked
  once to learn its size; only the size of the model's own C is fitted.
- **Cycles** are fitted to the estimator of `report --on`, whose own error
  [BENCHMARKS.md](BENCHMARKS.md) shows; the error here is against that estimator.
- **Unseen** is the error in instructions if the figures are fitted without this model and a sixth of the
  others. A dash means that no other model has one of its kernels; then `tinyml.cost` would give no
  instructions.

The compiler is {compiler}, with -O2. Another compiler, -Os or another C library gives other code. Memory
(arena, state, weights) is not estimated: those figures are exact.
"""


CLANG = "Clang makes vectors of loops or writes out their turns, which nothing here foresees"
PROMISED_IMPORT_SECONDS = 0.3
PROMISED_COST_SECONDS = 1.0


def promises(unseen: list[tuple[float, str]]) -> str:
    """What the Python API promises, and what was found: worst errors, and times of the processor.

    ``unseen``: the size of each error of a model that was left out, and the model.
    """
    found = [
        (one, error_of(model, one))
        for machine in layer_counts.MACHINES
        if (model := find_model(harness.find_machine(machine).target.name))
        for one in examples(machine)
    ]
    instructions = max((abs(e.instructions or 0), _of(one)) for one, e in found)
    code = max((abs(e.code), _of(one)) for one, e in found)
    costs = sorted(_cost_seconds())
    lines = [
        "## What is promised",
        "",
        "| what | promised | found |",
        "|---|---|---|",
        f"| estimated against counted instructions | within {LIMIT:.0%} | at most {instructions[0]:.1%} "
        f"({instructions[1]}) |",
        f"| estimated against linked code | within {LIMIT:.0%}, but for RISC-V with vectors | at most "
        f"{code[0]:.1%} ({code[1]}); {CLANG} |",
        f"| instructions of a model that was not fitted | nothing | within {LIMIT:.0%} for "
        f"{sum(size <= LIMIT for size, _ in unseen)} of {len(unseen)}; at most {max(unseen)[0]:.0%} "
        f"({max(unseen)[1]}) |",
        f"| `import tinyml`, seconds of CPU | {PROMISED_IMPORT_SECONDS:g} | {_import_seconds():.2f} |",
        f"| `tinyml.cost()` of a published model, with compiling | {PROMISED_COST_SECONDS:g} for "
        f"most | "
        f"{costs[len(costs) // 2][0]:.2f} in the median; at most {costs[-1][0]:.2f} ({costs[-1][1]}) |",
        "",
        f"Seconds of one {platform.machine()} core.",
        "",
    ]
    return "\n".join(lines)


def _of(one: Example) -> str:
    return f"{one.counted.model} on {one.counted.machine.removeprefix('qemu-')}"


def _import_seconds() -> float:
    """The least of five."""
    return min(float(_printed("import tinyml, time; print(time.process_time())")) for _ in range(5))


COSTS = """
import sys, time, tinyml
for name in sys.argv[1:]:
    begin = time.process_time()
    try:
        tinyml.cost(name, "cortex-m4")
    except tinyml.TinymlError:  # dimensions that the user chooses
        continue
    print(time.process_time() - begin)
"""


def _cost_seconds() -> list[tuple[float, str]]:
    """Of every published model, after a first one, which also imports the compiler."""
    twice = ((path, _printed(COSTS, str(path), str(path)).split()) for path in layer_counts.published())
    return [(float(seconds[1]), path.stem) for path, seconds in twice if seconds]


def _printed(code: str, *arguments: str) -> str:
    """What a new process prints, which holds nothing but what it needs."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def write() -> None:
    """The page, from the costs in the package."""
    unseen: list[tuple[float, str]] = []
    sections = [section for machine in layer_counts.MACHINES if (section := _section(machine, unseen))]
    compilers = {
        model.compiler
        for machine in layer_counts.MACHINES
        if (model := find_model(harness.find_machine(machine).target.name))
    }
    text = (
        INTRODUCTION.format(compiler=", ".join(sorted(compilers)))
        + "\n"
        + "\n".join([promises(unseen), *sections])
    )
    PAGE.write_text(text, encoding="utf-8")


def _section(machine: str, errors: list[tuple[float, str]]) -> str:
    """The part of a core; errors of models that were not fitted are added to ``errors``."""
    target = harness.find_machine(machine).target.name
    model, known = find_model(target), examples(machine)
    if model is None or not known:
        return ""
    rows = [(one, error_of(model, one)) for one in known]
    unseen = _unseen(known)
    errors += [(abs(error), _of(one)) for one, error in zip(known, unseen, strict=True) if error is not None]
    seconds = [_seconds(one, model) for one in known]
    over = [one.counted.model for one, missed in rows if _misses(missed)]
    lines = [
        f"## {target}",
        "",
        f"{len(known)} builds; {_missing(over)} After compiling, an estimate takes at most "
        f"{1000 * max(seconds):.0f} ms.",
        *(f"\n**Left out: {name}**, which {reason}." for name, reason in left_out(machine).items()),
        "",
        "| model | kernels | instructions | error | unseen | error in cycles | code bytes | error |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
        *map(_row, rows, unseen),
        "",
    ]
    return "\n".join(lines)


def _missing(names: list[str]) -> str:
    if not names:
        return f"all within {LIMIT:.0%}."
    return f"**more than {LIMIT:.0%} off: {', '.join(dict.fromkeys(names))}.**"


def _misses(errors: Errors) -> bool:
    return abs(errors.instructions or 0) > LIMIT or abs(errors.code) > LIMIT


def _seconds(one: Example, model: CostModel) -> float:
    begin = time.process_time()
    estimate(one.model, model)
    return time.process_time() - begin


def _unseen(known: list[Example]) -> list[float | None]:
    """The error of each model in instructions, if it and a sixth of the others are not fitted."""
    layers = {id(one): one.layers("instructions") for one in known}
    names = sorted({one.counted.model for one in known})
    fold = {name: index % FOLDS for index, name in enumerate(names)}
    machine = known[0].counted.machine
    alone = single_layers(machine, "instructions")
    costs = find_model(harness.find_machine(machine).target.name)
    assert costs is not None, "the page has sections of cores with costs"
    speeds = [
        fit_speed(
            [
                *(layer for one in known if fold[one.counted.model] != part for layer in layers[id(one)]),
                *alone,
            ]
        )
        for part in range(FOLDS)
    ]
    found: list[float | None] = []
    for one in known:
        # the figures of loops were fitted to no model
        speed = replace(
            speeds[fold[one.counted.model]],
            loops=costs.instructions.loops,
            shapes=costs.instructions.shapes,
            shapes_up_to=costs.instructions.shapes_up_to,
            own_loops=costs.instructions.own_loops,
            core=costs.target,
        )
        parts = [speed.of_layer(layer.layer, layer.kernel, layer.tally) for layer in layers[id(one)]]
        amounts = [part for part in parts if part is not None]
        complete = len(amounts) == len(parts)
        found.append(sum(amounts) / one.counted.instructions - 1 if complete else None)
    return found


def _row(row: tuple[Example, Errors], unseen: float | None) -> str:
    counted, errors = row[0].counted, row[1]
    cells = (
        counted.model,
        "with CMSIS-NN" if counted.cmsis_nn else "built in",
        f"{counted.instructions:,}",
        _percent(errors.instructions),
        _percent(unseen),
        _percent(errors.cycles),
        f"{counted.code_bytes:,}",
        _percent(errors.code),
    )
    return f"| {' | '.join(cells)} |"


def _percent(error: float | None) -> str:
    if error is None:
        return "-"
    return f"{error:+.1%}" if abs(error) >= 0.0005 else "0.0%"
