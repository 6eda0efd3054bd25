# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`explore`: all ways to build a model for a board, and those that no other one beats."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base.errors import ConfigError
from tinyml.cores.targets import TARGETS
from tinyml.settings import table
from tinyml.settings.setting import COMMAND
from tinyml.settings.written import parse_bytes
from tinyml.verbs.base import Verb, add_clock_argument, roomy
from tinyml.verbs.named import resolve_board, resolve_model
from tinyml.verbs.runner import add_place_arguments, placed
from tinyml.verbs.settings import (
    FILE_OR_NAME,
    IN_ARENA,
    OF_THE_MODEL,
    add_setting,
    options_from,
    words_of,
)

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.api.exploration import Board, Exploration, Point

EXPLORED = ("optimize", "kernels")
"""Settings that are tried in all ways."""


class Explore(Verb):
    """Try all ways to build a model for a board, and show those that no other one beats.

    Tries what tinyml.yaml can choose: `optimize`, `kernels`, `weights` in flash or RAM and, with --quantize,
    float, int8, int16 activations and weights of four bits. Shows the Pareto front of RAM, flash and cycles
    with the quality of each precision, marks what fits the board, and prints the lines of tinyml.yaml that
    select the suggested point. Costs are estimates; with --measure or --on they are counted in an emulator,
    with --serial the best ones are measured on the board.
    """

    name = "explore"
    help = "compare all ways to build a model for a board"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("model", type=Path, metavar="MODEL", help=FILE_OR_NAME)
        parser.add_argument(
            "--target",
            default="cortex-m3",
            metavar="T",
            help=f"the core, without a board: one of {', '.join(TARGETS)} (default: %(default)s)",
        )
        group = parser.add_argument_group(OF_THE_MODEL)
        for name, setting in table.settings(COMMAND).items():
            if name not in ("target", *EXPLORED) and not setting.verbs:
                add_setting(group, name, choices=IN_ARENA if name == "io" else None)
        only = "try only these kernels (default: all that are available)"
        add_setting(parser, "kernels", help=only, default="")
        add_place_arguments(parser)
        parser.add_argument(
            "--on",
            default="",
            metavar="MACHINE",
            help="count instructions on this machine, for example qemu-cortex-m4",
        )
        parser.add_argument(
            "--measure", action="store_true", help="count instructions on the machine that emulates the core"
        )
        add_clock_argument(parser)
        parser.add_argument(
            "--ram", metavar="BYTES", help="the RAM that is left for the model, for example 64k"
        )
        parser.add_argument(
            "--flash", metavar="BYTES", help="the flash that is left for the model, for example 256k"
        )
        parser.add_argument(
            "--json", type=Path, metavar="FILE", help="write all points as JSON (-: to the console)"
        )
        parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with plots")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        import json

        from tinyml.api.exploring import explore_options
        from tinyml.api.sources import as_model
        from tinyml.verbs.progress import Bars
        from tinyml.verbs.report import write

        if args.serial and not args.board:
            raise ConfigError("--serial requires the name of the board", "-b BOARD; `west boards` lists them")
        place = _place(args)
        resolve_model(args)
        options = options_from(args, place.target)
        kernels = [word for word in words_of(args, "kernels") if word != "auto"]
        on = args.on or (_machine(place.target) if args.measure else "")
        with Bars() as bars:
            measure = _on_the_board(args, console) if args.serial else None
            found = explore_options(as_model(args.model), options, place, on, kernels, measure, bars.advance)
        text = json.dumps(found.as_json(), indent=1) + "\n"
        if args.json and str(args.json) == "-":
            console.file.write(text)
        else:
            _show(found, roomy(console))
        if args.json and str(args.json) != "-":
            write(args.json, text)
        if args.html:
            from tinyml.api.exploration_page import page

            write(args.html, page(found))
        return 0 if found.suggested else 1


def _place(args: argparse.Namespace) -> Board:
    from tinyml.api.exploration import Board

    board = resolve_board(args)
    ram, flash = board.ram_bytes if board else None, board.flash_bytes if board else None
    return Board(
        board.name if board else args.target,
        args.target,
        parse_bytes(args.ram, "--ram") if args.ram else ram,
        parse_bytes(args.flash, "--flash") if args.flash else flash,
        args.mhz,
    )


def _machine(target: str) -> str:
    from tinyml.cores.core_data import SAME_CODE
    from tinyml.cores.machines import MACHINES

    for name, machine in MACHINES.items():
        if machine.clock is not None and machine.target.name == target:
            return name
    same = f", whose code a {SAME_CODE[target]} runs too" if target in SAME_CODE else ""
    raise ConfigError(
        f"no machine emulates a {target}{same}", "leave --measure out: costs are then estimates"
    )


def _on_the_board(args: argparse.Namespace, console: Console) -> Callable[[Point], int]:
    """Build, flash and profile one point after the other."""

    def measure(point: Point) -> int:
        from tinyml.base.errors import ToolError
        from tinyml.verbs.profile import report_of

        wanted = argparse.Namespace(**vars(args))
        wanted.optimize, wanted.kernels, wanted.weights = point.optimize, point.kernels, point.weights
        if not point.quantize:
            wanted.quantize = []
        else:
            wide = [f"int16={','.join(point.quantize.int16)}"] if point.quantize.int16 else []
            wanted.quantize = [*words_of(args, "quantize"), *wide, f"weights={point.quantize.weights}"]
        with placed(wanted, console, profiled=True) as chosen:
            report = report_of(wanted.model, chosen)
        if report.profile is None:
            raise ToolError(f"{args.board} gave no cycles")
        return report.profile.total

    return measure


def _show(found: Exploration, console: Console) -> None:
    from rich.table import Table

    from tinyml.api.exploration import HEAD

    place = found.place
    clock = f" at {place.mhz:g} MHz" if place.mhz else ""
    core = f"{place.target}{clock}"
    where = core if place.name == place.target else f"{place.name} ({core})"
    console.print(f"[bold]{found.model}[/bold] on {where}, {found.how}")
    rows = found.rows()
    used = [i for i in range(len(HEAD)) if any(row[i] for row in rows)]
    table = Table(box=None, padding=(0, 2, 0, 0))
    for i in used:
        table.add_column(HEAD[i], justify="left" if i in (0, len(HEAD) - 1) else "right")
    for row in rows:
        table.add_row(*(row[i] for i in used))
    console.print(table, markup=False)
    if not found.how.startswith("measured"):
        console.print(
            "Weights in RAM are not faster in an estimate without wait states; --serial measures them.",
            markup=False,
            soft_wrap=True,
        )
    for settings, why in found.failures.items():
        console.print(f"not possible: {settings or '(the default)'}: {why}", markup=False, soft_wrap=True)
    best = found.suggested
    if best is None:
        console.print(f"nothing fits {place.name}", style="red", markup=False)
        return
    why = f"smallest product of RAM, flash and cycles{_among(found)}"
    if best.yaml:
        console.print(f"* {why}. In tinyml.yaml:\n{best.yaml}", markup=False)
    else:
        console.print(f"* {why}: the default; nothing to write", markup=False)


def _among(found: Exploration) -> str:
    from tinyml.api.exploration import ALLOWED_LOSS

    lossy = any(point.lost_points > ALLOWED_LOSS for point in found.front)
    return f" of what loses at most {ALLOWED_LOSS:g} point" if lossy else ""
