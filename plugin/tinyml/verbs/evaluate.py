# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`evaluate`: how good is the compiled model on a test set?"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.settings.quantize_request import KEYS
from tinyml.verbs.base import Verb, roomy
from tinyml.verbs.packs import add_of_argument, pack_of, player_of
from tinyml.verbs.runner import add_on_argument, add_place_arguments, placed
from tinyml.verbs.settings import FILE_OR_NAME, add_model_arguments

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.api.evaluated import Evaluation
    from tinyml.compare.accuracy.scores import Classification
    from tinyml.settings.quantize_request import Request

EXIT_TOO_LOW = 3
MOST_CLASSES = 16
"""Classes for which the confusion matrix is printed; --json always has it."""


class Evaluate(Verb):
    """Run a test set through the compiled C: accuracy, and what changed against the original model.

    Data is a .npz with one array per input (one row per sample), a .npy, a .csv, or a folder of images or WAV
    files. Labels are in the .npz as "labels", in a column "label" of the .csv, the names of subfolders, or in
    a file of their own (--labels): class numbers, names of classes, one-hot rows, or values to predict.

    With classes: accuracy, a confusion matrix, and recall and precision of each class. With values: mean
    absolute error and R². In both cases, and without labels, the outputs are compared with those of the
    original: the same model in its own runtime, the float model where --quantize is given, or --against.

    With --learn, a model that learns on the device (--adapt) also learns examples, as a device would in every
    bit; the accuracy before and after it is printed too.

    MODEL can be a pack without code (.tmodel), which the player runs; --of is the model that it was made of.

    Exit code: 0, or 3 if the accuracy is lower than --min-accuracy.
    """

    name = "evaluate"
    help = "measure the accuracy of a compiled model on a test set"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_model_arguments(parser, target=False, help=FILE_OR_NAME)
        parser.add_argument("--data", type=Path, required=True, metavar="DATA", help="the test set")
        parser.add_argument(
            "--labels", type=Path, metavar="FILE", help="labels: .npy, .npz, .csv, or an array in DATA"
        )
        add_on_argument(parser)
        parser.add_argument("--against", type=Path, metavar="MODEL", help="the original model")
        parser.add_argument(
            "--classes",
            default="",
            metavar="A,B,..",
            help="names of the classes in the order of the outputs, or a file with one per line "
            "(default: subfolders in alphabetical order)",
        )
        parser.add_argument(
            "--task",
            default="auto",
            choices=("auto", "classes", "values", "raw"),
            help="what the first output is (default: by the labels)",
        )
        parser.add_argument("--output", default="", metavar="NAME", help="the output that decides")
        parser.add_argument(
            "--samples", type=int, metavar="N", help="use at most N samples, evenly spread over the data"
        )
        parser.add_argument("--range", metavar="LOW:HIGH", help=f"{KEYS['range']}, -1:1 ...")
        parser.add_argument("--mean", metavar="M[,M..]", help=KEYS["mean"])
        parser.add_argument("--std", metavar="S[,S..]", help=KEYS["std"])
        parser.add_argument(
            "--min-accuracy", metavar="SHARE", help="exit with 3 if the accuracy is lower: 0.95, or 95%%"
        )
        parser.add_argument(
            "--learn", type=Path, metavar="DATA", help="examples with labels for a model with --adapt"
        )
        parser.add_argument(
            "--learn-labels", type=Path, metavar="FILE", help="their labels, if they are not in the data"
        )
        parser.add_argument("--rounds", type=int, metavar="N", help="learn the examples N times (1)")
        parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
        add_of_argument(parser)
        add_place_arguments(parser)

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.api.after_learning import COMMAND, after_learning, check_learning
        from tinyml.api.compiled import build
        from tinyml.api.data import test_set
        from tinyml.api.evaluated import Question, measure
        from tinyml.api.running import EVERY
        from tinyml.api.sources import as_model
        from tinyml.base import whole_files
        from tinyml.base.errors import ConfigError
        from tinyml.settings.evaluation import accuracy_of
        from tinyml.verbs.progress import Bars

        pack = pack_of(args, "evaluate")
        wanted = None if args.min_accuracy is None else accuracy_of(args.min_accuracy, "--min-accuracy: ")
        with (
            test_set(args.data, args.labels) as (data, labels),
            placed(args, console) as chosen,
            Bars() as bars,
        ):
            request = _request(args, data, labels)
            compiled = build(as_model(args.model), chosen.options)
            check_learning(
                compiled, args.learn is not None, args.learn_labels is not None, args.rounds, COMMAND
            )
            place = chosen.place if pack is None else player_of(pack, args.on, compiled.built)
            chosen.check(compiled.built)
            original = as_model(args.against or args.model, shapes=chosen.options.shapes)
            question = Question(compiled.options.classes, args.task, args.output)
            result = measure(compiled, place, request, original, question, bars.advance)
            if args.learn is not None:
                with test_set(args.learn, args.learn_labels) as (examples, known):
                    given = replace(request, calibration=examples, labels=known, samples=EVERY)
                    learnt = after_learning(compiled, given, request, args.rounds, question.classes, COMMAND)
                result = replace(result, learnt=learnt)
        if args.json:
            whole_files.save(args.json, json.dumps(result.as_json(), indent=2) + "\n")
        show(result, console)
        if wanted is None:
            return 0
        if result.accuracy is None:
            raise ConfigError("--min-accuracy needs classes and labels", "--labels FILE")
        if result.accuracy >= wanted:
            return 0
        console.print(f"less than {100 * wanted:g} %", style="bold red", markup=False)
        return EXIT_TOO_LOW


def _request(args: argparse.Namespace, data: Path, labels: Path | None) -> Request:
    from tinyml.api.running import EVERY
    from tinyml.settings.quantize_request import from_settings

    given = {"calibration": str(data), "samples": str(EVERY if args.samples is None else args.samples)}
    if labels is not None:
        given["labels"] = str(labels)
    for key in ("range", "mean", "std"):
        if getattr(args, key) is not None:
            given[key] = str(getattr(args, key))
    return from_settings(given, Path())


def show(result: Evaluation, console: Console) -> None:
    """Print classes and confusions as tables, then the figures."""
    if result.classification and len(result.classification.classes) <= MOST_CLASSES:
        _show_classes(result.classification, console)
    for line in result.headline():
        console.print(line, markup=False, soft_wrap=True)


def _show_classes(found: Classification, console: Console) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    names = [score.name for score in found.classes]
    for title in ("class", "samples", "recall", "precision"):
        table.add_column(title, justify="left" if title == "class" else "right")
    for name in names:
        table.add_column(f"as {name}", justify="right")
    for score, row in zip(found.classes, found.confusion, strict=True):
        shares = ("" if s is None else f"{100 * s:.1f} %" for s in (score.recall, score.precision))
        table.add_row(score.name, f"{score.samples:,}", *shares, *(str(count or ".") for count in row))
    roomy(console).print(table, markup=False)
