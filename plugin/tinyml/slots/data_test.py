# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The self-test of an image without code: struct test_input and test_output of runtime/player/program.h."""

from __future__ import annotations

import struct

import numpy as np

from tinyml.base.errors import ModelError
from tinyml.compare.difference import slack_of, step_of
from tinyml.ir import DType, Graph
from tinyml.ir.interpreter import interpret
from tinyml.slots.golden import LEAST_TOLERANCE, golden_inputs, scaling_of

ALIGNMENT = 8  # of expected elements
COMPARED = 256
"""Elements of the largest output that travel with a model: every so many, if it has more."""
_INPUT, _OUTPUT = struct.Struct("<II"), struct.Struct("<Iff")


def test_bytes(graph: Graph, start: int) -> bytes:
    """The test at position ``start`` of an image, which is a multiple of 8."""
    try:
        (answer,) = interpret(graph, [golden_inputs(graph)])
    except ModelError as error:  # the bound of a loop
        raise ModelError(
            f"the self-test of a pack runs the model on noise: {error.message}", error.hint
        ) from None
    inputs = b"".join(_input(graph, name) for name in graph.inputs)
    expected = start + len(inputs) + len(graph.outputs) * _OUTPUT.size
    body, outputs = bytes(-expected % ALIGNMENT), b""
    for name in graph.outputs:
        outputs += _OUTPUT.pack(expected + len(body), *_tolerance(graph, name))
        body += np.ascontiguousarray(answer[name]).reshape(-1)[:: compared_step(graph)].tobytes()
        body += bytes(-(expected + len(body)) % ALIGNMENT)
    return inputs + outputs + body


def compared_step(graph: Graph) -> int:
    """How far apart the elements of outputs are that the test compares."""
    largest = max((graph.tensors[name].elements for name in graph.outputs), default=0)
    return min(max(1, -(-largest // COMPARED)), 0xFFFF)


def _input(graph: Graph, name: str) -> bytes:
    tensor = graph.tensors[name]
    low, step, span = scaling_of(graph, tensor)
    if tensor.dtype is DType.FLOAT32:
        return struct.pack("<ff", low, step)
    return _INPUT.pack(int(low) & 0xFFFFFFFF, span & 0xFFFFFFFF)


def _tolerance(graph: Graph, name: str) -> tuple[float, float]:
    return max(LEAST_TOLERANCE, slack_of(graph, name)), 1.01 * (step_of(graph, name) or 0.0)
