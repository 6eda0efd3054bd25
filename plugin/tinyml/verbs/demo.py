# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`demo`: what happens to a model, in the terminal, in a minute."""

from __future__ import annotations

import argparse
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.api.compiled import CompiledModel

BOARDS = ("rpi_pico", "nrf52840dk", "nucleo_h743zi")
"""A small, a usual and a large board: Cortex-M0, Cortex-M4, Cortex-M7."""
MACHINES = ("qemu-cortex-m0", "qemu-cortex-m4", "qemu-cortex-m55", "qemu-riscv32")
SAMPLES = 4
CODE_LINES = 14


class Demo(Verb):
    """Show what happens to a model: C, memory, results on emulated cores, costs on boards.

    MODEL is compiled, its memory plan drawn, its C run on this computer and on the emulated cores that are
    installed, and the outputs are compared with those of the model's own runtime. Without MODEL, a small
    classifier of handwritten digits is taken. Nothing is written.
    """

    name = "demo"
    help = "the whole story of a model in the terminal, in a minute"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "model", type=Path, nargs="?", metavar="MODEL", help="default: handwritten digits"
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.api.compiled import build
        from tinyml.api.sources import as_model
        from tinyml.pipeline import Options
        from tinyml.projects import model_files

        model = model_files.existing_model(args.model) if args.model else _digits()
        machines = _machines(console)
        start = time.monotonic()
        source = as_model(model, name="" if args.model else "digits")
        compiled = build(source, Options(source.name, "cortex-m4", shapes=source.shapes))
        _show_c(console, model, compiled, time.monotonic() - start)
        _show_memory(console, compiled)
        fine = _show_runs(console, compiled, machines)
        _show_boards(console, compiled)
        _heading(console, "Next")
        shown = shlex.quote(str(model))
        for what, command in (
            ("an application around it, for Zephyr", f"tinyml new my_app --model {shown}"),
            ("every layer, its memory and its C, as a page", f"tinyml report {shown} --html report.html"),
            ("the same C in a browser", f"tinyml web {shown} -o page.html"),
        ):
            console.print(f"  {what}:\n    {command}", markup=False, soft_wrap=True)
        return 0 if fine else 1


def _digits() -> Path:
    """The model that the package brings."""
    from tinyml.base.errors import ConfigError
    from tinyml.setup.installation import zephyr_module

    module = zephyr_module()
    model = module / "samples" / "digits" / "model.onnx" if module else None
    if model is None or not model.is_file():
        raise ConfigError("this installation has no model of its own", "tinyml demo MODEL")
    return model


def _machines(console: Console) -> list[str]:
    """Where the model can run here; what is missing is said first."""
    from tinyml.base.errors import ToolError
    from tinyml.cores.machines import MACHINES as KNOWN
    from tinyml.harness.tools import host_compiler

    found, ways = [], []
    try:
        host_compiler()
        found.append("host")
    except ToolError as error:
        ways.append(f"{error.message}: {error.hint}")
    for name in MACHINES:
        board = KNOWN[name].board
        assert board is not None
        absent = list(board.toolchain.missing())
        if absent:
            packages = " ".join(dict.fromkeys(part.debian for part in absent))
            ways.append(f"to run on {name}: sudo apt-get install {packages}")
        else:
            found.append(name)
    for way in dict.fromkeys(ways):
        console.print(f"missing here, {way}", style="yellow", markup=False, soft_wrap=True)
    return found


def _heading(console: Console, text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]")


def _show_c(console: Console, model: Path, compiled: CompiledModel, seconds: float) -> None:
    _heading(console, f"{model.name} becomes C, in {seconds:.1f} s")
    console.print(
        f"{len(compiled.built.selected)} layers, {compiled.macs:,} multiply-accumulates, "
        f"{compiled.weights_bytes:,} bytes of weights",
        markup=False,
    )
    heaviest = max(compiled.report().layers, key=lambda layer: (layer.macs, len(layer.code)))
    lines = heaviest.code.expandtabs(4).splitlines()
    for line in lines[:CODE_LINES]:
        console.print(f"  {line[: console.width - 3]}", style="dim", markup=False, highlight=False)
    if len(lines) > CODE_LINES:
        console.print(f"  … {len(lines) - CODE_LINES} more lines", style="dim")
    for note in compiled.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)


def _show_memory(console: Console, compiled: CompiledModel) -> None:
    from tinyml.report.memory_text import memory_picture

    report = compiled.report()
    bound = report.arena_lower_bound_bytes
    best = "no plan needs less" if bound == report.arena_bytes else f"no plan needs less than {bound:,}"
    apart = sum(tensor.bytes for tensor in report.tensors)
    _heading(console, f"All tensors in one arena of {report.arena_bytes:,} bytes")
    console.print(f"{apart:,} bytes if each had a place of its own; {best}", markup=False)
    for line in memory_picture(report, console.width - 11):
        console.print(line, soft_wrap=True)


def _show_runs(console: Console, compiled: CompiledModel, machines: list[str]) -> bool:
    from tinyml.api.running import run
    from tinyml.api.verified import verify

    if not machines:
        return True
    fine = True
    for number, machine in enumerate(machines):
        found = verify(compiled, on=machine, samples=SAMPLES)
        if not number:
            _heading(console, f"The C against {found.reference}, on {SAMPLES} generated inputs")
            if found.note:
                console.print(found.note, markup=False, soft_wrap=True)
        fine = fine and found.agrees
        result = run(compiled, on=machine)
        count = f"{result.instructions[0]:>11,} instructions" if result.instructions else ""
        mark = "[green]agrees[/] " if found.agrees else "[red]differs[/]"
        equal = f"{found.equal:,} of {found.values:,} values equal"
        if found.agrees and found.equal < found.values:  # floats
            equal = f"{found.values:,} values within rounding"
        console.print(f"  {machine:<17}{mark}  {equal:<25}{count}".rstrip())
        for cause in found.causes:
            console.print(f"    {cause}", markup=False, soft_wrap=True)
    return fine


def _show_boards(console: Console, compiled: CompiledModel) -> None:
    from rich.table import Table

    from tinyml.api.compiled import as_compiled
    from tinyml.api.costs import cost_of
    from tinyml.cores.boards import known_board

    _heading(console, "What it costs, estimated")
    table = Table("board", "core", "RAM", "flash", "a run", box=None, padding=(0, 3, 0, 0))
    for name in BOARDS:
        board = known_board(name)
        assert board is not None
        found = cost_of(as_compiled(compiled, board.target), board)
        used = [f"{used:,} bytes, {used / most:.0%}" for _, used, most in found.shares()]
        takes = found.milliseconds(board.mhz) if board.mhz else None
        table.add_row(
            name,
            board.target,
            *used,
            "does not fit" if not found.fits else f"{takes:,.2f} ms" if takes is not None else "not known",
        )
    console.print(table)
