# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Ranges, equal channels and corrected biases: each way is tried, and the one closest to float is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import onnx

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.datasets.reader import spread
from tinyml.ir import Array
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize.calibrate import SETTINGS
from tinyml.quantize.equalize import STRENGTHS, equalized
from tinyml.quantize.linear import seen_inputs
from tinyml.quantize.masks import widened
from tinyml.quantize.measure import Outcome
from tinyml.quantize.open_outputs import COARSE, worth_opening
from tinyml.quantize.precision import Precision
from tinyml.quantize.unbounded import refuse_too_large, too_wide
from tinyml.quantize.work import Basis, Work

GAIN = 0.5
"""Decibels that a change of the model must gain."""

SAME = 90.0
"""Decibels above which two float models compute the same."""

MASKED = "its mask leaves scores too few steps of int8"

TOO_WIDE = "its values are too far apart for integer steps"

SIMPLEST = "minmax"
"""How ranges are found that leave nothing out."""

WATCHED = 128
"""Samples on which channels are compared and means are taken."""


@dataclass
class Steps:
    """What was tried, and the outputs' signal-to-noise ratio that it gave."""

    method: str = ""  # "" if nothing has a range
    methods: dict[str, float] = field(default_factory=dict)
    taken: dict[str, tuple[float, float]] = field(default_factory=dict)  # step -> before, after


def find_basis(work: Work, wanted: Precision) -> Steps:
    """Set the basis of ``work``: the ranges, then better weights for the same numbers."""
    steps = Steps()
    if not any(quantizing(layer.op_type).activations for layer in work.layers):
        work.find_integer_forms(wanted.floats)
        work.refuse_without_int16(wanted.int16)
        return steps
    best = _best_method(work, wanted, steps)
    best = _open_outputs(work, wanted, best)
    best = _equalize(work, wanted, steps, best)
    _correct_biases(work, wanted, steps, best)
    return steps


def is_better(after: Outcome, before: Outcome) -> bool:
    """Closer to float, and no decision lost for it."""
    return after.decibels >= before.decibels + GAIN and after.lost_points <= before.lost_points + 1e-9


def _methods(work: Work) -> list[str]:
    return list(SETTINGS) if work.request.method == "auto" else [work.request.method]


def _best_method(work: Work, wanted: Precision, steps: Steps) -> Outcome:
    """Ranges by the requested method, or by the one whose outputs are closest to float."""
    found: dict[str, tuple[Basis, Outcome]] = {}
    for method in _methods(work):
        try:
            work.basis = work.calibrated(work.original, method)
        except ConfigError:
            if not found:
                raise
            continue  # the first method has ranges for everything, also where there is no histogram
        if not found:
            work.leave(widened(work.original, work.basis.ranges), MASKED)
            work.leave(too_wide(work.original, work.basis.ranges), TOO_WIDE)
            refuse_too_large(work.original, work.basis.ranges, work.floats(wanted))
            work.find_integer_forms(wanted.floats)
            work.refuse_without_int16(wanted.int16)
        found[method] = work.basis, work.trial(wanted, f"error by {method}")
    return _take_best(work, steps, found)


def _take_best(work: Work, steps: Steps, found: dict[str, tuple[Basis, Outcome]]) -> Outcome:
    steps.method = max(found, key=lambda method: found[method][1].decibels)
    steps.methods = {method: found[method][1].decibels for method in SETTINGS if method in found}
    work.basis, outcome = found[steps.method]
    return outcome


def _open_outputs(work: Work, wanted: Precision, best: Outcome) -> Outcome:
    """Leave outputs real whose resolution int8 would take."""
    if work.request.io == "int8":
        return best
    coarse = {name: decibels for name, decibels in best.outputs.items() if decibels < COARSE}
    if not coarse:
        return best
    work.opened = frozenset(coarse)
    work.opened = worth_opening(coarse, work.trial(wanted).outputs)
    return work.trial(wanted) if work.opened else best


def _equalize(work: Work, wanted: Precision, steps: Steps, best: Outcome) -> Outcome:
    """Take equalised channels if their outputs are closer to float on the calibration data."""
    plain, before = work.basis, best
    models = [model for s in STRENGTHS if (model := _equal_model(work, s)) is not None]
    # the method that suits unequal channels best need not suit equal ones
    methods = [m for m in _methods(work) if m in (steps.method, SIMPLEST)]
    tried: dict[str, tuple[Basis, Outcome]] = {}
    for model in models:
        found = _calibrated(work, model, methods, wanted)
        nearest = max(found.values(), key=lambda one: one[1].decibels, default=None)
        if nearest is not None and is_better(nearest[1], best):
            (plain, best), tried = nearest, found
    if best is before:
        work.basis = plain
        return before
    others = _calibrated(work, plain.model, [m for m in _methods(work) if m not in tried], wanted)
    best = _take_best(work, steps, {**tried, **others})
    steps.taken["channels equalised"] = before.decibels, best.decibels
    return best


def _equal_model(work: Work, strength: float) -> onnx.ModelProto | None:
    """The equalised float model, if its outputs are those of the original."""
    model = equalized(work.original, few(work), strength)
    if model is None or work.reference.compare(model).decibels < SAME:
        return None
    return model


def _calibrated(
    work: Work, model: onnx.ModelProto, methods: Sequence[str], wanted: Precision
) -> dict[str, tuple[Basis, Outcome]]:
    found = {}
    for method in methods:
        try:
            work.basis = work.calibrated(model, method)
        except ConfigError:
            continue
        found[method] = work.basis, work.trial(wanted, f"error by {method}, equal channels")
    return found


def _correct_biases(work: Work, wanted: Precision, steps: Steps, best: Outcome) -> None:
    """Let biases make up for what rounded weights take from the mean output, if that helps."""
    plain = work.basis
    seen = seen_inputs(plain.model, work.linear(), few(work))
    work.basis = replace(plain, means={name: found.mean for name, found in seen.items()})
    after = work.trial(wanted)
    if is_better(after, best):
        steps.taken["biases corrected"] = best.decibels, after.decibels
    else:
        work.basis = plain


def few(work: Work) -> list[Mapping[str, Array]]:
    """Some of the samples, evenly spread, with the states of the float model among them."""
    return [work.inputs[place] for place in spread(len(work.inputs), WATCHED)]
