# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`cost`: what a model costs on a core, without building it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb, add_clock_argument, roomy
from tinyml.verbs.named import add_named_arguments, resolve_board, resolve_model
from tinyml.verbs.settings import FILE_OR_NAME, add_model_arguments, options_from

if TYPE_CHECKING:
    from rich.console import Console


class Cost(Verb):
    """Estimate what a model costs on a core: RAM, flash with code, instructions and cycles of a run.

    Nothing is built or run, so it takes about as long as compiling the model. Estimated instructions have an
    error bar (docs/COST_ERRORS.md); where too little is known, they are unknown. --count builds the model and
    counts them on an emulator. With -b BOARD, core and clock are the
    board's, and the exit code is 1 if the model takes more memory than it has.
    """

    name = "cost"
    help = "estimate memory, code, instructions and cycles without building"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_model_arguments(parser, help=FILE_OR_NAME)
        add_named_arguments(parser)
        add_clock_argument(parser)
        parser.add_argument(
            "--count",
            action="store_true",
            help="build the model and count the instructions of a run on the machine that emulates the core",
        )
        parser.add_argument(
            "--json", type=Path, metavar="FILE", help="write the costs as JSON (-: to the console)"
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        import json

        from tinyml.api.compiled import build
        from tinyml.api.costs import cost_of, counted
        from tinyml.api.sources import as_model
        from tinyml.verbs.report import write

        board = resolve_board(args)
        resolve_model(args)
        compiled = build(as_model(args.model), options_from(args, args.target))
        found = (counted if args.count else cost_of)(compiled, board)
        text = json.dumps(found.as_json(), indent=1) + "\n"
        if args.json and str(args.json) == "-":
            console.file.write(text)
        else:
            _show(found, args.mhz, roomy(console))
        if args.json and str(args.json) != "-":
            write(args.json, text)
        return 0 if found.fits else 1


def _show(found: object, mhz: float | None, console: Console) -> None:
    from rich.table import Table

    from tinyml.api.costs import Cost as Costs

    assert isinstance(found, Costs)
    place = found.board if found.board else found.target
    console.print(f"[bold]{found.model}[/bold] on {place}", soft_wrap=True)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    for title, figure, unit in found.rows():
        table.add_row(title, f"{figure:,}", unit)
    if not found.is_sure:
        table.add_row("instructions", "unknown", "")
    for energy in found.energies if found.is_sure else ():
        table.add_row("energy", str(energy), energy.unit())
    if mhz is not None and found.is_sure and (time := found.milliseconds(mhz)) is not None:
        table.add_row("time", f"{time:,.2f}", f"ms per run at {mhz:g} MHz, estimated")
    for title, used, most in found.shares():
        table.add_row(title, f"{used / most:.0%}", f"of {most:,} bytes")
    console.print(table)
    console.print(found.note, markup=False, soft_wrap=True)
