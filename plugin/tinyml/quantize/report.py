# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The accuracy report of quantising, as text and as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from math import inf, isfinite, nan
from typing import Any

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize.sparsity import Sparsity

LOW_DECIBELS = 15.0
"""Below this, a layer's output has lost too much: fewer than three accurate bits remain."""

HELPS = 3.0
"""Decibels that an option must give before it is advised: half a bit."""

GROWN_BYTES = 1024
"""Constants that grow by this much deserve a warning; scales alone take less in small models."""

LOST_POINTS = 1.0
"""A loss of accuracy that deserves a warning, if it is more than one sample."""


@dataclass(frozen=True)
class LayerNoise:
    """One layer of the float model, and the accuracy of its output."""

    name: str  # of the node
    op_type: str  # as ONNX calls it
    kind: str  # of its activations: int8, int16, float, or the type of whole numbers; else of its weights
    decibels: float | None  # signal-to-noise ratio of its output; None if it cannot be compared
    lost_here: float | None  # how much lower than that of its worst input; None next to the model's inputs
    share: float | None = None  # of the noise that all layers add, each relative to its signal
    why: str = ""  # it is float
    weights: str = ""  # int4; empty: those of its kind

    @property
    def type_text(self) -> str:
        return f"{self.kind}, {self.weights} weights" if self.weights else self.kind


@dataclass(frozen=True)
class Remedy:
    """An option that was tried, for a layer or an output, and what it gave."""

    option: str  # such as --keep-float
    name: str  # of the layer or output
    decibels: float  # of the outputs


@dataclass(frozen=True)
class Choice:
    """A way in which ``--auto`` reaches the goal."""

    name: str  # in words
    decibels: float
    instructions: int | None  # of one run, estimated; None if not known
    bytes: int  # of all constants
    float_layers: int  # how many are float
    int16_layers: int  # how many have int16 activations
    taken: bool  # whether it was chosen


@dataclass(frozen=True)
class Variant:
    """The same model with other weights."""

    name: str  # int8, mixed or int4
    weight_bytes: int  # of all weights
    int4_layers: int  # layers with four bits
    decibels: float  # at the outputs, on the calibration data
    accuracy: float | None  # on the test set if there is one, else on the calibration data
    agreement: float  # decisions as in float, on the same data
    tested: int = 0  # samples of the test set


@dataclass(frozen=True)
class Report:
    """The accuracy report of one quantised model."""

    method: str  # "" if nothing has a range
    methods: Mapping[str, float]  # method -> signal-to-noise ratio of the outputs, in dB
    samples: int  # of the calibration data that were used
    decibels: float  # signal-to-noise ratio at the outputs; not a number if it was not measured
    outputs: Mapping[str, float]  # the same for each output, in dB
    largest_error: float  # of all outputs
    decisions: Mapping[str, float]  # of each output that decides: the share that did not change
    accuracy_float: float | None  # with labels: of the float model
    accuracy_int8: float | None  # with labels: of the int8 model
    layers: tuple[LayerNoise, ...]  # in the order of the file
    kept_float: tuple[str, ...]  # layers that are left in float
    int16: tuple[str, ...]  # layers with int16 activations
    float_bytes: int  # constants before
    int8_bytes: int  # constants after
    sparsity: Sparsity = field(default_factory=Sparsity)  # zeros among the weights
    warnings: tuple[str, ...] = ()  # one line each
    steps: Mapping[str, Sequence[float]] = field(default_factory=dict)  # what was taken: before, after, in dB
    remedies: tuple[Remedy, ...] = ()  # what was tried beyond
    choices: tuple[Choice, ...] = ()  # of --auto
    variants: tuple[Variant, ...] = ()  # side by side, if weights of four bits were asked for
    eight_bits: Mapping[str, str] = field(default_factory=dict)  # layers without four bits, and why

    @property
    def agreement(self) -> float:
        """The share of decisions that did not change, of the output where it is smallest."""
        return min(self.decisions.values(), default=1.0)

    @property
    def lost_points(self) -> float:
        """Points of accuracy; without labels, per cent of the decisions that changed."""
        if self.accuracy_float is not None and self.accuracy_int8 is not None:
            return 100.0 * (self.accuracy_float - self.accuracy_int8)
        return 100.0 * (1.0 - self.agreement)

    def unmeasured(self) -> Report:
        """Without figures, where there was no data."""
        layers = (replace(layer, decibels=None, lost_here=None, share=None) for layer in self.layers)
        blank = replace(self, samples=0, decibels=nan, outputs={}, largest_error=inf, decisions={})
        return replace(blank, layers=tuple(layers))

    @property
    def kind(self) -> str:
        """What the model became."""
        return "float16 weights" if any(la.kind == "float16 weights" for la in self.layers) else "int8"

    def headline(self) -> str:
        """One line, for a build's output."""
        if not self.samples:
            return "the loss is not known: there was no data to measure it on"
        parts = [f"{self.decibels:.1f} dB at the outputs"]
        if self.accuracy_float is not None and self.accuracy_int8 is not None:
            parts.append(f"accuracy {100 * self.accuracy_float:.2f} % -> {100 * self.accuracy_int8:.2f} %")
        else:
            parts.append(f"{100 * self.agreement:.1f} % of decisions unchanged")
        parts.append(f"{self.samples} samples" + (f", {self.method}" if self.method else ""))
        return ", ".join(parts)

    def computing(self) -> list[LayerNoise]:
        """The layers that compute. Those that only move numbers cannot lose precision."""
        return [layer for layer in self.layers if not quantizing(layer.op_type).moves]

    def weakest(self) -> list[LayerNoise]:
        """Layers that are too noisy and add most of the noise themselves, the worst first."""
        found = [
            layer
            for layer in self.layers
            if layer.kind != "float"
            and layer.decibels is not None
            and layer.decibels < LOW_DECIBELS
            and (layer.lost_here is None or layer.lost_here > 1.0)
        ]
        return sorted(found, key=lambda layer: layer.decibels or 0.0)

    def advice(self) -> list[str]:
        """Warnings, each with what to try."""
        lines = [*self.warnings, *self._lost_accuracy(), *self._changed_decisions(), *self._weak_outputs()]
        lines += self._grown()
        for layer in self.weakest()[:5]:
            tried = [remedy for remedy in self.remedies if remedy.name == layer.name]
            helping = [remedy for remedy in tried if remedy.decibels >= self.decibels + HELPS]
            text = f"layer {layer.name} ({layer.op_type}) has only {layer.decibels:.1f} dB left"
            gains = [f"{remedy.option} gives {remedy.decibels:.1f} dB at the outputs" for remedy in helping]
            if gains:
                lines.append(f"{text}: {', '.join(gains)}")
            elif tried:
                lines.append(f"{text}; int16 or float for this layer alone would not help")
            else:
                lines.append(text)
        return lines

    def _grown(self) -> list[str]:
        """Integers cost more than they save where many layers share few weights."""
        if self.int8_bytes < self.float_bytes + GROWN_BYTES:
            return []
        return [
            f"constants grow from {self.float_bytes:,} to {self.int8_bytes:,} bytes: every layer has scales, "
            "biases and, in C, tables of its own. Each step of an unrolled loop is such a layer: export it "
            "as a loop, or leave the model float"
        ]

    def _lost_accuracy(self) -> list[str]:
        """A good signal-to-noise ratio does not protect decisions that were close."""
        if self.accuracy_float is None or self.accuracy_int8 is None:
            return []
        lost = self.accuracy_float - self.accuracy_int8
        if 100 * lost < LOST_POINTS or round(lost * self.samples) < 2:
            return []
        although = (
            f"although the outputs have {self.decibels:.1f} dB" if not self.weakest() else f"in {self.kind}"
        )
        search = "--auto 0.5 finds the layers that need int16 or float to lose at most half a point"
        return [f"accuracy falls by {100 * lost:.1f} points {although}: {self._or_kept(search)}"]

    def _or_kept(self, search: str) -> str:
        """A search for better types is not for a model that stays float."""
        return search if self.kind == "int8" else "--keep-float leaves the weights of a layer as they are"

    def _changed_decisions(self) -> list[str]:
        """Without labels nobody knows which were right; that many changed is known."""
        lines = []
        labelled = next(iter(self.decisions), None) if self.accuracy_float is not None else None
        for name, same in self.decisions.items():
            changed = round((1 - same) * self.samples)
            if name == labelled or 100 * (1 - same) <= LOST_POINTS or changed < 2:
                continue
            search = "--auto 1 finds the layers that need int16 or float to change at most 1 %"
            lines.append(
                f"{changed} of {self.samples} decisions of the output {name!r} change, if its largest "
                f"element is one ({self.outputs[name]:.1f} dB): {self._or_kept(search)}"
            )
        return lines

    def _weak_outputs(self) -> list[str]:
        lines = []
        for name, decibels in self.outputs.items():
            if decibels < LOW_DECIBELS:
                better = [r for r in self.remedies if r.name == name and r.decibels >= decibels + HELPS]
                gains = [f"{remedy.option} gives it {remedy.decibels:.1f} dB" for remedy in better]
                gains.append(self._or_kept("--auto 30dB finds the layers that need int16 or float"))
                lines.append(
                    f"the output {name!r} has only {decibels:.1f} dB left, its mean not counted: "
                    f"{', '.join(gains)}"
                )
        return lines

    def as_json(self) -> dict[str, Any]:
        """Plain data, for files; JSON has no infinity."""
        largest = self.largest_error if isfinite(self.largest_error) else None
        decibels = self.decibels if isfinite(self.decibels) else None
        return {**asdict(self), "agreement": self.agreement, "largest_error": largest, "decibels": decibels}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Report:
        given = {key: value for key, value in data.items() if key != "agreement"}
        return Report(
            **{
                **given,
                "largest_error": inf if data["largest_error"] is None else data["largest_error"],
                "decibels": nan if data["decibels"] is None else data["decibels"],
                "layers": tuple(LayerNoise(**layer) for layer in data["layers"]),
                "kept_float": tuple(data["kept_float"]),
                "int16": tuple(data["int16"]),
                "sparsity": Sparsity(**data["sparsity"]),
                "warnings": tuple(data["warnings"]),
                "choices": tuple(Choice(**choice) for choice in data.get("choices", ())),
                "variants": tuple(Variant(**variant) for variant in data.get("variants", ())),
                "remedies": tuple(Remedy(**remedy) for remedy in data.get("remedies", ())),
            }
        )
