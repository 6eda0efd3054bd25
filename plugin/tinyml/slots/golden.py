# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The test that travels with a model: an input that the slot makes itself, and what must come out of it.

The input is noise from a generator of three lines instead of a table: an image of 96x96 pixels would cost
27 KB of every slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tinyml.base import c
from tinyml.compare.difference import slack_of, step_of
from tinyml.datasets.generated_samples import input_range
from tinyml.ir import Array, DType, Graph, Tensor
from tinyml.ir.interpreter import interpret
from tinyml.pipeline import Compiled
from tinyml.slots.image import Port
from tinyml.slots.image_layout import Layout

LEAST_TOLERANCE = 1e-3
"""Of floats, relative to the largest value."""


def golden(compiled: Compiled, layout: Layout) -> dict[str, Any]:
    """For the template: how to fill each input, and the table of each output."""
    graph = compiled.graph
    (answer,) = interpret(graph, [golden_inputs(graph)])
    outputs = [_output(graph, i, port, answer[port.name]) for i, port in enumerate(layout.outputs)]
    return {
        "inputs": [_input(graph, port) for port in layout.inputs],
        "outputs": outputs,
        "float_types": sorted({output["c_type"] for output in outputs if output["is_float"]}),
        "step_types": sorted({output["c_type"] for output in outputs if output["steps"]}),
    }


def golden_inputs(graph: Graph) -> dict[str, Array]:
    """The inputs of the test, all from one row of random bytes."""
    noise = _noise()
    return {name: _values(graph, graph.tensors[name], noise) for name in graph.inputs}


def _noise() -> Iterator[int]:
    """The highest byte of each state of a xorshift generator; the template has the same in C."""
    state = 1
    while True:
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        yield state >> 24


def _values(graph: Graph, tensor: Tensor, noise: Iterator[int]) -> Array:
    bytes_ = np.array([next(noise) for _ in range(tensor.elements)], np.int64)
    low, step, span = scaling_of(graph, tensor)
    if tensor.dtype.is_float:
        kind = tensor.dtype.numpy.type
        values = kind(low) + bytes_.astype(kind) * kind(step)
    else:
        values = int(low) + (bytes_ * span >> 8)
    return np.asarray(values).astype(tensor.dtype.numpy).reshape(tensor.shape)


def scaling_of(graph: Graph, tensor: Tensor) -> tuple[float, float, int]:
    """The smallest value; for floats the step between values, for integers how many there are."""
    low, high = input_range(graph, tensor)
    kind = tensor.dtype.numpy.type if tensor.dtype.is_float else np.float64
    return float(kind(low)), float(kind((high - low) / 255)), int(high) - int(low) + 1


def _input(graph: Graph, port: Port) -> dict[str, Any]:
    tensor = graph.tensors[port.name]
    low, step, span = scaling_of(graph, tensor)
    dtype = tensor.dtype.c
    if tensor.dtype.is_float:
        number = tensor.dtype.numpy.type
        value = f"{c.number(number(low), tensor.dtype.numpy)} + ({dtype})(noise >> 24) * "
        value += c.number(number(step), tensor.dtype.numpy)
    else:
        value = f"({dtype})({int(low)} + (int32_t)((noise >> 24) * {span}u >> 8))"
    return {"address": _address(port, dtype), "length": tensor.elements, "c_type": dtype, "value": value}


def _output(graph: Graph, index: int, port: Port, values: Array) -> dict[str, Any]:
    """What must come out, and how far from it a device may be: as far as `tinyml verify` allows, or further.

    Layers that compute in float, such as a Resize of int8, round differently with and without an FPU, and the
    integer that they make of it may be the next one.
    """
    dtype = DType.of(values)
    relative, step = max(LEAST_TOLERANCE, slack_of(graph, port.name)), step_of(graph, port.name) or 0.0
    return {
        "table": f"golden_output_{index}",
        "c_type": dtype.c,
        "rows": c.code(c.table_rows(np.ascontiguousarray(values)) if values.size else [f"{c.TAB}0"]),
        "length": values.size,
        "is_float": dtype.is_float,
        "steps": not dtype.is_float and dtype is not DType.BOOL,
        "relative": c.number(dtype.numpy.type(relative), dtype.numpy) if dtype.is_float else "",
        "absolute": c.number(dtype.numpy.type(1.01 * step), dtype.numpy) if dtype.is_float else "",
        "address": _address(port, dtype.c),
    }


def _address(port: Port, c_type: str) -> str:
    base = "tinyml_slot_state" if port.in_state else "tinyml_slot_arena"
    return f"({c_type} *)(void *)({base} + {port.offset})"
