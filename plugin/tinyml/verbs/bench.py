# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`bench`: what models cost in instructions and bytes, compared with other runtimes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tinyml.cores.machines import MACHINES
from tinyml.projects import folder
from tinyml.settings.optimize import GOALS
from tinyml.verbs.base import Verb, add_app_argument, add_clock_argument, roomy
from tinyml.verbs.settings import IN_ARENA

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.bench.measure import Row
    from tinyml.bench.record import Change

Given: TypeAlias = Sequence[tuple[Path, str]]
"""Models, and how the application passes their inputs and outputs."""

WIDE = 150
COMPACT = (0, 1, 3, 4, 5, 9, 11)  # columns to show on a narrow terminal
CORTEX_M = ",".join(name for name in MACHINES if name.startswith("qemu-cortex-m"))


class Bench(Verb):
    """Measure models on emulated cores: instructions per inference, flash and RAM by part.

    Instructions and bytes are counted and nothing is timed: the same inputs give the same figures on any
    computer with the same cross compiler. Cycles are an estimate. For known models (by SHA-256), the table
    also lists the figures of other runtimes. `--against` compares with an earlier --json file, or with
    another commit of this project; then the exit code is 1 if anything grew by more than --tolerance percent.

    MODEL can be a pack without code (.tmodel): then its image takes the place of the constants, and the
    player is among the kernels. Its line is called "played", below that of the model it was made of.
    """

    name = "bench"
    help = "count instructions and bytes of models on emulated cores"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "models",
            type=Path,
            nargs="*",
            metavar="MODEL",
            help=".onnx, .tflite or .tmodel files (default: the models of the application)",
        )
        add_app_argument(parser)
        parser.add_argument(
            "--on",
            default=CORTEX_M,
            metavar="M,...",
            help="machines, separated by commas (default: every Cortex-M)",
        )
        parser.add_argument(
            "--kernels",
            default="auto",
            metavar="K,...",
            help="auto, portable, cmsis-nn, or several of them (default: %(default)s, as in builds)",
        )
        parser.add_argument(
            "--optimize",
            default="-O2",
            metavar="GOAL|FLAG",
            help=f"what to spend ({', '.join(GOALS)}), or the C compiler's option (default: %(default)s)",
        )
        parser.add_argument(
            "--io",
            choices=IN_ARENA,
            metavar="|".join(IN_ARENA),
            help="how the application passes inputs and outputs (default: as in tinyml.yaml, or arena)",
        )
        add_clock_argument(parser)
        parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
        parser.add_argument("--against", metavar="FILE|COMMIT", help="show what changed since")
        parser.add_argument(
            "--tolerance",
            type=float,
            default=2.0,
            metavar="%",
            help="with --against, allowed growth in percent (default: %(default)s)",
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.bench import record
        from tinyml.bench.measure import ARENA

        if not args.models:
            app = folder.find_application(args.app, Path.cwd())
            given = [
                (entry.path(app.root), args.io or str(entry.io or ARENA)) for entry in app.manifest().models
            ]
        else:
            given = [(model, args.io or ARENA) for model in args.models]
        before = _before(args, given) if args.against else None
        rows, failures = _measure(args, given, console)
        _show(rows, roomy(console), args.mhz)
        _explain_cycles(rows, console)
        for failure in failures:
            console.print(failure, style="red", markup=False, soft_wrap=True)
        if args.json:
            compiler = record.compiler_name(row.machine for row in rows)
            record.save(args.json, record.Record(compiler, tuple(rows)))
        if before is not None:
            worse = _show_changes(list(record.compare(before, rows)), args, console)
            return 1 if worse or failures else 0
        return 1 if failures else 0


def _measure(args: argparse.Namespace, given: Given, console: Console) -> tuple[list[Row], list[str]]:
    """Measure all models; one that fails does not stop the others. Returns rows and failures."""
    from rich.progress import Progress

    from tinyml.base.errors import ConfigError, TinymlError
    from tinyml.bench.measure import kernel_choices, measure
    from tinyml.pipeline import Options
    from tinyml.slots.played_cost import KERNELS, measure_pack
    from tinyml.slots.playing import SUFFIX

    choices = kernel_choices(args.kernels)
    if args.io and all(model.suffix == SUFFIX for model, _ in given):
        raise ConfigError("a pack says itself how inputs and outputs are passed", "bench without --io")
    jobs = [
        (model, io, machine, kernels)
        for model, io in given
        for machine in args.on.split(",")
        for kernels in ([KERNELS] if model.suffix == SUFFIX else choices)
    ]
    rows, failures = [], []
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(jobs))
        for model, io, machine, kernels in jobs:
            progress.update(task, description=f"{model.stem} on {machine}")
            try:
                if kernels == KERNELS:
                    rows.append(measure_pack(model, machine, args.optimize))
                else:
                    rows.append(measure(model, machine, kernels, Options(io=io), args.optimize))
            except TinymlError as error:
                how = kernels if kernels == KERNELS else f"with {kernels}"
                failures.append(f"{model.name} on {machine} {how}: {error}")
            progress.advance(task)
    return rows, failures


def _show(rows: Sequence[Row], console: Console, mhz: float | None) -> None:
    from rich.table import Table

    from tinyml.bench.peer_table import COLUMNS, groups

    for group in groups(rows, mhz):
        shown = range(len(COLUMNS)) if console.width >= WIDE else COMPACT
        table = Table(box=None, padding=(0, 2, 0, 0), title=f"{group.title}, {group.machine}")
        table.title_justify = "left"
        for index in shown:
            table.add_column(COLUMNS[index], justify="right" if index else "left", no_wrap=index > 0)
        for line in group.lines:
            table.add_row(*(line.cells[index] for index in shown), style=None if line.ours else "dim")
        console.print(table)
        console.print()


def _explain_cycles(rows: Sequence[Row], console: Console) -> None:
    """What the estimates are worth, core by core, or why there are none."""
    from tinyml.cost.cycles import MODELS
    from tinyml.harness import find_machine

    for machine in dict.fromkeys(row.machine for row in rows):
        target = find_machine(machine).target.name
        notes = dict.fromkeys(row.cycles_note for row in rows if row.machine == machine)
        for note in notes:
            text = f"no estimate: {note}" if note else MODELS[target].how if target in MODELS else ""
            console.print(f"cycles of {target}: {text}", style="dim", markup=False, soft_wrap=True)


def _before(args: argparse.Namespace, given: Given) -> list[Row]:
    from tinyml.bench import record, revision
    from tinyml.bench.measure import ARENA

    if Path(args.against).is_file():
        return list(record.load(Path(args.against)).rows)
    options = ["--on", args.on, "--kernels", args.kernels, f"--optimize={args.optimize}"]
    rows: list[Row] = []
    for io in dict.fromkeys(io for _, io in given):
        models = [str(model.resolve()) for model, own in given if own == io]
        chosen = [] if io == ARENA else ["--io", io]  # which older revisions do not know
        rows += revision.measure_revision(args.against, [*models, *options, *chosen]).rows
    return rows


def _show_changes(changes: Sequence[Change], args: argparse.Namespace, console: Console) -> bool:
    """Print the changes; returns whether any is worse than allowed."""
    limit = 1 + args.tolerance / 100
    for change in changes:
        style = "red" if change.ratio > limit else "green" if change.ratio < 1 else None
        console.print(str(change), style=style, markup=False, soft_wrap=True)
    if not changes:
        console.print(f"nothing changed since {args.against}", markup=False, soft_wrap=True)
    return any(change.ratio > limit for change in changes)
