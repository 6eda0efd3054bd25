# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`report` of a pack without code."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.cores.boards import Board
    from tinyml.pipeline import Options
    from tinyml.report.facts import Report
    from tinyml.slots.played_cost import PackReport

NEED_THE_MODEL = ("html", "summary", "markdown", "against", "evaluation", "quantization")
"""Options for the report of a model: a pack alone knows too little."""


def pack_to_report(args: argparse.Namespace) -> Path | None:
    """The pack, if MODEL is one. With --of, the model that it was made of takes its place."""
    from tinyml.base.errors import ConfigError
    from tinyml.slots.playing import SUFFIX
    from tinyml.verbs.packs import refuse_of

    if args.model.suffix != SUFFIX:
        refuse_of(args)
        return None
    pack: Path = args.model
    if args.of is not None:
        args.model, args.kernels = args.of, "portable"
        return pack
    for name in NEED_THE_MODEL:
        if getattr(args, name):
            raise ConfigError(
                f"--{name} needs the model: a pack has no names and no shapes of layers",
                "--of, with the file that was packed",
            )
    return pack


def report_of_played(pack: Path, model: Path, options: Options, machine: str | None) -> Report:
    """The report of a model, with the costs of playing its pack."""
    from dataclasses import replace

    from tinyml.cores.targets import find_target
    from tinyml.pipeline import compile_model
    from tinyml.report.stages import Watch
    from tinyml.slots.data_reading import read_data
    from tinyml.slots.families import FAMILIES
    from tinyml.slots.played_cost import report_of_model
    from tinyml.slots.playing import image_for
    from tinyml.verbs.packs import check_origin

    family, content = image_for(pack, find_target(options.target))
    watch = Watch()
    compiled = compile_model(model, replace(options, target=FAMILIES[family].target), watch)
    check_origin(pack, read_data(content), compiled)
    return report_of_model(pack, compiled, model.name, watch.stages, machine)


def show_pack(args: argparse.Namespace, pack: Path, board: Board | None, console: Console) -> int:
    """What a pack says by itself; the exit code is 1 if it takes more than a budget."""
    from tinyml.base import whole_files
    from tinyml.cores.machines import find_machine
    from tinyml.cores.targets import find_target
    from tinyml.slots.played_cost import report_of_pack

    target = find_machine(args.on).target if args.on else find_target(args.target)
    report = report_of_pack(pack, target, args.on)
    ram = args.ram or (board.ram_bytes if board else None)
    flash = args.flash or (board.flash_bytes if board else None)
    if args.json and str(args.json) == "-":
        console.file.write(report.to_json())
    else:
        _print(report, console)
    if args.json and str(args.json) != "-":
        whole_files.save(args.json, report.to_json())
    over = report.over_budget(ram, flash)
    for problem in over:
        console.print(f"over budget: {problem}", style="bold red", markup=False)
    if over:
        console.print(
            "  try: tinyml report MODEL, with the file that was packed and the same budget: it prices the "
            "settings that fit; pack the model again with those",
            markup=False,
            soft_wrap=True,
        )
    return 1 if over else 0


def _print(report: PackReport, console: Console) -> None:
    from rich.table import Table

    counted = report.cost is not None
    console.print(
        f"{report.model} {report.version} as data, image for the family {report.family}, "
        f"{'signed' if report.signed else 'not signed'}",
        markup=False,
        soft_wrap=True,
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("layer", "calls", *(["instructions", "share"] if counted else [])):
        table.add_column(title, justify="right")
    table.add_column("kernels")
    total = sum(layer.instructions or 0 for layer in report.layers) or 1
    for layer in report.layers:
        spent = layer.instructions or 0
        cells = [f"{spent:,}", f"{spent / total:.1%}"] if counted else []
        table.add_row(str(layer.layer), f"{layer.calls:,}", *cells, ", ".join(layer.kernels))
    console.print(table)
    console.print()
    totals = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    totals.add_column()
    totals.add_column(justify="right")
    totals.add_column()
    totals.add_row("arena", f"{report.arena_bytes:,}", "bytes of RAM")
    if report.state_bytes:
        totals.add_row("state", f"{report.state_bytes:,}", "bytes of RAM, kept between runs")
    if report.cost:
        totals.add_row("variables", f"{report.cost.other_ram_bytes:,}", "bytes of other RAM")
        totals.add_row("stack", f"{report.cost.stack_bytes:,}", "bytes in this run")
    totals.add_row("image", f"{report.bytes:,}", "bytes of flash, or of whatever holds it")
    if report.cost:
        totals.add_row("player and kernels", f"{report.cost.kernels_bytes:,}", "bytes of flash")
        totals.add_row("C library", f"{report.cost.library_bytes:,}", "bytes of flash")
        totals.add_row("instructions", f"{report.cost.instructions:,}", f"per run on {report.cost.machine}")
        if report.cost.cycles is not None:
            totals.add_row(
                "est. cycles", f"{report.cost.cycles:,}", "per run, for memory without wait states"
            )
    totals.add_row("work", f"{report.work:,}", "multiplications and elements per run, at most")
    console.print(totals)
