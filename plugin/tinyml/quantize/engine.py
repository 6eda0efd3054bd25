"""From a float model and calibration data to an int8 model with a report: the steps in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from tinyml.errors import ConfigError
from tinyml.ir import Shape
from tinyml.quantize import data, measure, search
from tinyml.quantize.calibrate import SETTINGS, Progress, Ranges, calibrate
from tinyml.quantize.data import Samples
from tinyml.quantize.integer_forms import float_nodes
from tinyml.quantize.layers import (
    MOVEMENT,
    FloatLayer,
    chosen,
    find_layers,
    fixed_in_float,
    in_float_surroundings,
)
from tinyml.quantize.prepare import Prepared, float_bytes, prepare
from tinyml.quantize.report import LayerNoise, Report
from tinyml.quantize.request import Request
from tinyml.quantize.rewrite import insert_qdq, to_int8_interface
from tinyml.quantize.sparsity import sparsity_of

WATCHED_SAMPLES = 32
"""All activations of so many samples are kept in memory to compare layers."""

ROUNDS = 4
"""At most: leaving a node in float may leave a neighbour without its integer form."""


@dataclass(frozen=True)
class Quantized:
    """The int8 model, as ONNX with QuantizeLinear and DequantizeLinear, and what it cost."""

    model: onnx.ModelProto
    report: Report


def silent(what: str, done: int, total: int) -> None:
    """Nobody watches."""


def quantize(
    path: Path, request: Request, shapes: Mapping[str, Shape] | None = None, progress: Progress = silent
) -> Quantized:
    """Quantise a float model file."""
    progress("reading the model", 0, 1)
    prepared = prepare(path, dict(shapes or {}))
    samples = data.load(request, prepared.inputs)
    progress("reading the model", 1, 1)
    return _Work(prepared, samples, request, progress).result()


class _Work:
    """One run; holds what every step needs."""

    def __init__(self, prepared: Prepared, samples: Samples, request: Request, progress: Progress) -> None:
        self.float_model = prepared.model
        self.samples = samples
        self.request = request
        self.progress = progress
        self.layers = find_layers(self.float_model)
        if not self.layers:
            raise ConfigError("the model has no layer that could be int8", "compile it as it is")
        self.reference = measure.Reference(self.float_model, samples)
        self.float_anyway = frozenset(n.name for n in self.float_model.graph.node if fixed_in_float(n))

    def result(self) -> Quantized:
        kept = chosen(self.layers, self.request.keep_float)
        method, ranges, tried = self._best_method(kept)
        candidates = [
            layer
            for layer in self.layers
            if layer.name not in self.float_anyway and layer.op_type not in MOVEMENT
        ]
        if self.request.auto is not None:
            kept += search.smallest_set(
                candidates,
                kept,
                self.request.auto,
                lambda held: self.reference.compare(self._model(ranges, held)),
                self.progress,
            )
        model = self._model(ranges, kept)
        report = self._report(model, method, tried, kept)
        if self.request.io == "int8":
            model = to_int8_interface(model)
        onnx.checker.check_model(model)
        return Quantized(model, report)

    def _best_method(self, kept: Sequence[FloatLayer]) -> tuple[str, Ranges, dict[str, float]]:
        """Ranges by the method asked for, or by the one that ends closest to float."""
        methods = list(SETTINGS) if self.request.method == "auto" else [self.request.method]
        found: dict[str, tuple[Ranges, float]] = {}
        for method in methods:
            ranges = calibrate(self.float_model, self.samples.inputs, method, self.progress)
            if not found:
                self._find_integer_forms(ranges, kept)
            outcome = self.reference.compare(self._model(ranges, kept), self.progress, f"error by {method}")
            found[method] = ranges, outcome.decibels
        best = max(found, key=lambda method: found[method][1])
        return best, found[best][0], {method: decibels for method, (_, decibels) in found.items()}

    def _find_integer_forms(self, ranges: Ranges, kept: Sequence[FloatLayer]) -> None:
        """Leave out what the compiler would compute in float anyway."""
        for _ in range(ROUNDS):
            more = float_nodes(self._model(ranges, kept)) - self.float_anyway - _nodes(kept)
            more &= {node.name for node in self.float_model.graph.node}
            if not more:
                return
            self.float_anyway |= more

    def _model(self, ranges: Ranges, kept: Sequence[FloatLayer]) -> onnx.ModelProto:
        """The int8 model with these layers in float."""
        heads = [layer for layer in self.layers if layer.name in self.float_anyway]
        excluded = _nodes(kept) | _nodes(heads) | self.float_anyway
        excluded |= in_float_surroundings(self.float_model, excluded)
        return insert_qdq(self.float_model, ranges, excluded)

    def _report(
        self, model: onnx.ModelProto, method: str, tried: Mapping[str, float], kept: Sequence[FloatLayer]
    ) -> Report:
        outcome = self.reference.compare(model, self.progress, "error at the outputs")
        few = Samples(self.samples.inputs[:WATCHED_SAMPLES])
        tensors = {name for layer in self.layers for name in (layer.output, *layer.inputs)}
        computed = {name for node in self.float_model.graph.node for name in node.output}
        watched = measure.Reference(self.float_model, few, sorted(tensors & computed))
        noise = watched.compare(model, self.progress, "error of each layer").tensors
        held = {layer.name for layer in kept} | self.float_anyway
        held |= in_float_surroundings(self.float_model, _nodes(kept) | self.float_anyway)
        layers = []
        for layer in self.layers:
            decibels = noise.get(layer.output)
            sources = [noise[name] for name in layer.inputs if name in noise]
            lost = max(min(sources) - decibels, 0.0) if sources and decibels is not None else None
            layers.append(LayerNoise(layer.name, layer.op_type, layer.name not in held, decibels, lost))
        warnings = list(self.samples.warnings)
        if not any(layer.int8 for layer in layers):
            warnings.append("no layer is int8: the model stays as it is")
        return Report(
            method,
            dict(tried),
            len(self.samples),
            outcome.decibels,
            outcome.outputs,
            outcome.largest_error,
            outcome.agreement,
            outcome.accuracy_float,
            outcome.accuracy_int8,
            tuple(layers),
            tuple(layer.name for layer in kept),
            float_bytes(self.float_model),
            float_bytes(model),
            sparsity_of(self.float_model),
            tuple(warnings),
        )


def _nodes(layers: Sequence[FloatLayer]) -> frozenset[str]:
    return frozenset(node for layer in layers for node in layer.nodes)
