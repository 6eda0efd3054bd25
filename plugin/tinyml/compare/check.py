# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The whole comparison of a compiled model with a reference: outputs first, then the search for the cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tinyml.compare import bisect
from tinyml.compare.difference import Difference, Tolerance, compare, slack_of, step_of
from tinyml.compare.in_numpy import InNumpy
from tinyml.compare.interface import as_stored, fitting
from tinyml.compare.reference import Answer, Numpy, find_reference
from tinyml.errors import TinymlError
from tinyml.harness import Place
from tinyml.ir import Array, Graph
from tinyml.ops.shared.real import HYBRID
from tinyml.pipeline import Compiled, ModelFile, Options, compile_model, quantize_model, read_model

HYBRID_TOLERANCE = 0.05
"""TensorFlow Lite rounds the activations of hybrid layers to 8 bits, about 0.4 % in each layer."""


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
    file = read_model(path)
    stages: list[tuple[str, Graph]] = []
    compiled = compile_model(file, options, lambda name, graph: stages.append((name, graph)))
    return Subject(file, options, compiled, stages)


def check(
    model: Subject,
    place: Place,
    samples: Sequence[Mapping[str, Array]],
    choice: str = "auto",
    steps: float | None = None,
    relative: float | None = None,
) -> Verdict:
    """Run ``samples`` one after the other on ``place`` and compare; explain a difference if there is one.

    Where the user gives no tolerance: integers of TFLite models are equal to a reference that rounds as
    CMSIS-NN does, all others are at most one step away; floats agree to 1e-5 of the largest value,
    or to 5 % where a hybrid model is computed in float and the reference quantises its activations.
    """
    reference = find_reference(_reference_file(model), model.imported, choice)
    graph = model.compiled.graph
    result = place.run(model.compiled.files, samples)
    answers = [
        _as_compiled(answer, graph) for answer in reference.run(fitting(model.imported, graph, samples))
    ]
    by_default = 0 if model.file.is_tflite and reference.exact else 1
    hybrid = HYBRID in model.imported.notes and not reference.exact
    if hybrid and relative is None:
        relative = HYBRID_TOLERANCE
    limits = [
        _tolerance(graph, name, by_default if steps is None else steps, relative) for name in graph.outputs
    ]
    sizes = [step_of(graph, name) for name in graph.outputs]
    verdict = Verdict(reference.name, HYBRID if hybrid else reference.note, reference.hint)
    for number, (outputs, answer) in enumerate(zip(result.outputs, answers, strict=True)):
        for index, name in enumerate(graph.outputs):
            difference = compare(outputs[name], answer.outputs[index], sizes[index], limits[index])
            verdict.lines.append(Line(number, name, difference))
    if not verdict.fine:
        limit = max(limits, key=lambda t: t.relative)
        is_numpy = isinstance(reference, Numpy)
        verdict.causes = list(_causes(model, place, samples, answers, sizes, limit, is_numpy))
    return verdict


def _as_compiled(answer: Answer, graph: Graph) -> Answer:
    """With ``io int8``, float outputs of the reference as the integers that the C gives."""
    tensors = [graph.tensors[name] for name in graph.outputs]
    outputs = [as_stored(value, tensor) for value, tensor in zip(answer.outputs, tensors, strict=True)]
    return replace(answer, outputs=outputs)


def _reference_file(model: Subject) -> ModelFile:
    """The file for the reference: the model's own, or the quantised one if the model is quantised first."""
    if model.options.quantize is None:
        return model.file
    content = quantize_model(model.file, model.options.quantize, model.options.shapes).content
    return ModelFile(Path(f"{model.file.path.stem}_int8.onnx"), content)


def _tolerance(graph: Graph, name: str, steps: float, relative: float | None) -> Tolerance:
    if relative is not None:
        return Tolerance(steps, relative)
    slack = slack_of(graph, name) if steps else 0.0
    return Tolerance(steps, max(Tolerance().relative, slack))


def _causes(
    model: Subject,
    place: Place,
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
        return [
            "every layer computes what its operator does in numpy, and the graph agrees with the reference "
            "at every stage: only the build without inner tensors as outputs differs, which points to the "
            "memory plan; please report this"
        ]
    causes = ["every layer of the C computes what its operator does in numpy", stage]
    if not is_numpy and stage.startswith("the graph as it was imported"):
        given = fitting(model.imported, model.compiled.graph, samples)
        node = bisect.first_wrong_node(model.imported, given, answers, tolerance)
        causes.append(node or "no single node differs by more than that: small differences add up")
    return causes
