# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`compile`: a model file to a folder of C."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.settings import interface
from tinyml.settings.passing import SPELLINGS
from tinyml.settings.setting import COMMAND, YAML
from tinyml.setup.compiler_sources import compiler_sources
from tinyml.verbs.base import Verb, print_notes
from tinyml.verbs.settings import add_model_arguments, given_settings, options_from

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.api.compiled import CompiledModel
    from tinyml.ir import Graph


class Compile(Verb):
    """Compile a model to plain C.

    Writes NAME.c, NAME.h, NAME_weights.h and NAME.json (sizes, and the runtime sources to link)
    into a folder. The build systems do this for you; use it to inspect the code or in your own build.
    """

    name = "compile"
    help = "compile a model to a folder of plain C"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_model_arguments(parser, io=SPELLINGS, verb=self.name)
        parser.add_argument(
            "-o", "--output", type=Path, required=True, metavar="DIR", help="the folder to write to"
        )
        parser.add_argument(
            "--cmsis-nn",
            action="store_true",
            help="the build has CMSIS-NN: --kernels auto may choose from it",
        )
        parser.add_argument(
            "--limit",
            action="append",
            default=[],
            metavar="arena|ram|flash=BYTES[,WHOSE]|instructions=N[,WHOSE]",
            help="fail if the model needs more; the message names WHOSE limit it is (repeatable)",
        )
        parser.add_argument(
            "--weights-in-ram", action="store_true", help="the build copies the weights to RAM"
        )
        parser.add_argument(
            "--no-fpu", action="store_true", help="the build leaves the core's FPU off: warn of float layers"
        )
        parser.add_argument(
            "--no-notes",
            action="store_true",
            help="print no notes on the model: `add` has printed them, and the report has them",
        )
        parser.add_argument(
            "--depfile", type=Path, metavar="FILE", help="also write a Makefile-style dependency file"
        )
        parser.add_argument(
            "--report", action="store_true", help="also write NAME_report.html and NAME_report.json"
        )
        parser.add_argument(
            "--validate",
            action="store_true",
            help="compare the optimised graph with the imported one; say what is proved and what is tested",
        )
        parser.add_argument(
            "--dump-ir",
            metavar="STAGE",
            nargs="?",
            const="all",
            help="print the graph after STAGE: import, the name of a pass, bands, or all",
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.api.compiled import build
        from tinyml.api.sources import as_model
        from tinyml.base.errors import ConfigError
        from tinyml.ir.text import dump
        from tinyml.ops.framework import outside
        from tinyml.pipeline import STAGES
        from tinyml.report import budget
        from tinyml.report.ways_out import pricing
        from tinyml.settings.quantize_request import Request

        if args.dump_ir not in (None, "all", *STAGES):
            raise ConfigError(f"unknown stage {args.dump_ir!r}", f"all, {', '.join(STAGES)}")

        seen: dict[str, Graph] = {}

        def bound() -> int:
            from tinyml.api.bounding import bound_of

            return bound_of(compiled).instructions

        def show(stage: str, graph: Graph) -> None:
            seen[stage] = graph
            if args.dump_ir in ("all", stage):
                console.print(f"# after {stage}\n{dump(graph)}", markup=False, soft_wrap=True)

        limits = [budget.parse_limit(text) for text in args.limit]
        options = options_from(args, args.target)
        compiled = build(as_model(args.model), options, show)
        interface.check(compiled.summary, given_settings(args).get("interface", {}))
        flash = compiled.flash_bytes if any(kind == "flash" for kind, _ in limits) else None
        place = COMMAND if any(limit.whose == budget.UNNAMED for _, limit in limits) else YAML
        ways = pricing(args.model, options, compiled.built, place, args.weights_in_ram)
        budget.check_all(
            compiled.summary,
            limits,
            args.weights_in_ram,
            flash,
            ways,
            bound,
        )
        if args.validate:
            _validate(compiled, seen["import"], console)
        data = [*options.quantize.files] if options.quantize else []
        data += Request(options.watch_data).files if options.watch_data else []
        for file in (options.adapt.holdout, options.adapt.reference) if options.adapt else ():
            data += Request(file).files if file else []
        sources = [
            *compiled.built.files_read,
            *data,
            *outside.sources(options.operators),
            *compiler_sources(),
        ]
        compiled.write(args.output, report=args.report, depfile=args.depfile, sources=sources)
        console.print(
            f"{compiled.name}: {len(compiled.built.selected)} layers, arena {compiled.arena_bytes:,} bytes, "
            f"weights {compiled.weights_bytes:,} bytes -> {args.output}",
            markup=False,
            soft_wrap=True,
        )
        if not args.no_notes:
            print_notes(console, compiled.notes, f"{compiled.name}: ")
        layers = compiled.built.selected
        if args.no_fpu and (floats := sum(chosen.in_float for chosen in layers)):
            console.print(
                f"{compiled.name}: warning: {floats} of {len(layers)} layers compute in float, "
                "and CONFIG_FPU is off. Put CONFIG_FPU=y into prj.conf: they take about a tenth of the time.",
                markup=False,
                soft_wrap=True,
            )
        if compiled.quantization:
            loss = compiled.quantization
            for line in (f"{loss.kind}: {loss.headline()}", *loss.advice()):
                console.print(f"{compiled.name}: {line}", markup=False, soft_wrap=True)
        return 0


def _validate(compiled: CompiledModel, imported: Graph, console: Console) -> None:
    """Print how each part was compared; a part that differs is an error."""
    from tinyml.base.errors import ToolError
    from tinyml.base.naming import short
    from tinyml.compare.validation import validate
    from tinyml.pipeline import check_plan

    parts = validate(imported, compiled.built.graph)
    for part in parts:
        verdict = "differs" if not part.fine else "proved" if part.proved else "tested"
        layers = ", ".join(dict.fromkeys(short(name) for name in part.layers))
        console.print(f"{verdict}: {layers}: {part.how}", markup=False, soft_wrap=True)
    check_plan(compiled.built)
    console.print("proved: the memory plan: every layer reads the bytes that were meant for it", markup=False)
    wrong = [part.tensor for part in parts if not part.fine]
    if wrong:
        raise ToolError(
            f"the optimised graph computes something else than the imported one: {', '.join(wrong)}",
            "please report this; `tinyml verify` compares the model with its reference",
        )
