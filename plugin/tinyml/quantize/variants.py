# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""int8, mixed and int4 weights side by side, on the calibration data and on a test set."""

from __future__ import annotations

from dataclasses import replace

import onnx

from tinyml.datasets.reader import Samples
from tinyml.quantize.constants import constant_bytes
from tinyml.quantize.four_bits import Chosen
from tinyml.quantize.report import Variant
from tinyml.quantize.work import Work
from tinyml.settings.quantize_request import Request

MOST = 1_000_000
"""Samples of a test set: all."""


def held_out(request: Request) -> Request:
    """The request whose calibration data is the test set, read by the same rules."""
    assert request.test is not None
    return replace(request, calibration=request.test, labels=None, samples=MOST)


def variants(work: Work, made: Chosen, tested: Samples | None) -> tuple[Variant, ...]:
    reference = work.reference_of(work.in_float, tested) if tested else None
    found = []
    for name, wanted in (("int8", made.int8), ("mixed", made.mixed), ("int4", made.int4)):
        model = work.model(wanted)
        seen = work.reference.compare(model)
        unseen = reference.compare(model, work.progress, f"{name} on the test set") if reference else None
        best = unseen or seen
        found.append(
            Variant(
                name,
                weight_bytes(work, model),
                len(wanted.int4),
                seen.decibels,
                best.accuracy_int8,
                best.agreement,
                len(tested) if tested else 0,
            )
        )
    return tuple(found)


def weight_bytes(work: Work, model: onnx.ModelProto) -> int:
    """Bytes of the weights alone, without scales and biases."""
    nodes = {node.name: node for node in model.graph.node}
    producers = {name: node for node in model.graph.node for name in node.output}
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    total = 0
    for linear in work.linear():
        name = nodes[linear.name].input[1] if linear.name in nodes else ""
        stored = producers[name].input[0] if name in producers else name
        total += constant_bytes(constants[stored]) if stored in constants else 0
    return total
