# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`test`: a Twister test for a model of an application."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyml.base.errors import ConfigError
from tinyml.projects import files, folder
from tinyml.projects.manifest import ModelEntry
from tinyml.verbs.base import Verb, add_app_argument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from tinyml.ir import Array, Graph
    from tinyml.pipeline import Compiled
    from tinyml.projects.twister import Accuracy, Golden
    from tinyml.settings.evaluation import Evaluate
    from tinyml.settings.quantize_request import Request

MOST_SAMPLES = 8
ENOUGH_BYTES = 24 * 1024  # of flash for samples; at least one is always used
MOST_ROWS, ROWS_BYTES = 64, 64 * 1024  # of a test set, unless tinyml.yaml has their number


class MakeTest(Verb):
    """Write a Twister test for a model of an application.

    The test is a separate application in tests/NAME: it runs the model on known inputs and compares
    the outputs, integers exactly. The inputs are yours (--input) or generated; the outputs are those in
    your file (out0, out1, ... or by name) or those that the model's C computes on this machine.

    If the model has a test set (`evaluate:` in tinyml.yaml), some of its rows become part of the test, which
    then also requires that enough of the decisions on the board are right.

    `west twister --integration -T tests` then runs it as a numeric regression test, also in CI: on an
    emulated Cortex-M3 and on native_sim. After an intended change of the model, run this again with --force.
    """

    name = "test"
    help = "write a Twister test for a model of an application"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="the model's name, as `list` shows it")
        add_app_argument(parser)
        parser.add_argument("--input", type=Path, metavar="X.npz", help="inputs, and outputs if it has them")
        parser.add_argument(
            "--platform",
            action="append",
            default=[],
            metavar="BOARD",
            help="also build and run it for this board with `west twister --integration` (repeatable)",
        )
        parser.add_argument("--force", action="store_true", help="overwrite an existing test")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        app = folder.find_application(args.app, Path.cwd())
        entry = app.model(args.name)
        place = place_for(app, entry.name)
        if not args.force:
            refuse_existing(place, "--force overwrites it")
        files.replace_all(contents(app, entry, args.input, place, platforms=args.platform))
        said(console, app, place)
        return 0


def place_for(app: folder.Application, name: str) -> Path:
    """The folder of a model's test."""
    return app.root / "tests" / name


def refuse_existing(place: Path, hint: str) -> None:
    if place.exists():
        raise ConfigError(f"there is already a test in {place}", hint)


def contents(
    app: folder.Application,
    entry: ModelEntry,
    given: Path | None,
    place: Path,
    model: Path | None = None,
    quantize: Request | None = None,
    platforms: Sequence[str] = (),
) -> dict[Path, bytes | None]:
    """The files of the test. ``model``, ``quantize``: the current files, if they have not been copied yet."""
    from tinyml.pipeline import compile_model
    from tinyml.projects.twister import test_files
    from tinyml.settings.optimize import BALANCED

    wanted = {"classes": (), "optimize": BALANCED.name, "npu": ""}  # what the outputs do not depend on
    options = entry.options(
        app.root, target="host", kernels="portable", quantize=quantize or entry.request(app.root), **wanted
    )
    compiled = compile_model(model or entry.path(app.root), options)
    golden = golden_of(compiled.graph, compiled.files, given)
    golden = replace(golden, inputs=_as_it_arrives(compiled.summary, golden.inputs))
    file = folder.relative(app.root / entry.file, place)
    accuracy = _accuracy(compiled, entry.evaluate, entry.classes, app.root) if entry.evaluate else None
    moved = entry.relocated(file, lambda path: folder.relative(app.root / path, place))
    texts = test_files(moved, file, compiled.summary, golden, platforms, accuracy)
    return {place / path: text.encode() for path, text in texts.items()}


def said(console: Console, app: folder.Application, place: Path) -> None:
    where = folder.relative(place, app.root)
    console.print(
        f"wrote a test to {where}; run it with: west twister --integration -T {where}",
        markup=False,
        soft_wrap=True,
    )


def golden_of(graph: Graph, files: Mapping[str, str], given: Path | None) -> Golden:
    """Inputs and the corresponding outputs."""
    from tinyml import harness
    from tinyml.datasets.generated_samples import generated
    from tinyml.datasets.model_inputs import load_samples
    from tinyml.projects.twister import Golden

    samples = load_samples(given, graph) if given else generated(graph, _count(graph))
    inputs = [[sample[name] for name in graph.inputs] for sample in samples]
    expected = _given_outputs(graph, given, len(samples)) if given else None
    if expected is not None:
        return Golden(inputs, expected, "given by the user")
    computed = harness.run_files(files, "host", samples, reset_before={0}).outputs
    outputs = [[sample[name] for name in graph.outputs] for sample in computed]
    return Golden(inputs, outputs, "computed by the model's C on the host")


def _as_it_arrives(
    summary: Mapping[str, Any], samples: Sequence[Sequence[Array]]
) -> Sequence[Sequence[Array]]:
    """Inputs in the order in which the test feeds them: that of rows can differ from the model file's."""
    from tinyml.ir.row_order import RowOrder

    order = RowOrder.of_summary(summary.get("rows", {}))
    return [[order.arranged(array) for array in sample] for sample in samples] if order else samples


def _accuracy(compiled: Compiled, wanted: Evaluate, classes: Sequence[str], root: Path) -> Accuracy:
    """Rows of the test set, on which the model's C reaches the accuracy on this machine."""
    import math

    import numpy as np

    from tinyml.api.data import test_set
    from tinyml.api.evaluated import deciding_output, rows_of
    from tinyml.base.progress import silent
    from tinyml.compare.accuracy import truth
    from tinyml.compare.accuracy.answers import compiled_answers
    from tinyml.harness import Standalone
    from tinyml.pipeline import read_samples
    from tinyml.projects.twister import Accuracy
    from tinyml.settings.quantize_request import from_settings

    graph = compiled.graph
    one = sum(graph.tensors[name].bytes for name in graph.inputs)
    count = wanted.rows or max(1, min(MOST_ROWS, ROWS_BYTES // max(one, 1)))
    labels = root / wanted.labels if wanted.labels else None
    with test_set(root / wanted.data, labels) as (data, file):
        given = {"calibration": str(data), "samples": str(count), **wanted.scaling}
        request = from_settings(given | ({"labels": str(file)} if file else {}), Path())
        test = read_samples(request, graph)
    if test.labels is None:
        raise ConfigError(f"{wanted.data} has no labels", "evaluate: labels: FILE, or an array in the .npz")
    output, is_number = deciding_output(graph, wanted.output)
    found, _ = compiled_answers(compiled, Standalone("host"), test.inputs, test.starts, silent)
    answers, right = rows_of(found, output), np.asarray(test.labels)
    if truth.choose_task("auto", answers, right, is_number) != "classes":
        raise ConfigError(f"the labels of {wanted.data} are not classes", "evaluate: needs classes")
    numbers = truth.class_numbers(right, answers, tuple(classes) or graph.labels)
    reached = int((truth.decisions(answers, is_number) == numbers).sum())
    needed = math.ceil(wanted.min_accuracy * len(test) - 1e-9)
    if reached < needed:
        raise ConfigError(
            f"{reached} of {len(test)} decisions are right here, and min_accuracy requires {needed}",
            "a better model, more rows, or a lower min_accuracy",
        )
    return Accuracy(
        _as_it_arrives(compiled.summary, [[sample[name] for name in graph.inputs] for sample in test.inputs]),
        numbers.tolist(),
        [index in test.starts or index == 0 for index in range(len(test))],
        needed,
        output,
        answers.shape[1],
        is_number,
    )


def _count(graph: Graph) -> int:
    """As many samples as fit into a reasonable amount of flash."""
    one = sum(graph.tensors[name].bytes for name in (*graph.inputs, *graph.outputs))
    return max(1, min(MOST_SAMPLES, ENOUGH_BYTES // max(one, 1)))


def _given_outputs(graph: Graph, given: Path, runs: int) -> list[list[Array]] | None:
    """The outputs of each run in the user's file; None if it has none."""
    from tinyml.datasets import arrays

    if given.is_dir() or given.suffix.lower() not in (".npz", ".npy"):
        return None  # other kinds of files have inputs alone
    try:
        stored = arrays.read_numpy(given)
    except arrays.UNREADABLE:  # replaced since its inputs were read
        raise ConfigError(f"{given} is not a .npz file", "numpy.savez(file, in0=array, out0=array)") from None
    found = [stored.get(name, stored.get(f"out{i}")) for i, name in enumerate(graph.outputs)]
    if all(array is None for array in found):
        return None
    checked = []
    for name, array in zip(graph.outputs, found, strict=True):
        tensor = graph.tensors[name]
        if array is None or array.size != runs * tensor.elements or array.dtype != tensor.dtype.numpy:
            has = "nothing" if array is None else f"{array.dtype} {array.shape}"
            raise ConfigError(
                f"{given}: the output {name!r} must be {tensor.dtype.value} {tensor.shape}, found {has}",
                "store all outputs of the model, or none",
            )
        checked.append(array.reshape(runs, *tensor.shape))
    return [list(outputs) for outputs in zip(*checked, strict=True)]
