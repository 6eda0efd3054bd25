# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which layers get weights of four bits: all that can, or as many as the allowed loss permits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.quantize import rounding
from tinyml.quantize.improve import few
from tinyml.quantize.linear import Linear, seen_inputs
from tinyml.quantize.measure import Outcome
from tinyml.quantize.precision import Precision
from tinyml.quantize.stored_weights import Nibbles, StoredWeights
from tinyml.quantize.work import Work
from tinyml.settings.quantize_request import Goal

DEFAULT_LOSS = Goal(points=1.0)
"""What ``mixed`` may lose if the user does not say."""

RANKING = 64
"""Samples on which layers are ranked."""


@dataclass(frozen=True)
class Chosen:
    """The three ways, and why layers have eight bits in the one that was asked for."""

    int8: Precision
    mixed: Precision
    int4: Precision
    reasons: Mapping[str, str]


def choose(work: Work, wanted: Precision) -> Chosen:
    """Round the weights of all layers that can have four bits, and find out which of them should."""
    layers, reasons = _able(work, wanted)
    if not layers:
        raise ConfigError(
            "no layer of this model can have weights of four bits: "
            + "; ".join(dict.fromkeys(reasons.values()) or ["it has no convolution and no dense layer"]),
            "--weights int8",
        )
    work.basis = replace(work.basis, nibbles=_rounded(work, layers))
    every = replace(wanted, int4=frozenset(layer.name for layer in layers))
    mixed, lossy = _mixed(work, wanted, layers)
    if work.request.weights == "mixed":
        reasons |= lossy
    return Chosen(wanted, mixed, every, reasons)


def _able(work: Work, wanted: Precision) -> tuple[list[Linear], dict[str, str]]:
    """Layers with int8 weights, one scale per channel, on int8 activations; and why others are not."""
    stored, int16 = StoredWeights(work.model(wanted)), work.int16(wanted)
    floats = work.floats(wanted)
    layers, reasons = [], {}
    for linear in work.linear():
        layer = stored.layer(linear)
        if linear.name in floats:
            reasons[linear.name] = "it stays float"
        elif linear.name in int16:
            reasons[linear.name] = "its activations are int16"
        elif layer is None or not stored.has_scale_per_channel(layer, linear):
            reasons[linear.name] = "its weights have no scale per channel"
        else:
            layers.append(linear)
    for name in work.byte_weights(wanted):
        reasons[name] = "recurrent layers have eight bits"
    for name in work.loops:
        reasons[name] = "weights in loops have eight bits"
    return layers, reasons


def _rounded(work: Work, layers: list[Linear]) -> dict[str, Nibbles]:
    seen = seen_inputs(work.basis.model, layers, few(work), with_moments=True)
    found = {}
    for done, layer in enumerate(layers):
        work.progress("weights of four bits", done, len(layers))
        inputs = seen[layer.name]
        moments = rounding.damped(inputs.moments(layer.takes_mean))
        result = rounding.four_bits(layer.rows(), moments, layer.rows_of_a_channel)
        mean = inputs.mean if layer.takes_mean else None
        found[layer.name] = Nibbles(layer.shaped(result.values), result.scales.reshape(-1), mean)
    work.progress("weights of four bits", len(layers), len(layers))
    return found


def _mixed(work: Work, wanted: Precision, layers: list[Linear]) -> tuple[Precision, dict[str, str]]:
    """Eight bits for the layers that lose most for what they save, until the loss is allowed; and why."""
    goal = work.request.max_loss or DEFAULT_LOSS
    int8 = work.trial(wanted)
    if goal.decibels is not None and int8.decibels < goal.decibels and work.request.weights == "mixed":
        raise ConfigError(
            f"int8 itself gives {int8.decibels:.1f} dB, less than the {goal} that mixed weights shall keep",
            f"--max-loss {max(int8.decibels - 3, 1):.0f}dB",
        )

    def good(names: list[str]) -> bool:
        return _within(goal, work.trial(replace(wanted, int4=frozenset(names))), int8)

    ranked, alone = _ranked(work, wanted, layers)
    count = _longest(len(ranked), lambda taken: good(ranked[:taken]))
    kept = ranked[:count]
    for name in ranked[count + 1 :]:  # what comes after the first one that is too much may still fit
        if good([*kept, name]):
            kept.append(name)
    reasons = {
        name: f"four bits in this layer alone leave {alone[name]:.1f} dB at the outputs"
        for name in ranked
        if name not in kept
    }
    return replace(wanted, int4=frozenset(kept)), reasons


def _within(goal: Goal, outcome: Outcome, int8: Outcome) -> bool:
    """Whether a model loses no more than allowed: points beyond int8, or decibels that must remain."""
    if goal.decibels is not None:
        return outcome.decibels >= goal.decibels
    return outcome.lost_points <= max(int8.lost_points, 0.0) + (goal.points or 0.0) + 1e-9


def _ranked(work: Work, wanted: Precision, layers: list[Linear]) -> tuple[list[str], dict[str, float]]:
    """The best first: least noise at the outputs for each weight that shrinks."""
    some = replace(work.samples, inputs=work.samples.inputs[:RANKING], labels=None, warnings=())
    reference = work.reference_of(work.in_float, some)
    plain = reference.compare(work.model(wanted)).decibels
    alone: dict[str, float] = {}
    for done, layer in enumerate(layers):
        work.progress("layers with four bits, one by one", done, len(layers))
        alone[layer.name] = reference.compare(
            work.model(replace(wanted, int4=frozenset({layer.name})))
        ).decibels

    def price(layer: Linear) -> float:
        added = 10.0 ** (-alone[layer.name] / 10.0) - 10.0 ** (-plain / 10.0)
        return max(added, 0.0) / layer.weights.size

    return [layer.name for layer in sorted(layers, key=price)], alone


def _longest(count: int, good: Callable[[int], bool]) -> int:
    """The longest prefix that is good, by bisection; none of it always is."""
    if good(count):
        return count
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return low
