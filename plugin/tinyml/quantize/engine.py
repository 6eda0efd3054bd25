# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""From a float model and calibration data to a smaller model with a report: the steps in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

from tinyml.base.errors import GoalNotReachedError, NothingToQuantizeError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.progress import Progress, silent
from tinyml.datasets import reader
from tinyml.datasets.reader import Samples
from tinyml.features.feed import check_training
from tinyml.importers import ModelFile, metadata, read_model, states
from tinyml.importers.states import with_states
from tinyml.ir import Shape
from tinyml.quantize.cheapest import cheapest
from tinyml.quantize.float16 import float16_layers
from tinyml.quantize.four_bits import choose
from tinyml.quantize.improve import Steps, find_basis
from tinyml.quantize.layers import chosen, find_layers
from tinyml.quantize.loop_bodies import Made, inside, outside, with_integer_loops
from tinyml.quantize.observed import keep_observed
from tinyml.quantize.own_operators import completed, restore
from tinyml.quantize.precision import Precision
from tinyml.quantize.prepare import (
    FOUR_BITS_OPSET,
    LOOPS,
    OPSET,
    Prepared,
    prepare,
    refuse_inputs_as_outputs,
)
from tinyml.quantize.report import Choice, Report
from tinyml.quantize.reporting import reported
from tinyml.quantize.rewrite import to_int8_interface
from tinyml.quantize.sequences import store_integers
from tinyml.quantize.variants import held_out, variants
from tinyml.quantize.work import NAMED, NEEDED, Work
from tinyml.settings.quantize_request import Request


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
    opset = {"int8": OPSET, "float16": OPSET}.get(request.weights, FOUR_BITS_OPSET)
    prepared = prepare(file, dict(shapes or {}), opset)
    if request.weights != "float16":
        refuse_inputs_as_outputs(prepared.model)
    samples = _samples(prepared, request)
    tested = _samples(prepared, held_out(request)) if request.test else None
    progress("reading the model", 1, 1)

    def made(wanted: Request) -> tuple[Prepared, Callable[[], Quantized]]:
        whole = _with_integer_loops(prepared, samples, wanted, opset, progress)
        work = Work(whole, samples, outside(wanted, whole), progress)
        loops = {node.name for node in prepared.model.graph.node if node.op_type in LOOPS}
        work.leave(loops & {*request.keep_float}, NAMED)
        work.leave(loops & {*wanted.keep_float}, NEEDED)
        return whole, lambda: _result(work, tested)

    result = _with_better_loops(request, made)
    _keep_metadata(result.model, facts)
    return result


def _with_better_loops(
    request: Request, made: Callable[[Request], tuple[Prepared, Callable[[], Quantized]]]
) -> Quantized:
    """Where layers outside loops do not reach the goal of ``--auto``, loops get int16, then stay float."""
    prepared, finish = made(request)
    loops = tuple(prepared.loops)
    for wider in (True, False):
        try:
            return finish()
        except GoalNotReachedError:
            if not loops:
                raise
        if wider:
            better = replace(request, int16=tuple(dict.fromkeys((*request.int16, *loops))))
        else:
            better = replace(request, keep_float=(*request.keep_float, *loops))
        try:
            _, finish = made(better)
        except NothingToQuantizeError:
            raise GoalNotReachedError(
                f"the goal ({request.auto}) is reached only if loops stay float, and then nothing is int8",
                "allow more, or compile the model as it is",
            ) from None
    return finish()


def _halved(work: Work, wanted: Precision) -> frozenset[str]:
    kept = {node for layer in wanted.floats for node in layer.nodes}
    names, reasons = float16_layers(work.original, kept)
    for node, why in reasons.items():
        work.leave([node], why)
    return names


def _with_integer_loops(
    prepared: Prepared, samples: Samples, request: Request, opset: int, progress: Progress
) -> Prepared:
    """Loops in loops too, the innermost first."""

    def quantized(loop: str, body: onnx.ModelProto, turns: Samples) -> Made:
        found = prepare(ModelFile(Path("body.onnx"), body.SerializeToString()), {}, opset)
        # the first turn of each sequence has the first values of the states among its samples
        states = tuple(replace(state, initial=None) for state in found.states)
        known = {layer.name for layer in find_layers(found.model)}
        whole = loop in request.int16
        inner = tuple(node.name for node in found.model.graph.node if whole and node.op_type in LOOPS)
        given = replace(request, int16=(*request.int16, *inner))
        part = _with_integer_loops(
            replace(found, states=states, doubted=None, is_body=True), turns, given, opset, progress
        )
        known.update(layer.name for report in part.loops.values() for layer in report.layers)
        wanted = outside(inside(request, known), part)
        work = Work(part, turns, wanted, progress)
        work.all_int16 = whole
        return Made(*_made(work, None), states)

    return with_integer_loops(prepared, samples, request, quantized)


def _samples(prepared: Prepared, request: Request) -> Samples:
    if request.measures:
        samples = reader.load(request, prepared.inputs, bool(prepared.states))
    else:  # a run shows the shapes in loops
        samples = Samples(({one.name: np.zeros(one.shape, one.dtype.numpy) for one in prepared.inputs},))
    if prepared.whole is not None:
        samples = completed(samples, prepared.whole, prepared.own)
    return samples


def _keep_metadata(model: onnx.ModelProto, facts: Mapping[str, str]) -> None:
    """What the training wrote down about the model holds for the quantised one: its front end, its rate."""
    written = {entry.key for entry in model.metadata_props}  # the states, whose tensors may have new names
    for key, value in facts.items():
        if key not in written and key != states.KEY:
            model.metadata_props.add(key=key, value=value)


def _made(work: Work, tested: Samples | None) -> tuple[onnx.ModelProto, Report]:
    """The model with a float interface, without its states."""
    others = [*work.loops, *(layer.name for report in work.loops.values() for layer in report.layers)]
    named = (work.request.keep_float, work.request.int16)
    floats, int16 = (chosen(work.layers, names, others) for names in named)
    wanted = Precision(tuple(floats), tuple(int16))
    if work.stays_float:
        wanted, steps = replace(wanted, float16=_halved(work, wanted)), Steps()
    else:
        steps = find_basis(work, wanted)
    choices: tuple[Choice, ...] = ()
    if work.request.auto is not None:
        wanted, choices = cheapest(work, wanted)
    made = choose(work, wanted) if work.request.weights in ("mixed", "int4") else None
    if made is not None:
        wanted = made.mixed if work.request.weights == "mixed" else made.int4
    model = work.model(wanted)
    report = reported(work, model, wanted, steps)
    report = replace(report, choices=choices)
    if made is not None:
        report = replace(report, variants=variants(work, made, tested), eight_bits=dict(made.reasons))
    return model, report if work.request.measures else report.unmeasured()


def _result(work: Work, tested: Samples | None) -> Quantized:
    model, report = _made(work, tested)
    restore(model, work.own)
    hidden = {name for state in work.states for name in (state.input, state.output)}
    if work.request.measures:
        keep_observed(model, work.samples.inputs, work.reference.results, hidden)
    if work.request.io == "int8":
        model = to_int8_interface(model, hidden)
    with_states(model, store_integers(model, work.states))
    if not work.own.nodes:  # the checker does not know operators from outside
        onnx.checker.check_model(model)
    return Quantized(model, report)
