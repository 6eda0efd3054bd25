# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The whole comparison of a compiled model with a reference: outputs first, then the search for the cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from tinyml.base.errors import TinymlError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.progress import Progress, silent
from tinyml.compare import bisect, double
from tinyml.compare.difference import Difference, Tolerance, compare, slack_of, state_step_of, step_of
from tinyml.compare.in_numpy import InNumpy
from tinyml.compare.reference import DENSE_CAUSE, DENSE_NOTE, Answer, Numpy, find_reference
from tinyml.compare.stored_values import as_stored, fitting
from tinyml.harness import Runner, Standalone
from tinyml.ir import Array, Graph
from tinyml.ops.shared.real import HYBRID
from tinyml.ops.weighted import float16_sums
from tinyml.pipeline import (
    Compiled,
    ModelFile,
    Options,
    compile_model,
    has_float16_sums,
    quantize_model,
    read_model,
    shapes_to_quantize,
    with_outputs,
)

FLOAT16 = "`arithmetic: float16` rounds sums to float16; the reference does not"

HYBRID_TOLERANCE = 0.05
"""TensorFlow Lite rounds the activations of hybrid layers to 8 bits, about 0.4 % in each layer."""

ROUNDED_TWICE = "numpy, with two roundings in dense layers; with one, it equals {}"

RECURRENT_STEPS = 4
"""Steps of the int8 state between a recurrent layer on integers and in float; the most that was seen is 3."""

RECURRENT = "recurrent layers on integers round their state to int8 after every step; the reference does not"


@dataclass(frozen=True)
class Line:
    """One output of one sample."""

    sample: int
    output: str
    difference: Difference


@dataclass
class Verdict:
    reference: str
    note: str = ""  # why they may not be equal
    hint: str = ""  # how to get a better reference
    lines: list[Line] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)  # only if something differs

    @property
    def fine(self) -> bool:
        return all(line.difference.fine for line in self.lines)

    @property
    def values(self) -> int:
        return sum(line.difference.size for line in self.lines)

    @property
    def equal(self) -> int:
        return sum(line.difference.equal for line in self.lines)


@dataclass(frozen=True)
class Subject:
    """A compiled model, and the graph after every stage."""

    file: ModelFile
    options: Options
    compiled: Compiled
    stages: Sequence[tuple[str, Graph]]

    @property
    def imported(self) -> Graph:
        return self.stages[0][1]


def subject(path: Path, options: Options) -> Subject:
    file = with_outputs(read_model(path), options.outputs)
    stages: list[tuple[str, Graph]] = []
    compiled = compile_model(file, options, lambda name, graph: stages.append((name, graph)))
    return Subject(file, options, compiled, stages)


def check(
    model: Subject,
    place: Runner,
    samples: Sequence[Mapping[str, Array]],
    choice: str = "auto",
    steps: float | None = None,
    relative: float | None = None,
    progress: Progress = silent,
) -> Verdict:
    """Run ``samples`` one after the other on ``place`` and compare; explain a difference if there is one.

    Where the user gives no tolerance: integers of TFLite models are equal to a reference that rounds as
    CMSIS-NN does, all others are at most one step away; floats agree to 1e-5 of the largest value, or to
    ``double.limit``, or to 5 % where a hybrid model is computed in float and the reference quantises its
    activations, or to 2 % where products are added up in float16. What depends on recurrent layers with int8
    states may be ``RECURRENT_STEPS`` of these away. If the rounding of dense layers is all that
    differs, and adds up to more, the C must equal numpy, which rounds twice.
    """
    by_rule = steps is None and relative is None
    reference = find_reference(_reference_file(model), model.imported, choice)
    graph = model.compiled.graph
    progress(f"the C, on {place.name}", 0, 1)
    result = place.run(model.compiled.files, samples)
    progress(f"the C, on {place.name}", 1, 1)
    given = fitting(model.imported, graph, samples)
    answers = [_as_compiled(answer, graph) for answer in reference.run(given, progress)]
    by_default = 0 if model.file.is_tflite and reference.exact else 1
    hybrid = HYBRID in model.imported.notes and not reference.exact
    if hybrid and relative is None:
        relative = HYBRID_TOLERANCE
    halves = has_float16_sums(model.compiled.selected)
    if halves and relative is None:
        relative = float16_sums.TOLERANCE
    recurrent = steps is None and any(state_step_of(graph, name) for name in graph.outputs)
    limits = [
        _tolerance(graph, name, by_default if steps is None else steps, relative) for name in graph.outputs
    ]
    if recurrent:
        limits = [_with_states(graph, *pair) for pair in zip(graph.outputs, limits, strict=True)]
    sizes = [step_of(graph, name) for name in graph.outputs]
    notes = {HYBRID: hybrid, FLOAT16: halves, RECURRENT: recurrent}
    note = next((words for words, applies in notes.items() if applies), "")
    verdict = Verdict(reference.name, note, reference.hint)
    _fill(verdict, graph, result.outputs, answers, sizes, limits)
    if relative is None and not verdict.fine:
        progress("limits from 64-bit floats", 0, 1)
        wider = double.limit(model.imported, given)
        limits = [replace(tolerance, relative=max(tolerance.relative, wider)) for tolerance in limits]
        _fill(verdict, graph, result.outputs, answers, sizes, limits)
    if verdict.equal < verdict.values and not verdict.note:
        verdict.note = reference.note(model.imported, given, answers)
    if not verdict.fine and verdict.note == DENSE_NOTE and by_rule:
        rounded = Numpy(model.imported).run(given, progress)
        exact = [_tolerance(graph, name, 0, None) for name in graph.outputs]
        twice = Verdict(ROUNDED_TWICE.format(reference.name), DENSE_CAUSE, reference.hint)
        _fill(twice, graph, result.outputs, [_as_compiled(one, graph) for one in rounded], sizes, exact)
        if twice.fine:
            return twice
    if not verdict.fine:
        progress("the search for the cause", 0, 1)
        limit = max(limits, key=lambda t: t.relative)
        is_numpy = isinstance(reference, Numpy)
        verdict.causes = list(_causes(model, place, samples, answers, sizes, limit, is_numpy))
    return verdict


def _fill(
    verdict: Verdict,
    graph: Graph,
    outputs: Sequence[Mapping[str, Array]],
    answers: Sequence[Answer],
    sizes: Sequence[float | None],
    limits: Sequence[Tolerance],
) -> None:
    verdict.lines = [
        Line(number, name, compare(found[name], answer.outputs[i], sizes[i], limits[i]))
        for number, (found, answer) in enumerate(zip(outputs, answers, strict=True))
        for i, name in enumerate(graph.outputs)
    ]


def _as_compiled(answer: Answer, graph: Graph) -> Answer:
    """With ``io int8``, float outputs of the reference as the integers that the C gives."""
    tensors = [graph.tensors[name] for name in graph.outputs]
    outputs = [as_stored(value, tensor) for value, tensor in zip(answer.outputs, tensors, strict=True)]
    return replace(answer, outputs=outputs)


def _reference_file(model: Subject) -> ModelFile:
    """The file for the reference: the model's own, or the quantised one if the model is quantised first."""
    if model.options.quantize is None:
        return model.file
    shapes = shapes_to_quantize(model.file, model.options)
    content = quantize_model(model.file, model.options.quantize, shapes).content
    return ModelFile(Path(f"{model.file.path.stem}_int8.onnx"), content)


def _tolerance(graph: Graph, name: str, steps: float, relative: float | None) -> Tolerance:
    if relative is not None:
        return Tolerance(steps, relative)
    slack = slack_of(graph, name) if steps else 0.0
    return Tolerance(steps, max(Tolerance().relative, slack))


def _with_states(graph: Graph, name: str, tolerance: Tolerance) -> Tolerance:
    """``RECURRENT_STEPS`` steps of the states before it, if there are any, in steps of this output."""
    state, quant = state_step_of(graph, name), graph.tensors[name].quant
    step = step_of(graph, name) or (quant.scale if quant is not None and not quant.per_channel else state)
    allowed = RECURRENT_STEPS * max(1.0, state / step) if state else 0.0
    return Tolerance(max(tolerance.steps, allowed), max(tolerance.relative, RECURRENT_STEPS * state))


def _causes(
    model: Subject,
    place: Runner,
    samples: Sequence[Mapping[str, Array]],
    answers: Sequence[Answer],
    sizes: Sequence[float | None],
    tolerance: Tolerance,
    is_numpy: bool,
) -> list[str]:
    if isinstance(place, InNumpy):
        return [
            bisect.first_wrong_stage(model.stages, samples, answers, sizes, tolerance) or "no stage differs"
        ]
    try:
        layer = bisect.first_wrong_layer(model.file, model.options, model.compiled, place, samples)
    except TinymlError as error:  # the outputs differ even so
        return [f"the layer could not be determined: {error}"]
    if layer is not None:
        return [layer]
    stage = bisect.first_wrong_stage(model.stages, samples, answers, sizes, tolerance)
    if stage is None:
        return [_whole_build(model, place, samples)]
    causes = ["every layer of the C computes what its operator does in numpy", stage]
    if not is_numpy and stage.startswith("the graph as it was imported"):
        given = fitting(model.imported, model.compiled.graph, samples)
        node = bisect.first_wrong_node(model.imported, given, answers, tolerance)
        causes.append(node or "no single node differs by more than that: small differences add up")
    return causes


PARTS_AGREE = (
    "every layer computes what its operator does in numpy, and the graph agrees with the reference at every "
    "stage"
)
POISONED = "with poisoned memory between its tensors, the C"


def _whole_build(model: Subject, place: Runner, samples: Sequence[Mapping[str, Array]]) -> str:
    """What is left where all parts agree: the build without inner tensors as outputs, or sums of roundings.

    The plan is checked before it is blamed: on the host, with all memory poisoned that is not a layer's own.
    """
    machine = place.name if isinstance(place, Standalone) else "host"
    checked = Standalone(machine, checked=True, check_arena=True)
    try:
        outputs = checked.run(model.compiled.files, samples).outputs
        plain = place.run(model.compiled.files, samples).outputs
    except ToolError as error:
        return f"{PARTS_AGREE}; but {POISONED} fails, please report this: {error}"
    same = all(
        compare(a[name], b[name], None, bisect.EXACT).fine
        for a, b in zip(outputs, plain, strict=True)
        for name in a
    )
    if not same:
        return f"{PARTS_AGREE}; but {POISONED} computes something else: please report this"
    return (
        f"{PARTS_AGREE}. The memory plan is not the cause: with all other memory poisoned, no layer reads or "
        "writes beyond its own, and the outputs are the same. Differences of single layers, each within its "
        "limit, add up; --tolerance sets how much is allowed"
    )
