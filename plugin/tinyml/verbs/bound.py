# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`bound`: what no run of a model exceeds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb, roomy
from tinyml.verbs.build_folder import build_in_place_of
from tinyml.verbs.named import resolve_model
from tinyml.verbs.settings import add_option_arguments, options_from

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.bounds import Bound as Bounds


class Bound(Verb):
    """Show what no run of a model exceeds, for any input: instructions, cycles, stack, written bytes.

    The bound comes from the machine code of a linked image: branches by sizes and counters are followed as
    they are, and branches by data go both ways. Without -d, the model is compiled and linked for the core as
    for `report --on`. With -d BUILD, it is the image of a finished `west build`. docs/bounds.md describes
    what is shown, what is assumed and what is not shown. With --instructions or --stack, the exit code is 1
    if the bound is higher.
    """

    name = "bound"
    help = "instructions, cycles, stack and written bytes that no input exceeds"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "model",
            type=Path,
            nargs="?",
            metavar="MODEL",
            help="the model file, or its name in the application",
        )
        add_option_arguments(parser)
        parser.add_argument("--app", type=Path, metavar="DIR", help="the application that lists the model")
        parser.add_argument(
            "-d",
            "--build-dir",
            type=Path,
            metavar="BUILD",
            help="the image of this build (MODEL: its name in C); without MODEL, the default is build",
        )
        parser.add_argument(
            "--json", type=Path, metavar="FILE", help="write the bounds as JSON (-: to the console)"
        )
        parser.add_argument("--instructions", type=int, metavar="N", help="the most that are allowed")
        parser.add_argument("--stack", type=int, metavar="BYTES", help="the most that are allowed")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        import json

        from tinyml.verbs.report import write

        found = _bounds(args)
        text = json.dumps([one.as_json() for one, _ in found], indent=1) + "\n"
        if args.json and str(args.json) == "-":
            console.file.write(text)
        else:
            for bound, names in found:
                _show(bound, names, roomy(console))
        if args.json and str(args.json) != "-":
            write(args.json, text)
        over = [problem for bound, _ in found for problem in _over(bound, args.instructions, args.stack)]
        for problem in over:
            console.print(problem, style="bold red", markup=False, soft_wrap=True)
        return 1 if over else 0


def _bounds(args: argparse.Namespace) -> list[tuple[Bounds, list[str]]]:
    """The bounds that are asked for, with the names of layers."""
    import json

    tries = "tinyml bound MODEL --target cortex-m4, or -d BUILD"
    args.build_dir = args.build_dir or build_in_place_of(args.model, tries)
    if args.build_dir is not None:
        from tinyml.bounds.images import built_models

        found = []
        for model in built_models(args.build_dir, str(args.model) if args.model else ""):
            summary = json.loads((model.generated.source.with_suffix(".json")).read_text(encoding="utf-8"))
            found.append((model.bound(), [layer["name"] for layer in summary["layers"]]))
        return found
    from tinyml.api.bounding import bound_of
    from tinyml.api.compiled import build
    from tinyml.api.sources import as_model

    resolve_model(args)
    compiled = build(as_model(args.model), options_from(args, args.target))
    return [(bound_of(compiled), [layer["name"] for layer in compiled.summary["layers"]])]


def _over(bound: Bounds, instructions: int | None, stack: int | None) -> list[str]:
    limits = (
        ("instructions", bound.instructions, instructions),
        ("bytes of stack", bound.stack_bytes, stack),
    )
    return [
        f"{bound.model}: a run can take {found:,} {what}, allowed are {most:,}"
        for what, found, most in limits
        if most is not None and found > most
    ]


def _show(bound: Bounds, names: list[str], console: Console) -> None:
    from rich.table import Table

    from tinyml.base.naming import short
    from tinyml.bounds import NOT_SHOWN

    table = Table("layer", "instructions", "cycles", "by data", box=None, padding=(0, 2, 0, 0))
    for column in (1, 2):
        table.columns[column].justify = "right"
    for layer in bound.layers:
        name = short(names[layer.step]) if layer.step < len(names) else str(layer.step)
        cycles = "" if layer.cycles is None else f"{layer.cycles:,}"
        table.add_row(
            name, f"{layer.most:,}", cycles, f"{layer.least:,} or more" if layer.varies else "exact"
        )
    console.print(table)
    least = f" ({bound.least_instructions:,} or more)" if bound.varies else ", always"
    lines = [f"{bound.model} on {bound.core}: at most {bound.instructions:,} instructions{least}"]
    if bound.cycles is not None:
        lines.append(f"at most {bound.cycles:,} cycles by Arm's tables, at zero wait states")
    lines.append(f"at most {bound.stack_bytes:,} bytes of stack")
    written = ", ".join(f"{one.symbol} ({one.bytes:,} bytes)" for one in bound.written)
    lines.append(f"writes to the stack and to {written or 'nothing else'}")
    lines += [f"assumed: {text}" for text in bound.assumptions]
    lines += [f"not shown: {text}" for text in NOT_SHOWN]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
