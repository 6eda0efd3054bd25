# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Makes the report of a quantisation: every layer with its type and its noise, and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx
from onnx import TensorProto, helper

from tinyml.datasets.reader import Samples
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize import measure
from tinyml.quantize.constants import float_bytes
from tinyml.quantize.forests import forest_bytes, ignores_missing
from tinyml.quantize.improve import Steps
from tinyml.quantize.layers import FloatLayer, chosen
from tinyml.quantize.loop_bodies import with_float_loops
from tinyml.quantize.measure import Outcome
from tinyml.quantize.precision import Precision
from tinyml.quantize.prepare import LOOPS
from tinyml.quantize.report import LOW_DECIBELS, LayerNoise, Remedy, Report
from tinyml.quantize.sparsity import sparsity_of
from tinyml.quantize.work import NAMED, NEEDED, Work

REAL = {TensorProto.UNDEFINED, TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE}
"""Types of tensors that a reader thinks of as real numbers; the first: nobody knows."""

WATCHED_SAMPLES = 32
"""Number of samples whose activations are kept in memory to compare layers."""

DOUBTFUL = 0.5
"""Below this accuracy of the float model, its labels or preprocessing are probably wrong."""

TRIED_LAYERS = 3
"""Layers with much noise for which other types are tried."""


def reported(work: Work, model: onnx.ModelProto, wanted: Precision, steps: Steps) -> Report:
    outcome = work.reference.compare(model, work.progress, "error at the outputs")
    layers = _layers(work, model, wanted)
    report = Report(
        steps.method,
        dict(steps.methods),
        len(work.samples),
        outcome.decibels,
        outcome.outputs,
        outcome.largest_error,
        outcome.decisions,
        outcome.accuracy_float,
        outcome.accuracy_int8,
        layers,
        tuple(layer.name for layer in wanted.floats),
        tuple(layer.name for layer in wanted.int16),
        float_bytes(work.in_float) + forest_bytes(work.in_float),
        float_bytes(model) + forest_bytes(model),
        sparsity_of(work.original),
        _warnings(work, outcome, layers, wanted),
        steps={name: [*decibels] for name, decibels in steps.taken.items()},
    )
    return replace(report, remedies=_remedies(work, report, wanted))


def _layers(work: Work, model: onnx.ModelProto, wanted: Precision) -> tuple[LayerNoise, ...]:
    layers = [*work.layers, *_others(work)]
    places = {node.name: place for place, node in enumerate(work.original.graph.node)}
    layers.sort(key=lambda layer: places[layer.name])
    noise = _noise(work, model, layers)
    kinds = _Kinds(work, wanted, layers)
    found = []
    added: list[float | None] = []
    for layer in layers:
        decibels = noise.get(layer.output)
        sources = [noise[name] for name in layer.inputs if name in noise]
        lost = max(min(sources) - decibels, 0.0) if sources and decibels is not None else None
        inherited = max((_power(noise[name]) for name in layer.inputs if name in noise), default=0.0)
        added.append(None if decibels is None else max(_power(decibels) - inherited, 0.0))
        kind, why = kinds.of(layer)
        weights = "int4" if layer.name in wanted.int4 else ""
        found.append(LayerNoise(layer.name, layer.op_type, kind, decibels, lost, None, why, weights))
    total = sum(value for value in added if value is not None)
    found = [
        layer if value is None else replace(layer, share=value / total if total > 0 else 0.0)
        for layer, value in zip(found, added, strict=True)
    ]
    return tuple(one for layer in found for one in (layer, *_inside(work, layer.name)))


def _inside(work: Work, loop: str) -> list[LayerNoise]:
    """The layers of a body, each with its noise in one turn after the other; their shares are not known."""
    report = work.loops.get(loop)
    return [replace(layer, share=None) for layer in report.layers] if report is not None else []


def _power(decibels: float) -> float:
    """Noise as a share of the signal."""
    return 0.0 if decibels >= measure.EXACT else float(10.0 ** (-decibels / 10.0))


def _others(work: Work) -> list[FloatLayer]:
    """Nodes that the quantiser knows nothing about: they stay float, and a reader wants to know that."""
    listed = {name for layer in work.layers for name in layer.nodes}
    return [
        FloatLayer(
            node.name,
            node.op_type,
            (node.name,),
            tuple(name for name in node.input if name),
            next(name for name in node.output if name),
        )
        for node in work.original.graph.node
        if node.name not in listed and node.op_type != "Constant" and any(node.output)
    ]


def _noise(work: Work, model: onnx.ModelProto, layers: list[FloatLayer]) -> Mapping[str, float]:
    """Decibels of the tensors between layers, against the float model that the integers were made of."""
    few = Samples(work.samples.inputs[:WATCHED_SAMPLES], starts=work.samples.starts)
    tensors = {name for layer in layers for name in (layer.output, *layer.inputs)}
    real = {name for name, type_ in _types(work.original).items() if type_ == TensorProto.FLOAT}
    computed = {name for node in work.original.graph.node for name in node.output}
    model_in_float = with_float_loops(work.basis.model, work.in_float) if work.loops else work.basis.model
    watched = work.reference_of(model_in_float, few, sorted(tensors & computed & real))
    return watched.compare(model, work.progress, "error of each layer").tensors


def _types(model: onnx.ModelProto) -> Mapping[str, int]:
    """The types of tensors, as far as they are known."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    values = (*graph.value_info, *graph.input, *graph.output)
    known = {value.name: value.type.tensor_type.elem_type for value in values}
    return known | {tensor.name: tensor.data_type for tensor in graph.initializer}


def _in_whole_numbers(work: Work, layers: Sequence[FloatLayer]) -> Mapping[str, str]:
    """The type of layers that compute in integers or truths as they are: counters, positions, conditions."""
    types = _types(work.original)
    found = {}
    for layer in layers:
        kinds = {types.get(name, TensorProto.FLOAT) for name in (*layer.inputs, layer.output) if name}
        if not kinds & REAL:
            found[layer.name] = str(helper.tensor_dtype_to_np_dtype(types[layer.output]))
    return found


class _Kinds:
    """The type of each layer and, for those in float, why."""

    def __init__(self, work: Work, wanted: Precision, layers: Sequence[FloatLayer]) -> None:
        self.work = work
        self.whole = _in_whole_numbers(work, layers)
        self.floats, self.int16 = work.floats(wanted), work.int16(wanted)
        self.bytes, self.forests = work.byte_weights(wanted), work.forests(wanted)
        self.float16 = wanted.float16
        named = {layer.name for layer in chosen(work.layers, work.request.keep_float)}
        self.kept = {
            node: NAMED if layer.name in named else NEEDED for layer in wanted.floats for node in layer.nodes
        }

    def of(self, layer: FloatLayer) -> tuple[str, str]:
        if layer.op_type in LOOPS:
            return self._of_loop(layer.name)
        if layer.name in self.whole:
            return self.whole[layer.name], ""
        if self.work.stays_float:
            small = layer.name in self.float16
            return ("float16 weights", "") if small else ("float", self.work.why.get(layer.name, ""))
        leaves = self.work.request.leaves
        if layer.name in self.forests:
            return ("int16" if leaves == "int16" else f"int16, {leaves} leaves"), ""
        if layer.name in self.bytes and layer.name in self.floats:
            return "int8 weights", self.kept.get(layer.name) or self.work.why.get(layer.name, "")
        if layer.name in self.kept:
            return "float", self.kept[layer.name]
        if not quantizing(layer.op_type).activations:
            return "float", f"there is no integer form of {layer.op_type}"
        if layer.name in self.work.why:
            return "float", self.work.why[layer.name]
        if layer.name in self.floats:
            return "float", "it only moves numbers between float layers"
        return ("int16" if layer.name in self.int16 else "int8"), ""

    def _of_loop(self, name: str) -> tuple[str, str]:
        """The types of what it computes, the most frequent first; float only if there is no other."""
        inside = self.work.loops[name].layers if name in self.work.loops else ()
        small = ("int8", "int16", "float16")
        kinds = Counter(layer.kind for layer in inside if layer.kind.startswith(small))
        if kinds:
            return ", ".join(kind for kind, _ in kinds.most_common()), ""
        kind = "float16 weights" if self.work.stays_float else "int8"
        return "float", self.work.why.get(name, f"no layer inside it is {kind}")


def _warnings(
    work: Work, outcome: Outcome, layers: tuple[LayerNoise, ...], wanted: Precision
) -> tuple[str, ...]:
    about_ranges = [] if work.stays_float else work.samples.warnings
    warnings = [*about_ranges, *work.own.warnings()]
    if ignores_missing(work.original, work.forests(wanted)):
        warnings.append(
            "the trees know what to do with missing values (NaN), the quantised ones do not: every "
            "feature must have a value"
        )
    warnings += work.reference.infinite(outcome) if work.request.measures else []
    if not any(layer.kind.startswith(("int8", "int16", "float16")) for layer in layers):
        small = "has float16 weights" if work.stays_float else "is int8"
        warnings.append(f"no layer {small}: the model stays as it is")
    if outcome.accuracy_float is not None and outcome.accuracy_float < DOUBTFUL:
        warnings.append(
            f"the float model itself is correct on only {100 * outcome.accuracy_float:.0f} % of the "
            "samples: are labels and preparation (--range, --mean, --std) those of the training? "
            "Subfolders are classes in alphabetical order"
        )
    return tuple(warnings)


def _remedies(work: Work, report: Report, wanted: Precision) -> tuple[Remedy, ...]:
    """Other types for the noisiest layers, and real outputs: what each gives, tried on the same data."""
    if work.stays_float:
        return ()
    found = []
    widened = {layer.name for layer in work.widened()} if report.weakest() and work.basis.ranges else set()
    candidates = {layer.name: layer for layer in work.candidates()}
    for noisy in report.weakest()[:TRIED_LAYERS]:
        layer = candidates.get(noisy.name)
        if layer is None:
            continue
        fewer = wanted.int4 - {layer.name}
        if noisy.kind == "int8" and layer.name in widened:
            other = replace(wanted, int16=(*wanted.int16, layer), int4=fewer)
            found.append(Remedy(f"--int16 {layer.name}", layer.name, work.trial(other).decibels))
        other = replace(wanted, floats=(*wanted.floats, layer), int4=fewer)
        found.append(Remedy(f"--keep-float {layer.name}", layer.name, work.trial(other).decibels))
    weak = [name for name, decibels in report.outputs.items() if decibels < LOW_DECIBELS]
    if weak and work.request.io == "int8":
        before, work.opened = work.opened, frozenset(report.outputs)
        outputs = work.trial(wanted).outputs
        found += [Remedy("--io float", name, outputs[name]) for name in weak]
        work.opened = before
    return tuple(found)
