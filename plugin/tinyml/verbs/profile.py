# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`profile`: what each layer costs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb, add_clock_argument, roomy
from tinyml.verbs.runner import Placed, add_place_arguments, placed
from tinyml.verbs.settings import FILE_OR_NAME, add_model_arguments

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.report.facts import Report


class Profile(Verb):
    """Count what each layer costs.

    The generated C wraps every layer in the macro TINYML_LAYER, which only calls it unless a platform defines
    TINYML_WRAP_LAYER. On a machine without Zephyr (--on) that macro reads a clock that counts QEMU's
    instructions; cycles beside them are an estimate for memory without wait states. With -b BOARD the model
    runs in a Zephyr image with CONFIG_TINYML_PROFILING, which counts instructions on QEMU boards and cycles
    on hardware (--serial).

    MODEL can be a pack without code (.tmodel), which the player runs.
    """

    name = "profile"
    help = "what each layer costs: instructions on an emulated core, cycles on hardware"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_model_arguments(parser, target=False, help=FILE_OR_NAME)
        parser.add_argument("--on", default="qemu-cortex-m3", metavar="MACHINE", help="default: %(default)s")
        add_clock_argument(parser)
        parser.add_argument("--json", type=Path, metavar="FILE", help="also write the whole report as JSON")
        parser.add_argument(
            "--trace", type=Path, metavar="FILE", help="also write a trace for Perfetto or Chrome, as JSON"
        )
        add_place_arguments(parser)

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from dataclasses import replace

        from tinyml.report import text
        from tinyml.slots.container import SUFFIX
        from tinyml.verbs.report import write

        if args.model is not None and args.model.suffix == SUFFIX:
            return _played(args, console)
        with placed(args, console, profiled=True) as chosen:
            report = report_of(args.model, chosen)
        report = replace(report, mhz=args.mhz)
        text.show_layers(report, roomy(console))
        console.print(_total(report), markup=False, soft_wrap=True)
        if report.measured is not None:
            console.print(text.estimate(report), markup=False, soft_wrap=True)
        if args.json:
            write(args.json, report.to_json())
        if args.trace:
            from tinyml.report.trace import trace

            write(args.trace, trace(report))
        return 0


def _played(args: argparse.Namespace, console: Console) -> int:
    """A pack without code: what each of its layers costs, with the calls that compute it."""
    from rich.table import Table

    from tinyml.base.errors import ConfigError
    from tinyml.datasets.arrays import pattern_inputs
    from tinyml.slots.playing import played_on

    if args.board or args.json or args.trace:
        raise ConfigError("a pack is profiled on a machine, as a table", "--on qemu-cortex-m4")
    played = played_on(args.model, args.on)
    result = played.profile([pattern_inputs(played.graph())])
    assert result.layers is not None
    assert result.instructions is not None
    table = Table("layer", "instructions", "kernels", box=None, padding=(0, 2, 0, 0))
    for layer, cost in sorted(result.layers.items()):
        kernels = dict.fromkeys(
            call.kernel.name.split()[0] for call in played.model.run if call.layer == layer
        )
        table.add_row(str(layer), f"{cost:,}", ", ".join(kernels))
    console.print(table)
    console.print(
        f"{played.model.name} on {args.on}: {sum(result.layers.values()):,} instructions", markup=False
    )
    return 0


def report_of(model: Path, chosen: Placed) -> Report:
    """The report of a model with the cost of its layers at a place."""
    from tinyml.datasets import arrays
    from tinyml.harness.zephyr import ZephyrPlace
    from tinyml.pipeline import compile_model
    from tinyml.report import collect
    from tinyml.report.stages import Watch

    place = chosen.place
    if not isinstance(place, ZephyrPlace):
        return collect.collect(model, chosen.options, place.name)
    watch = Watch()
    compiled = compile_model(model, chosen.options, watch)
    chosen.check(compiled)
    report = collect.describe(compiled, model.name, chosen.options.kernels, watch.stages)
    cost = place.profile(compiled.files, arrays.pattern_inputs(compiled.graph), len(compiled.selected))
    return collect.profiled(report, place.name, cost)


def _total(report: Report) -> str:
    """The last line: the total, and what was counted."""
    facts = report.profile
    if facts is not None:
        where, unit, total, how = facts.where, facts.unit, facts.total, f" ({facts.how})"
    else:
        assert report.measured is not None
        where, unit, total, how = report.measured.machine, "instructions", report.measured.instructions, ""
    rate = f", {total / report.macs:.2f} per MAC" if report.macs else ""
    return f"{report.model} on {where}: {total:,} {unit}{rate}{how}"
