# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""From a float model and calibration data to an int8 model with a report: the steps in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from tinyml.base.errors import ConfigError
from tinyml.base.progress import Progress, silent
from tinyml.datasets import reader
from tinyml.datasets.reader import Samples
from tinyml.features.feed import check_training
from tinyml.importers import ModelFile, metadata, read_model, states
from tinyml.importers.states import with_states
from tinyml.ir import Shape
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize import measure, search
from tinyml.quantize.activations import computed_limits
from tinyml.quantize.biases import other_biases
from tinyml.quantize.calibrate import SETTINGS, Ranges, calibrate, shared
from tinyml.quantize.export_check import check_export
from tinyml.quantize.forests import forest_bytes, ignores_missing, shrink_forests
from tinyml.quantize.integer_forms import float_nodes
from tinyml.quantize.layers import FloatLayer, chosen, find_layers, in_float_surroundings
from tinyml.quantize.observed import keep_observed
from tinyml.quantize.open_outputs import COARSE, open_outputs, worth_opening
from tinyml.quantize.own_operators import completed, restore
from tinyml.quantize.precision import Precision, int16_nodes
from tinyml.quantize.prepare import Prepared, float_bytes, prepare
from tinyml.quantize.recurrent import shrink_weights
from tinyml.quantize.report import LayerNoise, Report
from tinyml.quantize.rewrite import insert_qdq, to_int8_interface
from tinyml.quantize.sequences import store_integers, unrolled
from tinyml.quantize.sparsity import sparsity_of
from tinyml.quantize.unbounded import refuse_too_large, too_wide
from tinyml.settings.quantize_request import Request

WATCHED_SAMPLES = 32
"""Number of samples whose activations are kept in memory to compare layers."""

DOUBTFUL = 0.5
"""Below this accuracy of the float model, its labels or preprocessing are probably wrong."""

ROUNDS = 4
"""Maximum number of rounds: a node in float may leave a neighbour without an integer form."""


@dataclass(frozen=True)
class Quantized:
    """The int8 model, as ONNX with QuantizeLinear and DequantizeLinear, and what it cost."""

    model: onnx.ModelProto
    report: Report


def quantize(
    model: Path | ModelFile,
    request: Request,
    shapes: Mapping[str, Shape] | None = None,
    progress: Progress = silent,
) -> Quantized:
    """Quantise a float model file."""
    file = read_model(model)
    facts = metadata(file)
    if request.frontend is not None:
        check_training(request.frontend, facts)
    progress("reading the model", 0, 1)
    prepared = prepare(file, dict(shapes or {}))
    samples = reader.load(request, prepared.inputs, bool(prepared.states))
    if prepared.whole is not None:
        samples = completed(samples, prepared.whole, prepared.own)
    progress("reading the model", 1, 1)
    result = _Work(prepared, samples, request, progress).result()
    _keep_metadata(result.model, facts)
    return result


def _keep_metadata(model: onnx.ModelProto, facts: Mapping[str, str]) -> None:
    """What the training wrote down about the model holds for the quantised one: its front end, its rate."""
    written = {entry.key for entry in model.metadata_props}  # the states, whose tensors may have new names
    for key, value in facts.items():
        if key not in written and key != states.KEY:
            model.metadata_props.add(key=key, value=value)


class _Work:
    """One quantisation; holds what every step needs."""

    def __init__(self, prepared: Prepared, samples: Samples, request: Request, progress: Progress) -> None:
        self.float_model = prepared.model
        self.states = prepared.states
        self.own = prepared.own
        self.samples = samples
        self.request = request
        self.progress = progress
        self.layers = find_layers(self.float_model)
        if not self.layers:
            raise ConfigError("the model has no layer that could be int8", "compile it as it is")
        self.reference = measure.Reference(self.float_model, samples, states=self.states)
        if prepared.doubted is not None:
            check_export(prepared.doubted, samples, self.reference.results)
        self._int8_only: frozenset[str] | None = None
        self.opened: frozenset[str] = frozenset()  # outputs that are not quantised
        nodes = self.float_model.graph.node
        self.float_anyway = frozenset(n.name for n in nodes if quantizing(n.op_type).stays_float(n))
        self.float_anyway |= computed_limits(self.float_model) | other_biases(self.float_model)

    def result(self) -> Quantized:
        named = (self.request.keep_float, self.request.int16)
        wanted = Precision(*(tuple(chosen(self.layers, names)) for names in named))
        method, ranges, tried = self._best_method(wanted)
        self._open_outputs(ranges, wanted)
        candidates = [
            layer
            for layer in self.layers
            if quantizing(layer.op_type).matrices
            or quantizing(layer.op_type).trees
            or (layer.name not in self.float_anyway and not quantizing(layer.op_type).moves)
        ]
        if self.request.auto is not None:
            wanted = search.smallest_set(
                candidates,
                [layer for layer in candidates if not self._narrow(ranges) & {*layer.nodes}],
                wanted,
                self.request.auto,
                lambda held: self.reference.compare(self._model(ranges, held)),
                self.progress,
            )
        model = self._model(ranges, wanted)
        report = self._report(model, method, tried, wanted, self._int16(ranges, wanted))
        restore(model, self.own)
        inside = {name for state in self.states for name in (state.input, state.output)}
        keep_observed(model, self.samples.inputs, self.reference.results, inside)
        if self.request.io == "int8":
            model = to_int8_interface(model, inside)
        with_states(model, store_integers(model, self.states))
        if not self.own.nodes:  # the checker does not know operators from outside
            onnx.checker.check_model(model)
        return Quantized(model, report)

    def _best_method(self, wanted: Precision) -> tuple[str, Ranges, dict[str, float]]:
        """Ranges by the requested method, or by the one whose outputs are closest to float."""
        if not any(quantizing(layer.op_type).activations for layer in self.layers):
            self._find_integer_forms({}, wanted.floats)
            self._refuse_without_int16({}, wanted.int16)
            return "", {}, {}
        methods = list(SETTINGS) if self.request.method == "auto" else [self.request.method]
        found: dict[str, tuple[Ranges, float]] = {}
        inputs = unrolled(self.float_model, self.samples, self.states)
        for method in methods:
            try:
                ranges = calibrate(self.float_model, inputs, method, self.progress)
            except ConfigError:
                if not found:
                    raise
                continue  # the first method has ranges for everything, also where there is no histogram
            if not found:
                self.float_anyway |= too_wide(self.float_model, ranges)
                refuse_too_large(self.float_model, ranges, self._floats(wanted))
                self._find_integer_forms(ranges, wanted.floats)
                self._refuse_without_int16(ranges, wanted.int16)
            outcome = self.reference.compare(self._model(ranges, wanted), self.progress, f"error by {method}")
            found[method] = ranges, outcome.decibels
        best = max(found, key=lambda method: found[method][1])
        return best, found[best][0], {method: decibels for method, (_, decibels) in found.items()}

    def _open_outputs(self, ranges: Ranges, wanted: Precision) -> None:
        """Leave outputs real whose resolution int8 would take."""
        if self.request.io == "int8":
            return
        before = self.reference.compare(self._model(ranges, wanted)).outputs
        coarse = {name: decibels for name, decibels in before.items() if decibels < COARSE}
        if coarse:
            self.opened = frozenset(coarse)
            after = self.reference.compare(self._model(ranges, wanted)).outputs
            self.opened = worth_opening(coarse, after)

    def _find_integer_forms(self, ranges: Ranges, kept: Sequence[FloatLayer]) -> None:
        """Exclude layers that the compiler would compute in float anyway."""
        for _ in range(ROUNDS):
            more = float_nodes(self._model(ranges, Precision(tuple(kept)))) - self.float_anyway - _nodes(kept)
            more &= {node.name for node in self.float_model.graph.node}
            if not more:
                return
            self.float_anyway |= more

    def _narrow(self, ranges: Ranges) -> frozenset[str]:
        """Nodes whose integer form supports only int8, found by making everything int16 once."""
        if self._int8_only is None:
            everything = {node.name for node in self.float_model.graph.node} - self.float_anyway
            together = shared(self.float_model, ranges, self.float_anyway, self.states)
            model = insert_qdq(self.float_model, together, self.float_anyway, everything)
            self._int8_only = frozenset(float_nodes(model) & everything)
        return self._int8_only

    def _refuse_without_int16(self, ranges: Ranges, int16: Sequence[FloatLayer]) -> None:
        for layer in int16:
            if quantizing(layer.op_type).trees:
                raise ConfigError(f"the trees {layer.name} always compare int16 features", "--leaves int16")
            if {*layer.nodes} & (self._narrow(ranges) | self.float_anyway):
                raise ConfigError(
                    f"layer {layer.name} ({layer.op_type}) cannot be computed on int16",
                    f"--keep-float {layer.name}",
                )

    def _floats(self, wanted: Precision) -> frozenset[str]:
        """Nodes that stay float."""
        heads = [layer for layer in self.layers if layer.name in self.float_anyway]
        excluded = _nodes(wanted.floats) | _nodes(heads) | self.float_anyway
        return excluded | in_float_surroundings(self.float_model, excluded)

    def _int16(self, ranges: Ranges, wanted: Precision) -> frozenset[str]:
        """Nodes that compute on int16."""
        if not wanted.int16:
            return frozenset()
        never = self._floats(wanted) | self._narrow(ranges)
        return frozenset(int16_nodes(self.float_model, ranges, self.layers, wanted.int16, never, self.states))

    def _model(self, ranges: Ranges, wanted: Precision) -> onnx.ModelProto:
        """The quantised model with these layers in higher precision."""
        floats = self._floats(wanted)
        together = shared(self.float_model, ranges, floats, self.states)
        model = insert_qdq(self.float_model, together, floats, self._int16(ranges, wanted))
        shrink_weights(model, self._byte_weights(wanted))
        shrink_forests(model, self._forests(wanted), self.request.leaves)
        open_outputs(model, self.opened)
        return model

    def _forests(self, wanted: Precision) -> frozenset[str]:
        """Trees, except those that stay float."""
        return _nodes([la for la in self.layers if quantizing(la.op_type).trees]) - _nodes(wanted.floats)

    def _byte_weights(self, wanted: Precision) -> frozenset[str]:
        """Recurrent nodes, except those that stay float."""
        recurrent = [layer for layer in self.layers if quantizing(layer.op_type).matrices]
        return _nodes(recurrent) - _nodes(wanted.floats)

    def _report(
        self,
        model: onnx.ModelProto,
        method: str,
        tried: Mapping[str, float],
        wanted: Precision,
        int16: frozenset[str],
    ) -> Report:
        outcome = self.reference.compare(model, self.progress, "error at the outputs")
        few = Samples(self.samples.inputs[:WATCHED_SAMPLES], starts=self.samples.starts)
        tensors = {name for layer in self.layers for name in (layer.output, *layer.inputs)}
        computed = {name for node in self.float_model.graph.node for name in node.output}
        watched = measure.Reference(self.float_model, few, sorted(tensors & computed), self.states)
        noise = watched.compare(model, self.progress, "error of each layer").tensors
        floats = self._floats(wanted)
        layers = []
        trees = "int16" if self.request.leaves == "int16" else f"int16, {self.request.leaves} leaves"
        for layer in self.layers:
            decibels = noise.get(layer.output)
            sources = [noise[name] for name in layer.inputs if name in noise]
            lost = max(min(sources) - decibels, 0.0) if sources and decibels is not None else None
            kind = "float" if layer.name in floats else "int16" if layer.name in int16 else "int8"
            kind = "int8 weights" if layer.name in self._byte_weights(wanted) else kind
            kind = trees if layer.name in self._forests(wanted) else kind
            layers.append(LayerNoise(layer.name, layer.op_type, kind, decibels, lost))
        warnings = [*self.samples.warnings, *self.own.warnings()]
        if ignores_missing(self.float_model, self._forests(wanted)):
            warnings.append(
                "the trees know what to do with missing values (NaN), the quantised ones do not: every "
                "feature must have a value"
            )
        warnings += self.reference.infinite(outcome)
        if all(layer.kind == "float" for layer in layers):
            warnings.append("no layer is int8: the model stays as it is")
        if outcome.accuracy_float is not None and outcome.accuracy_float < DOUBTFUL:
            warnings.append(
                f"the float model itself is correct on only {100 * outcome.accuracy_float:.0f} % of the "
                "samples: are labels and preparation (--range, --mean, --std) those of the training? "
                "Subfolders are classes in alphabetical order"
            )
        return Report(
            method,
            dict(tried),
            len(self.samples),
            outcome.decibels,
            outcome.outputs,
            outcome.largest_error,
            outcome.decisions,
            outcome.accuracy_float,
            outcome.accuracy_int8,
            tuple(layers),
            tuple(layer.name for layer in wanted.floats),
            tuple(layer.name for layer in wanted.int16),
            float_bytes(self.float_model) + forest_bytes(self.float_model),
            float_bytes(model) + forest_bytes(model),
            sparsity_of(self.float_model),
            tuple(warnings),
        )


def _nodes(layers: Sequence[FloatLayer]) -> frozenset[str]:
    return frozenset(node for layer in layers for node in layer.nodes)
