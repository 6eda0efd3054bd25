# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Scan: a body applied to one slice after the other. The length is known, so the loop is unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx
from onnx import helper

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.ir import Tensor
from tinyml.ops.concat import concat
from tinyml.ops.framework.reading import Builder
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axis import from_front
from tinyml.ops.slice import take

MOST_STEPS = 64
"""Code grows with every step; longer loops should be LSTM, GRU or RNN."""

Body = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def unroll(node: onnx.NodeProto, inputs: Sequence[Tensor | None], build: Builder, body: Body) -> list[Tensor]:
    """The final states, then the joined outputs of all steps."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.name != "body"}
    count = int(attributes["num_scan_inputs"])
    operands = [tensor for tensor in inputs if tensor is not None]
    if len(operands) != len(inputs) or count < 1:
        raise ModelError(f"Scan node {node.name!r} lacks an input")
    states, sequences = operands[: len(operands) - count], operands[len(operands) - count :]
    axes = [
        from_front(axis, len(x.shape))
        for axis, x in zip(attributes.get("scan_input_axes", [0] * count), sequences, strict=True)
    ]
    backwards = [bool(d) for d in attributes.get("scan_input_directions", [0] * count)]
    steps = sequences[0].shape[axes[0]]
    if any(x.shape[axis] != steps for axis, x in zip(axes, sequences, strict=True)) or not steps:
        lengths = ", ".join(str(x.shape[axis]) for axis, x in zip(axes, sequences, strict=True))
        raise ModelError(
            f"Scan node {node.name!r}: its sequences have {lengths} steps, not one length of at least 1"
        )
    if steps > MOST_STEPS:
        scikit_learn = "scikit-learn: to_onnx(options={id(model): {'optim': 'cdist'}})"
        hint = f"up to {MOST_STEPS} are supported; {scikit_learn}"
        raise UnsupportedError(f"a Scan over {steps} steps is too long", hint)
    collected: list[list[Tensor]] = []
    for step in range(steps):
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
