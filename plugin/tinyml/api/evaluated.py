# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.evaluate``: how good a compiled model is on a test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from tinyml import harness
from tinyml.api.after_learning import PYTHON, Learnt, after_learning, check_learning
from tinyml.api.choices import Machine, Task
from tinyml.api.compiled import CompiledModel, as_compiled
from tinyml.api.data import DataLike, check_data, test_set
from tinyml.api.example_labels import folder_names
from tinyml.api.pictures import confusion_matrix
from tinyml.api.printed_tables import table
from tinyml.api.running import EVERY
from tinyml.api.sources import Model, ModelLike, as_model
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.progress import Progress, silent
from tinyml.compare.accuracy import truth
from tinyml.compare.accuracy.answers import compiled_answers, original_answers, why_they_differ
from tinyml.compare.accuracy.scores import Classification, Regression, classify, regress
from tinyml.compare.difference import signal_to_noise_db
from tinyml.cores.boards import known_board, similar_board
from tinyml.cost.energy import Energy, energies
from tinyml.cost.estimate import estimate_for
from tinyml.datasets.arrays import is_quantized
from tinyml.harness import Runner, Standalone
from tinyml.ir import Array, Graph
from tinyml.pipeline import read_samples
from tinyml.settings.quantize_request import Request, Scaling

UNKNOWN_CHIP = "?"
"""Of a board that is not known: no energy was published for it."""


@dataclass(frozen=True)
class OutputDifference:
    """An output of the compiled model against that of the original, over all samples."""

    output: str  # its name
    snr_db: float  # signal-to-noise ratio
    largest: float  # the largest difference


@dataclass(frozen=True)
class Original:
    """The original model on the same samples, in its own runtime."""

    model: str  # its file
    runtime: str  # onnxruntime, LiteRT, …
    changed: int | None  # decisions that differ from the original's; None if there are none
    changed_samples: tuple[int, ...]  # the first of them
    accuracy: float | None  # of the original
    outputs: tuple[OutputDifference, ...]  # one by one
    note: str = ""  # why outputs differ, where the cause was checked


@dataclass(frozen=True, repr=False)
class Evaluation:
    """A compiled model on a test set. Which parts there are depends on the labels."""

    model: str  # its prefix in C
    machine: str  # where it ran
    samples: int  # of the test set
    task: str  # classes, values or raw
    classification: Classification | None = None  # if the labels are classes
    regression: Regression | None = None  # if the labels are values
    original: Original | None = None  # the original model on the same samples
    cycles: int | None = None  # of one run: measured on hardware, or estimated for an emulated core
    cycles_measured: bool = False  # whether they are measured
    energies: tuple[Energy, ...] = ()  # of one run, where a figure was published for the board or core
    learnt: Learnt | None = None  # of a model that learns, if there are examples

    @property
    def accuracy(self) -> float | None:
        """The share of right decisions, 0 to 1; None without classes and labels."""
        return self.classification.accuracy if self.classification else None

    def as_json(self) -> dict[str, Any]:
        """Plain data, for files."""
        return asdict(self)

    def headline(self) -> list[str]:
        """The figures, one per line."""
        lines = []
        if self.classification:
            right = round(self.classification.accuracy * self.samples)
            percent = 100 * self.classification.accuracy
            lines.append(f"accuracy {percent:.2f} % ({right:,} of {self.samples:,} samples)")
        if self.regression:
            r2 = "" if self.regression.r2 is None else f", R² {self.regression.r2:.4f}"
            lines.append(
                f"mean absolute error {self.regression.mae:.6g}{r2}, largest {self.regression.largest:.6g}"
            )
        if self.original:
            lines += _against(self.original, self.samples)
        if self.learnt:
            lines.append(str(self.learnt))
        how = "measured" if self.cycles_measured else "estimated"
        lines += [f"energy: {energy} {energy.unit()}, from {how} cycles" for energy in self.energies]
        return lines

    def __repr__(self) -> str:
        figures = "; ".join(self.headline()) or f"{self.samples:,} samples"
        return f"<Evaluation of {self.model} on {self.machine}: {figures}>"

    def _repr_html_(self) -> str:
        rows = [(self.model, f"on {self.machine}"), *(("", line) for line in self.headline())]
        html = table(rows)
        if self.classification:
            names = [score.name for score in self.classification.classes]
            confusion = zip(names, self.classification.confusion, strict=True)
            html += confusion_matrix(names, self.classification.confusion) or table(
                [(name, *row) for name, row in confusion], ("right \\ decided", *names)
            )
        return html


def _against(original: Original, samples: int) -> list[str]:
    lines = []
    if original.changed is not None:
        was = "" if original.accuracy is None else f", accuracy {100 * original.accuracy:.2f} %"
        lines.append(
            f"{original.changed:,} of {samples:,} decisions differ from {original.model} in "
            f"{original.runtime}{was}"
        )
    lines += [
        f"{found.output}: {found.snr_db:.1f} dB against {original.model}, largest difference "
        f"{found.largest:.6g}"
        for found in original.outputs
    ]
    if original.note:
        lines.append(f"note: {original.runtime} differs because {original.note}")
    return lines


@dataclass(frozen=True)
class Question:
    """The figures to compute from the answers."""

    classes: tuple[str, ...] = ()  # names, in the order of the model's outputs
    task: str = "auto"
    output: str = ""  # the output that decides; default: the first


def evaluate(
    model: ModelLike,
    data: DataLike,
    labels: DataLike | None = None,
    *,
    example: Any = None,
    on: Machine = "host",
    against: ModelLike | None = None,
    classes: Sequence[str] = (),
    task: Task = "auto",
    output: str = "",
    samples: int | None = None,
    range: tuple[float, float] | None = None,
    mean: Sequence[float] = (),
    std: Sequence[float] = (),
    learn: DataLike | None = None,
    learn_labels: DataLike | None = None,
    rounds: int = 1,
    progress: Progress | None = None,
) -> Evaluation:
    """Run a test set through the compiled C and compare it with labels and with the original model.

    :param model: a file, bytes, or a model of a training framework; one from ``tinyml.compile`` is taken as
        it is
    :param data: the inputs of the test set
    :param labels: class numbers, names or one-hot rows, or values to predict; default: those in the data
    :param example: example inputs of a PyTorch module or a JAX function, which determine the shapes: an
        array or tensor, a tuple of them, or one shape
    :param on: where the C runs: ``host``, or an emulated core such as ``qemu-cortex-m4``
    :param against: the original (default: the same model in its own runtime)
    :param classes: the names of the classes in the order of the outputs
    :param task: what the labels are; ``auto`` decides by them. ``raw``: outputs are only compared with the
        original's
    :param output: the output that decides (default: the first)
    :param samples: use at most so many samples, evenly spread
    :param range: what the smallest and the largest pixel or sample become: ``(0, 1)``
    :param mean: is subtracted after the range, per channel
    :param std: divides after the mean, per channel
    :param learn: examples for a model that is compiled with ``adapt=``; the accuracy afterwards is
        ``learnt`` of the result
    :param learn_labels: the labels of the examples; default: those in ``learn``
    :param rounds: how often the examples are learnt
    :param progress: is called with the name of a step, how much of it is done, and how much there is
    """
    compiled = as_compiled(
        model if isinstance(model, CompiledModel) else as_model(model, example),
        harness.find_machine(on).target.name,
    )
    check_learning(compiled, learn is not None, learn_labels is not None, rounds, PYTHON)
    low, high = range if range is not None else (None, None)
    original = as_model(against, example) if against is not None else compiled.model
    with test_set(data, labels) as (path, truth_file):
        request = Request(
            path,
            labels=truth_file,
            scaling=Scaling(low, high, tuple(mean), tuple(std)),
            samples=EVERY if samples is None else samples,
        )
        question = Question(tuple(classes), task, output)
        result = measure(compiled, Standalone(on), request, original, question, progress)
        if learn is None:
            return result
        with test_set(learn, learn_labels) as (examples, known):
            given = replace(request, calibration=examples, labels=known, samples=EVERY)
            return replace(result, learnt=after_learning(compiled, given, request, rounds, question.classes))


def measure(
    compiled: CompiledModel,
    place: Runner,
    request: Request,
    original: Model,
    question: Question,
    progress: Progress | None = None,
) -> Evaluation:
    """``evaluate`` with the settings of the command line, anywhere a model can run."""
    graph, report = compiled.built.graph, progress or silent
    check_data(request.calibration)
    test = read_samples(request, graph)
    found, measured = compiled_answers(compiled.built, place, test.inputs, test.starts, report)
    with original.file() as path:
        shapes = original.shapes or compiled.options.shapes
        runtime, wanted = original_answers(path, shapes, graph, test.inputs, test.starts, report)
        same_model = original.content == compiled.model.content and not compiled.options.quantize
        why = why_they_differ(path, shapes, graph, test.inputs, (found, wanted)) if same_model else ""
    theirs = Answers(path.name, runtime, wanted, why)
    result = judge(
        compiled.name, place.name, graph, found, theirs, test.labels, request.calibration, question
    )
    guess = estimate_for(compiled.built) if measured is None else None
    cycles = guess.cycles if guess else measured
    spent = energies(str(compiled.built.summary["target"]), cycles, _chip(place))
    return replace(result, cycles=cycles, cycles_measured=measured is not None, energies=spent)


def _chip(place: Runner) -> str:
    """That of a board; none, and so any chip with the same core, for an emulated core."""
    if not place.board:
        return ""
    known = known_board(place.board) or similar_board(place.board)
    return (known.chip if known else "") or UNKNOWN_CHIP


@dataclass(frozen=True)
class Answers:
    """The outputs of the original model for each sample, as real numbers."""

    model: str
    runtime: str
    outputs: Sequence[Sequence[Array]]
    note: str = ""


def judge(
    name: str,
    machine: str,
    graph: Graph,
    found: Sequence[Sequence[Array]],
    original: Answers | None,
    given_labels: Array | None,
    data: Path,
    question: Question,
) -> Evaluation:
    """The figures, from the answers of a model (and its original) to a test set."""
    labels = None if given_labels is None else np.asarray(given_labels)
    index, whole = deciding_output(graph, question.output)
    ours = rows_of(found, index)
    theirs = None if original is None else rows_of(original.outputs, index)
    task = truth.choose_task(question.task, ours, labels, whole)
    names = question.classes or graph.labels or folder_names(data, labels)
    scores = was = changed = values = None
    if task == "classes":
        decided = truth.decisions(ours, whole)
        before = None if theirs is None else truth.decisions(theirs, whole)
        changed = None if before is None else np.flatnonzero(decided != before)
        if labels is not None:
            right = truth.class_numbers(labels, ours, names)
            scores = classify(decided, right, names)
            was = None if before is None else float(np.mean(before == right))
    elif task == "values" and labels is not None:
        values = regress(ours, truth.values(labels, ours))
    if original is None:
        return Evaluation(name, machine, len(found), task, scores, values)
    outputs = [
        OutputDifference(output, *_difference(rows_of(found, i), rows_of(original.outputs, i)))
        for i, output in enumerate(graph.outputs)
    ]
    first = () if changed is None else tuple(changed[:20].tolist())
    count = None if changed is None else len(changed)
    compared = Original(original.model, original.runtime, count, first, was, tuple(outputs), original.note)
    return Evaluation(name, machine, len(found), task, scores, values, compared)


def rows_of(answers: Sequence[Sequence[Array]], index: int) -> Array:
    """One output of all samples, a row for each."""
    return np.stack([outputs[index].reshape(-1) for outputs in answers])


def _difference(ours: Array, theirs: Array) -> tuple[float, float]:
    return signal_to_noise_db(ours, theirs), float(np.abs(ours - theirs).max(initial=0.0))


def deciding_output(graph: Graph, chosen: str) -> tuple[int, bool]:
    """The index of the output called ``chosen`` (default: the first); whether it is a class number."""
    if chosen and chosen not in graph.outputs:
        raise ConfigError(f"the model has no output {chosen!r}", f"one of: {', '.join(graph.outputs)}")
    index = graph.outputs.index(chosen) if chosen else 0
    tensor = graph.tensors[graph.outputs[index]]
    return index, tensor.dtype.is_integer and not is_quantized(tensor) and tensor.elements == 1
