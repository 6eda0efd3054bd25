# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`verify`: does the compiled model compute what the reference computes?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb, print_notes
from tinyml.verbs.packs import add_of_argument, pack_of, player_of
from tinyml.verbs.runner import Placed, add_place_arguments, add_run_arguments, placed
from tinyml.verbs.settings import FILE_OR_NAME, add_model_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from tinyml.compare.check import Subject, Verdict
    from tinyml.harness import Runner
    from tinyml.ir import Array, Graph

EXIT_DIFFERS = 3
MANY_TURNS = 1_000_000  # of loops, in all runs together: onnxruntime takes some seconds at least


class Verify(Verb):
    """Run a model as compiled C and compare it with onnxruntime or the TFLite reference.

    Inputs are yours (--input; an array with N rows is N runs) or generated, always the same ones. The runs
    follow one another, so a model with state steps through them as a sequence. If the outputs differ, the
    command searches for the cause: the first layer whose C is wrong, the first pass that changed the result,
    or the first node that the reference computes differently. Without onnxruntime or ai-edge-litert, the
    reference is the compiler's own definition of each operator in numpy, and the command prints a note.

    MODEL can be a pack without code (.tmodel), which the player runs; --of is the model that it was made of,
    with the same options.

    With --against, the outputs are compared with those of another model that takes the same inputs, for
    example the float model that this one was quantised from: signal-to-noise ratio instead of equality.

    With -b BOARD it runs inside a Zephyr image for that board, in the board's emulator or, with --serial,
    on the board itself.

    Exit code: 0 if they agree, 3 if they differ, 1 if the comparison failed to run.
    """

    name = "verify"
    help = "compare a compiled model with a reference, and find where it differs"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_model_arguments(parser, target=False, help=FILE_OR_NAME)
        add_run_arguments(parser)
        parser.add_argument(
            "--samples",
            type=int,
            default=4,
            metavar="N",
            help="how many samples to generate (default: %(default)s)",
        )
        parser.add_argument(
            "--reference",
            default="auto",
            choices=("auto", "onnxruntime", "litert", "numpy"),
            help="what to compare with (default: %(default)s)",
        )
        parser.add_argument("--steps", type=float, metavar="N", help="allowed difference of quantised values")
        parser.add_argument(
            "--tolerance",
            type=float,
            metavar="R",
            help="allowed difference of floats, relative to the largest value",
        )
        add_of_argument(parser)
        parser.add_argument("--against", type=Path, metavar="MODEL", help="compare with another model")
        parser.add_argument(
            "--snr",
            type=float,
            default=20.0,
            metavar="DB",
            help="with --against: required signal-to-noise ratio (default: 20 dB)",
        )
        add_place_arguments(parser)

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.base.errors import ConfigError
        from tinyml.compare import check
        from tinyml.datasets.generated_samples import generated
        from tinyml.datasets.model_inputs import load_samples
        from tinyml.ops.shared.real import HYBRID  # which the verdict explains itself
        from tinyml.verbs.progress import Bars

        if args.samples < 1:
            raise ConfigError("--samples must be at least 1")
        pack = pack_of(args, "verify")
        with placed(args, console) as chosen:
            model = check.subject(args.model, chosen.options)
            chosen.check(model.compiled)
            graph = model.compiled.graph
            print_notes(console, (note for note in graph.notes if note != HYBRID))
            samples = load_samples(args.input, graph) if args.input else generated(graph, args.samples)
            place = (
                _place(chosen, graph, console) if pack is None else player_of(pack, args.on, model.compiled)
            )
            if args.against:
                return _against(args, model, place, samples, console)
            _note_turns(graph, len(samples), console)
            with Bars() as bars:
                verdict = check.check(
                    model, place, samples, args.reference, args.steps, args.tolerance, bars.advance
                )
            return _show(verdict, place.name, console)


def _place(chosen: Placed, graph: Graph, console: Console) -> Runner:
    """Where the model runs: numpy instead of the host, which has no NPU."""
    from tinyml.compare.in_numpy import InNumpy

    npu = chosen.options.npu
    if not npu or chosen.place.name != "host":
        return chosen.place
    console.print(
        f"note: nothing here emulates {npu}. All operators are computed in numpy, the NPU's as it rounds: "
        "no generated C is executed, and none of the NPU's commands",
        markup=False,
        soft_wrap=True,
    )
    return InNumpy(graph)


def _note_turns(graph: Graph, samples: int, console: Console) -> None:
    """Why nothing may be printed for a while: references take microseconds for each layer of each turn."""
    from tinyml.ops.framework.loop import turns

    found = turns(graph)
    if found * samples >= MANY_TURNS:
        console.print(
            f"note: {samples} runs with {found:,} turns of loops in each: the reference may take minutes, "
            "and the search for the cause of a difference, in numpy, may take ten times as long; "
            "--samples 1, or --input with one row, is a single run",
            markup=False,
            soft_wrap=True,
        )


def _show(verdict: Verdict, machine: str, console: Console) -> int:
    for line in verdict.lines:
        mark = "[green]ok[/green]" if line.difference.fine else "[red]differs[/red]"
        console.print(f"sample {line.sample}, ", end="")
        console.print(f"{line.output}", end=": ", markup=False)
        console.print(mark, end=" ")
        console.print(str(line.difference), markup=False, soft_wrap=True)
    if verdict.note and verdict.equal < verdict.values:
        console.print(f"note: {verdict.note}", markup=False, soft_wrap=True)
    if verdict.hint:
        console.print(f"note: {verdict.hint}", markup=False, soft_wrap=True)
    share = f"{verdict.equal:,} of {verdict.values:,} values equal"
    if verdict.fine:
        console.print(
            f"agrees on {machine} with {verdict.reference}: {share}",
            style="green",
            markup=False,
            soft_wrap=True,
        )
        return 0
    console.print(
        f"differs on {machine} from {verdict.reference}: {share}",
        style="bold red",
        markup=False,
        soft_wrap=True,
    )
    for cause in verdict.causes:
        console.print(f"  {cause}", markup=False, soft_wrap=True)
    return EXIT_DIFFERS


def _against(
    args: argparse.Namespace,
    model: Subject,
    place: Runner,
    samples: Sequence[Mapping[str, Array]],
    console: Console,
) -> int:
    from tinyml.compare.models import compare_models

    worst = float("inf")
    for found in compare_models(model, place, samples, args.against):
        worst = min(worst, found.snr_db)
        console.print(
            f"{found.output}: {found.snr_db:.1f} dB, largest difference {found.largest:.6g}",
            markup=False,
        )
    console.print(f"at least {worst:.1f} dB; required: {args.snr:g} dB", markup=False)
    return 0 if worst >= args.snr else EXIT_DIFFERS
