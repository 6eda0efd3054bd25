# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Write docs/OPTIMIZE.md: what `optimize:` changes, measured on the MLPerf Tiny models.

``python -m tools.spending [--on qemu-cortex-m4,...] [--ratios]``

The models are in the folder ``TINYML_MODELS``. ``--ratios`` also measures what -Os does to the default on
every core and writes ``plugin/tinyml/cost/small_code.yaml``, which scales estimates for `optimize: size`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml.bench.measure import Row, measure
from tinyml.cores.machines import find_machine
from tinyml.cost.small_code import FILE
from tinyml.pipeline import Options
from tinyml.settings.optimize import GOALS
from tinyml.verbs.bench import CORTEX_M

PAGE = ROOT / "docs" / "OPTIMIZE.md"
MODELS = {
    "KWS": "mlperf_kws_int8",
    "IC": "mlperf_resnet_int8",
    "VWW": "mlperf_vww_int8",
    "AD": "mlperf_ad_int8",
    "SWW": "mlperf_strww_int8",
}
KERNELS = "portable"
HEAD = """\
# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
# What -Os makes of code, instructions and cycles, relative to -O2: averages over the MLPerf Tiny models.
# Written by `python -m tools.spending --ratios`.
"""

INTRODUCTION = """\
# What to spend: speed, flash or RAM

<!-- Written by `python -m tools.spending`; do not edit. -->

`optimize:` in tinyml.yaml (or `--optimize`,
`CONFIG_TINYML_OPTIMIZE_...`, `custom_tinyml_optimize`, `tinyml.compile(optimize=...)`) chooses what a model
may spend. The results are the same to the last bit.

| choice | what it does |
|---|---|
{choices}

`balanced` is the default. `-O3` is not offered: it makes the
code of these models a third larger and not faster. Bands of rows are explained in
[decision 5](adr/0005-bands-of-rows.md). `tinyml explore MODEL -b BOARD` tries all of them on your model.

The compiler's option applies to the model's own source and to the kernels. Zephyr and PlatformIO builds set
it; kernels are compiled for size if every model of the firmware is. For your own build it is `compile_flag`
in NAME.json.

RAM is the arena; flash is weights, tables and code. Instructions are counted in QEMU, cycles are the estimate
of `tinyml bench`. Percentages are relative to `balanced`. Measured with the kernels of this project
(`--kernels portable`).
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", default="qemu-cortex-m4,qemu-cortex-m55", metavar="M,...")
    parser.add_argument("--ratios", action="store_true")
    args = parser.parse_args(argv)
    folder = Path(os.environ.get("TINYML_MODELS", ROOT / "models"))
    choices = "\n".join(f"| `{goal.name}` | {goal.about} |" for goal in GOALS.values())
    parts = [INTRODUCTION.format(choices=choices)]
    parts += [_section(machine, folder) for machine in args.on.split(",")]
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    if args.ratios:
        found = {find_machine(name).target.name: _ratios(name, folder) for name in CORTEX_M.split(",")}
        FILE.write_text(f"{HEAD}{yaml.safe_dump(found)}", encoding="utf-8")
    return 0


def _section(machine: str, folder: Path) -> str:
    lines = [
        f"## {machine.removeprefix('qemu-')}",
        "",
        "| model | optimize | RAM | | flash | | of which code | instructions | | est. cycles |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for title, name in MODELS.items():
        rows = {goal: _measure(folder / f"{name}.tflite", machine, goal) for goal in GOALS}
        same = {row.output for row in rows.values()}
        if len(same) != 1:
            raise SystemExit(f"{title}: the outputs differ between {', '.join(GOALS)}")
        before = rows["balanced"]
        lines += [_line(title if goal == "balanced" else "", goal, row, before) for goal, row in rows.items()]
    return "\n".join([*lines, ""])


def _line(title: str, goal: str, row: Row, before: Row) -> str:
    cells = (
        title,
        f"`{goal}`",
        f"{row.arena_bytes:,}",
        _change(row.arena_bytes, before.arena_bytes),
        f"{row.flash_bytes:,}",
        _change(row.flash_bytes, before.flash_bytes),
        f"{row.code_bytes:,}",
        f"{row.instructions:,}",
        _change(row.instructions, before.instructions),
        "" if row.cycles is None else f"{row.cycles:,}",
    )
    return f"| {' | '.join(cells)} |"


def _change(now: int, before: int) -> str:
    return "" if now == before else f"{now / before - 1:+.1%}"


def _ratios(machine: str, folder: Path) -> dict[str, float]:
    """What -Os makes of code, instructions and cycles, over all models."""
    pairs = [
        [_measure(folder / f"{name}.tflite", machine, flag) for flag in ("-O2", "-Os")]
        for name in MODELS.values()
    ]
    figures = {
        "code": [(fast.code_bytes, small.code_bytes) for fast, small in pairs],
        "instructions": [(fast.instructions, small.instructions) for fast, small in pairs],
        "cycles": [(fast.cycles or 1, small.cycles or 1) for fast, small in pairs],
    }
    return {
        name: round(sum(small / fast for fast, small in both) / len(both), 3)
        for name, both in figures.items()
    }


def _measure(path: Path, machine: str, optimize: str) -> Row:
    print(f"{path.stem} on {machine}, {optimize}", flush=True)
    return measure(path, machine, KERNELS, Options(), optimize)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
