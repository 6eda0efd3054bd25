# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Scan: a body applied to one slice after the other. The length is known; short ones are unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.importers.attempt import Attempt
from tinyml.importers.rolling import Outline, Turn, along, part_type, passed_on, rolled
from tinyml.importers.unrolling import MOST_STEPS
from tinyml.ir import Tensor
from tinyml.ops.concat import concat
from tinyml.ops.framework.reading import Builder
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axis import from_front
from tinyml.ops.slice import take

Body = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def read(
    node: onnx.NodeProto,
    inputs: Sequence[Tensor | None],
    build: Builder,
    body: Body,
    fixed: Sequence[int],
    attempt: Attempt,
) -> list[Tensor]:
    """The final states, then the joined outputs of all steps.

    ``fixed``: the places of states that the body passes on unchanged.
    """
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.name != "body"}
    count = int(attributes["num_scan_inputs"])
    operands = [tensor for tensor in inputs if tensor is not None]
    if len(operands) != len(inputs) or count < 1:
        raise ModelError(f"Scan node {build.scope!r} lacks an input")
    states, sequences = operands[: len(operands) - count], operands[len(operands) - count :]
    axes = [
        from_front(axis, len(x.shape))
        for axis, x in zip(attributes.get("scan_input_axes", [0] * count), sequences, strict=True)
    ]
    backwards = [bool(d) for d in attributes.get("scan_input_directions", [0] * count)]
    steps = sequences[0].shape[axes[0]]
    if any(x.shape[axis] != steps for axis, x in zip(axes, sequences, strict=True)):
        lengths = ", ".join(str(x.shape[axis]) for axis, x in zip(axes, sequences, strict=True))
        raise ModelError(f"Scan node {build.scope!r}: its sequences have {lengths} steps, not one length")
    outputs = len(node.output) - len(states)
    if not steps:
        return [*states, *_no_rows(build, attributes, body, states, sequences, axes, outputs, attempt)]
    backwards_out = [bool(d) for d in attributes.get("scan_output_directions", [0] * outputs)]
    outline = Outline(
        [x for i, x in enumerate(states) if i not in fixed],
        sequences,
        lambda own, parts: _turn(own, parts, states, body, fixed),
        lambda most: _unrolled(build, attributes, body, states, sequences, axes, backwards, most),
        steps,
        axes=axes,
        last_first=tuple(i for i, reverse in enumerate(backwards) if reverse),
        rows_last_first=tuple(i for i, reverse in enumerate(backwards_out) if reverse),
    )
    found = rolled(build, attempt, outline)
    if found is not None:
        rest = len(states) - len(fixed)
        out_axes = [int(axis) for axis in attributes.get("scan_output_axes", [0] * outputs)]
        rows = zip(found[rest:], out_axes, strict=True)
        joined = [along(build, row, axis % len(row.shape)) for row, axis in rows]
        return [*passed_on(fixed, states, found[:rest]), *joined]
    attempt.undo()
    if steps > MOST_STEPS:
        scikit_learn = "scikit-learn: to_onnx(options={id(model): {'optim': 'cdist'}})"
        hint = f"up to {MOST_STEPS} are supported; {scikit_learn}"
        raise UnsupportedError(f"a Scan over {steps} steps is too long", hint)
    build.longest_loop = max(build.longest_loop, steps)
    return _unrolled(build, attributes, body, states, sequences, axes, backwards, steps)


def _no_rows(
    build: Builder,
    attributes: dict[str, Any],
    body: Body,
    states: Sequence[Tensor],
    sequences: Sequence[Tensor],
    axes: Sequence[int],
    outputs: int,
    attempt: Attempt,
) -> list[Tensor]:
    """What a Scan without steps collects; a step on trial tells what rows are."""
    pairs = zip(sequences, axes, strict=True)
    parts = [build.tensor(f"{build.scope}/part", part_type(x, axis)) for x, axis in pairs]
    rows = [row.type for row in body([*states, *parts])[len(states) :]]
    attempt.undo()
    if len(rows) != outputs:
        raise ModelError(f"Scan node {build.scope!r} has {outputs} rows, and its body computes {len(rows)}")
    found = []
    for row, place in zip(rows, attributes.get("scan_output_axes", [0] * outputs), strict=True):
        axis = from_front(int(place), len(row.shape) + 1)
        shape = (*row.shape[:axis], 0, *row.shape[axis:])
        found.append(build.constant(np.zeros(shape, row.dtype.numpy), quant=row.quant))
    return found


def _turn(
    own: Sequence[Tensor],
    parts: Sequence[Tensor],
    states: Sequence[Tensor],
    body: Body,
    fixed: Sequence[int],
) -> Turn:
    """One turn with placeholders for the states that change and for the slices."""
    results = list(body([*passed_on(fixed, states, own), *parts]))
    kept = [x for i, x in enumerate(results[: len(states)]) if i not in fixed]
    return Turn(None, kept, results[len(states) :])


def _unrolled(
    build: Builder,
    attributes: dict[str, Any],
    body: Body,
    states: Sequence[Tensor],
    sequences: Sequence[Tensor],
    axes: Sequence[int],
    backwards: Sequence[bool],
    most: int,
) -> list[Tensor]:
    """The first steps."""
    steps = sequences[0].shape[axes[0]]
    collected: list[list[Tensor]] = []
    for step in range(min(steps, most)):
        slices = [
            _slice(build, x, axis, steps - 1 - step if reverse else step)
            for x, axis, reverse in zip(sequences, axes, backwards, strict=True)
        ]
        results = list(body([*states, *slices]))
        states = results[: len(states)]
        collected.append(results[len(states) :])
    return [*states, *_joined(build, attributes, collected)]


def _slice(build: Builder, x: Tensor, axis: int, index: int) -> Tensor:
    part = take(build, x, {axis: (index, 1, 1)})
    return build.add1(Reshape((*x.shape[:axis], *x.shape[axis + 1 :])), [part])


def _joined(
    build: Builder, attributes: dict[str, Sequence[int]], collected: Sequence[Sequence[Tensor]]
) -> list[Tensor]:
    count = len(collected[0]) if collected else 0
    axes = attributes.get("scan_output_axes", [0] * count)
    backwards = attributes.get("scan_output_directions", [0] * count)
    joined = []
    for number in range(count):
        parts = [step[number] for step in collected]
        axis = int(axes[number]) % (len(parts[0].shape) + 1)
        shape = (*parts[0].shape[:axis], 1, *parts[0].shape[axis:])
        rows = [build.add1(Reshape(shape), [part]) for part in parts]
        joined.append(concat(build, rows[::-1] if backwards[number] else rows, axis))
    return joined
