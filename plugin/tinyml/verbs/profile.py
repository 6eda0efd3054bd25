"""`profile`: what each layer costs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb, roomy
from tinyml.verbs.compile import add_model_arguments, options_from
from tinyml.verbs.named import add_named_arguments, resolve

if TYPE_CHECKING:
    from rich.console import Console


class Profile(Verb):
    """Count the instructions of each layer on an emulated core.

    The generated C has a macro around every layer, TINYML_LAYER, which is nothing unless a platform defines
    it. Here it reads a clock that QEMU advances by the instruction.
    """

    name = "profile"
    help = "instructions of each layer on an emulated core"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_model_arguments(parser, target=False)
        add_named_arguments(parser)
        parser.add_argument("--on", default="qemu-cortex-m3", metavar="MACHINE", help="default: %(default)s")
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the whole report for programs")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml import harness
        from tinyml.report import text
        from tinyml.report.collect import collect
        from tinyml.verbs.report import write

        resolve(args)
        report = collect(args.model, options_from(args, harness.find_machine(args.on).target.name), args.on)
        text.show_layers(report, roomy(console))
        facts = report.measured
        if facts is not None:
            rate = f", {report.macs / facts.instructions:.2f} MAC per instruction" if report.macs else ""
            console.print(f"{report.model} on {facts.machine}: {facts.instructions:,} instructions{rate}")
        if args.json:
            write(args.json, report.to_json())
        return 0
