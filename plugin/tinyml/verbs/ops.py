# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`ops`: what is supported, or what a model needs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb
from tinyml.verbs.settings import add_option_arguments, options_from

if TYPE_CHECKING:
    from rich.console import Console


class Ops(Verb):
    """List the supported operators or, for a model, the ones it uses and those that are missing.

    With a model, the exit code is 0 if all of it can be compiled and 1 if something is missing.
    """

    name = "ops"
    help = "supported operators; for a model, what it uses and what is missing"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("model", type=Path, nargs="?", metavar="MODEL", help="a .onnx or .tflite file")
        parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
        add_option_arguments(parser)

    def run(self, args: argparse.Namespace, console: Console) -> int:
        if args.model is None:
            return _list_as_json(console) if args.json else _list(console)
        return _needs(args, console)


def _list_as_json(console: Console) -> int:
    from tinyml.importers import inventory

    families = [
        {
            "operator": family.name,
            "onnx": list(family.onnx),
            "tflite": list(family.tflite),
            "kernels": list(dict.fromkeys(kernel.library for kernel in family.kernels)),
        }
        for family in inventory.families()
    ]
    special = {"onnx": list(inventory.SPECIAL_ONNX), "tflite": list(inventory.SPECIAL_TFLITE)}
    console.file.write(json.dumps({"operators": families, "read_directly": special}, indent=2) + "\n")
    return 0


def _list(console: Console) -> int:
    from rich.table import Table

    from tinyml.importers import inventory

    table = Table("operator", "ONNX", "TFLite", "kernels", box=None, padding=(0, 2, 0, 0))
    for family in inventory.families():
        libraries = dict.fromkeys(kernel.library for kernel in family.kernels)
        table.add_row(
            family.name, " ".join(family.onnx), " ".join(family.tflite), ", ".join(libraries) or "-"
        )
    special = " ".join(inventory.SPECIAL_ONNX), " ".join(inventory.SPECIAL_TFLITE)
    table.add_row("read directly", *special, "-")
    console.print(table)
    console.print("Operators that ONNX defines as functions of others are also supported: they are inlined.")
    return 0


def _needs(args: argparse.Namespace, console: Console) -> int:
    from rich.table import Table

    from tinyml.base.errors import UnsupportedError
    from tinyml.importers import inventory
    from tinyml.pipeline import compile_model

    uses = inventory.used(args.model)
    problem, kinds = None, []
    try:
        compiled = compile_model(args.model, options_from(args, args.target))
        kinds = list(dict.fromkeys(chosen.layer.op.kind for chosen in compiled.selected))
    except UnsupportedError as error:
        problem = error.message
    if args.json:
        operators = [{"operator": use.op, "count": use.count, "supported": use.known} for use in uses]
        answer = {"operators": operators, "layers": kinds, "problem": problem}
        console.file.write(json.dumps(answer, indent=2) + "\n")
        return 1 if problem else 0
    table = Table("operator", "count", "", box=None, padding=(0, 2, 0, 0))
    for use in uses:
        table.add_row(use.op, str(use.count), "" if use.known else "[red]not supported[/red]")
    console.print(table)
    if problem:
        console.print(problem, markup=False, soft_wrap=True)
        return 1
    console.print(
        f"the model can be compiled: {len(compiled.selected)} layers of {', '.join(kinds) or 'nothing'}",
        markup=False,
    )
    return 0
