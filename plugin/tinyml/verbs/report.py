# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`report`: the layers of a model, its costs, and what has changed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base import whole_files
from tinyml.base.errors import ConfigError
from tinyml.settings.setting import COMMAND, YAML
from tinyml.settings.written import parse_bytes
from tinyml.verbs import report_budget
from tinyml.verbs.base import Verb, add_clock_argument, roomy
from tinyml.verbs.build_folder import build_in_place_of
from tinyml.verbs.named import add_named_arguments, resolve
from tinyml.verbs.packs import add_of_argument
from tinyml.verbs.report_pack import pack_to_report, report_of_played, show_pack
from tinyml.verbs.settings import FILE_OR_NAME, add_option_arguments, options_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tinyml.pipeline import Options
    from tinyml.report import facts


class Report(Verb):
    """Show the layers of a model, the memory they need, and what the compiler's passes saved.

    With --on, the model is also built and run on an emulated core: instructions and estimated
    cycles per layer, flash by part, stack. With --ram or --flash, the exit code is 1 if the model takes more.
    A model given by its name in tinyml.yaml has the budget there, too.
    With -b BOARD, core, clock and both budgets are the board's; a board that QEMU emulates is measured.
    With -d BUILD, or without MODEL after `west build`, the figures are those of the ELF file that it linked.

    MODEL can be a pack without code (.tmodel): what its image for the core needs, and with --on what playing
    it takes. Names and shapes of layers are not in a pack; with --of, the model that it was made of, the
    report is as complete as that of a model.
    """

    name = "report"
    help = "layers, memory plan and cost of a model: text, JSON, or a page"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("model", type=Path, nargs="?", metavar="MODEL", help=FILE_OR_NAME)
        add_option_arguments(parser)
        parser.add_argument(
            "-d",
            "--build-dir",
            type=Path,
            metavar="BUILD",
            help="the image of this west build: what its models take there (MODEL: a name in C); "
            "without MODEL, the default is build",
        )
        add_named_arguments(parser)
        parser.add_argument(
            "--on", metavar="MACHINE", help="measure on this machine, for example qemu-cortex-m4"
        )
        add_clock_argument(parser)
        parser.add_argument(
            "--json", type=Path, metavar="FILE", help="write the report as JSON (-: to the console)"
        )
        parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page")
        parser.add_argument(
            "--input",
            type=Path,
            metavar="X.npz",
            help="the input of a detector: --html shows its first picture with the boxes that are found",
        )
        parser.add_argument(
            "--summary",
            type=Path,
            metavar="FILE",
            help="write one page without layers; with --quantize, float and int8 side by side",
        )
        parser.add_argument(
            "--markdown", type=Path, metavar="FILE", help="write a summary as Markdown tables"
        )
        parser.add_argument(
            "--against",
            type=Path,
            metavar="OLD.json",
            action="append",
            default=[],
            help="show what changed since; repeat it to compare several reports, oldest first",
        )
        parser.add_argument(
            "--evaluation",
            type=Path,
            metavar="FILE",
            help="add the accuracy that tinyml evaluate wrote with --json",
        )
        parser.add_argument(
            "--quantization",
            type=Path,
            metavar="FILE",
            help="add the loss of each layer that tinyml quantize wrote with --report",
        )
        add_of_argument(parser)
        parser.add_argument("--ram", type=_size, metavar="BYTES", help="budget of RAM, for example 64k")
        parser.add_argument("--flash", type=_size, metavar="BYTES", help="budget of flash, for example 256k")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from dataclasses import replace

        from tinyml.report import evaluation, facts, quantization
        from tinyml.report.collect import collect

        args.build_dir = args.build_dir or build_in_place_of(args.model, "tinyml report MODEL, or -d BUILD")
        if args.build_dir is not None:
            return _of_build(args, console)
        board, entry = resolve(args)
        pack = pack_to_report(args)
        if pack is not None and args.of is None:
            return show_pack(args, pack, board, console)
        earlier = [(path.stem, facts.load(path)) for path in args.against]
        accuracy = evaluation.lines(args.evaluation) if args.evaluation else []
        options = _options(args)
        report = (
            collect(args.model, options, args.on)
            if pack is None
            else report_of_played(pack, args.model, options, args.on)
        )
        if args.quantization:
            report = quantization.with_noise(report, args.quantization)
        report = report_budget.with_budgets(replace(report, mhz=args.mhz), args, board, entry)
        if board is not None:
            report = replace(report, board=str(board), chip=board.chip)
        report = replace(report, accuracy=[*report.accuracy, *accuracy])
        _give(report, earlier, args, console, _boxes(args) if args.input else "")
        if args.summary:
            from tinyml.report.one_page import one_page

            before = earlier[-1][1] if earlier else None
            if before is None and options.quantize is not None and pack is None:
                plain = replace(options, quantize=None)
                before = replace(collect(args.model, plain, args.on), mhz=report.mhz, chip=report.chip)
            write(args.summary, one_page(report, before))
        place = YAML if entry else COMMAND
        if report.over_budget and pack is None and str(args.json) != "-":
            report_budget.say_what_fits(report, args.model, options, console, place)
        if entry is not None:
            report_budget.check_the_rest(args.model, options, entry)
        return 1 if report.over_budget else 0


def _of_build(args: argparse.Namespace, console: Console) -> int:
    """The models of a finished build."""
    from dataclasses import replace

    from tinyml.report import facts
    from tinyml.report.image import reports_of_build

    for name in NOT_OF_BUILDS:
        if getattr(args, name):
            raise ConfigError(
                f"--{name} does not go with -d: the build decides", "tinyml report MODEL, without -d"
            )
    reports = [
        replace(report, mhz=args.mhz, ram_budget_bytes=args.ram, flash_budget_bytes=args.flash)
        for report in reports_of_build(args.build_dir, str(args.model) if args.model else "")
    ]
    named = [path for path in (args.json, args.html, args.markdown, *args.against) if path]
    if named and len(reports) > 1:
        known = " or ".join(report.model for report in reports)
        raise ConfigError("the image has several models, and a file has one report", f"MODEL: {known}")
    earlier = [(path.stem, facts.load(path)) for path in args.against]
    for number, report in enumerate(reports):
        if number and str(args.json) != "-":
            console.print()
        _give(report, earlier, args, console)
        if report.over_budget and str(args.json) != "-":
            report_budget.what_fits_in_build(report, args.build_dir, console)
    return 1 if any(report.over_budget for report in reports) else 0


NOT_OF_BUILDS = ("on", "board", "of", "evaluation", "quantization", "summary", "input")


def _boxes(args: argparse.Namespace) -> str:
    """What the model finds in the first row of a file, drawn on it."""
    from tinyml.api.compiled import build
    from tinyml.api.running import execute
    from tinyml.api.sources import as_model
    from tinyml.datasets.detections import detections
    from tinyml.datasets.model_inputs import load_samples
    from tinyml.report.boxes_svg import as_picture, boxes_svg

    if not args.html:
        raise ConfigError("--input is for the picture of a page", "--html FILE, or tinyml run --input")
    machine = args.on or "host"
    compiled = build(as_model(args.model), options_from(args, machine.removeprefix("qemu-")))
    graph = compiled.built.graph
    samples = load_samples(args.input, graph)[:1]
    (outputs,) = execute(compiled, samples, machine).runs
    found = detections(graph, outputs)
    first = graph.inputs[0]
    picture = as_picture(samples[0][first], graph.tensors[first])
    if found is None or picture is None:
        what = "its outputs are not boxes" if found is None else "its input is no picture"
        raise ConfigError(
            f"{args.model} is no detector: {what}",
            "a model that ends in NonMaxSuppression, NON_MAX_SUPPRESSION_V4 or V5, or "
            "TFLite_Detection_PostProcess: docs/detectors.md",
        )
    return boxes_svg(picture, found, graph.labels)


def _options(args: argparse.Namespace) -> Options:
    """A machine determines the core, if one is given."""
    from tinyml import harness

    return options_from(args, harness.find_machine(args.on).target.name if args.on else args.target)


def write(path: Path, content: str) -> None:
    """Write a file that the user named."""
    whole_files.save(path, content)


def _size(text: str) -> int:
    """``64k`` in bytes."""
    try:
        return parse_bytes(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(f"{error.message}; {error.hint}") from None


def _give(
    report: facts.Report,
    earlier: Sequence[tuple[str, facts.Report]],
    args: argparse.Namespace,
    console: Console,
    boxes: str = "",
) -> None:
    """A report in the forms that were asked for, with the changes since earlier ones."""
    from tinyml.report import changes, text

    changed = [(name, list(changes.changes(old, report))) for name, old in earlier]
    if args.json and str(args.json) == "-":
        console.file.write(report.to_json())
    else:
        text.show(report, roomy(console))
        for name, items in changed:
            console.print()
            text.show_changes(items, roomy(console), name if len(changed) > 1 else "")
    if args.json and str(args.json) != "-":
        write(args.json, report.to_json())
    if args.html:
        from tinyml.report.html import page

        write(args.html, page(report, earlier, boxes))
    if args.markdown:
        from tinyml.report.markdown import markdown

        write(args.markdown, markdown(report, changed))
