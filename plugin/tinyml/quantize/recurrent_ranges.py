# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The ranges of the states of LSTM, GRU and RNN over all steps.

An integer layer computes every step with one scale. A model that reads only the last state shows the
calibrator only that one, and the states before it may be larger: after a pause they decay, for example.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx
from onnx import helper, numpy_helper

from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize.calibrate import Ranges

LENGTHS, H0, C0 = 4, 5, 6
"""Inputs of ONNX's operators: the length of each sequence, and the states before the first step."""

STOPS = 8
"""How many times the cells of a sequence are looked at before its end."""


def name_states(model: onnx.ModelProto) -> None:
    """Give all outputs a name, so that the ranges of steps and cells are found."""
    for node in _recurrent(model):
        names = ("steps", "last", "cells") if node.op_type == "LSTM" else ("steps", "last")
        node.output.extend([""] * (len(names) - len(node.output)))
        node.output[:] = [own or f"{node.name}/{name}" for own, name in zip(node.output, names, strict=True)]


def with_cells_between(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model for calibration that also computes the cells of LSTM before the last step.

    ONNX gives the steps of the output but only the last cells. So each layer gets copies that stop earlier.
    """
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    shapes = _shapes(model)
    for node in [node for node in _recurrent(watched) if node.op_type == "LSTM"]:
        steps, batch = shapes.get(node.input[0], (0, 0, 0))[:2]
        if steps < 2 or batch < 1 or (len(node.input) > LENGTHS and node.input[LENGTHS]):
            continue
        for stop in sorted({max(1, steps * number // STOPS) for number in range(1, STOPS)}):
            lengths = f"{node.name}/stop {stop}"
            watched.graph.initializer.append(helper.make_tensor(lengths, 6, [batch], [stop] * batch))
            shorter = watched.graph.node.add()
            shorter.CopyFrom(node)
            shorter.name = f"{node.name}/until {stop}"
            shorter.input.extend([""] * (LENGTHS + 1 - len(shorter.input)))
            shorter.input[LENGTHS] = lengths
            shorter.output[:] = ["", "", _between(node, stop)]
    return watched


def over_all_steps(model: onnx.ModelProto, ranges: Ranges) -> Ranges:
    """States and cells with the ranges of all of their steps, and of constant ones before the first step."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    joined = dict(ranges)
    for node in _recurrent(model):
        between = [name for name in ranges if name.startswith(_between(node, ""))]
        for names, first, more in ((node.output[:2], H0, []), (node.output[2:3], C0, between)):
            states = [name for name in names if name in ranges]
            limits = [ranges[name] for name in (*states, *more)]
            if len(node.input) > first and node.input[first] in constants:
                values = numpy_helper.to_array(constants[node.input[first]])
                limits.append((float(values.min()), float(values.max())))
            for name in states:
                joined[name] = (min(low for low, _ in limits), max(high for _, high in limits))
    return joined


def large_cells(model: onnx.ModelProto, ranges: Ranges, noted: bool) -> list[str]:
    """Layers with states that int16 does not hold with the scale that they would have.

    ``noted``: the file's metadata state the scale of cells that nothing reads.
    """
    nodes = model.graph.node
    stated = {name for node in nodes for name in node.output} if noted else _read(model)
    return [node.name for node in nodes if quantizing(node.op_type).too_large(node, ranges, stated)]


def unread_cell_bits(model: onnx.ModelProto, ranges: Ranges, excluded: Collection[str]) -> dict[str, int]:
    """What the metadata have to state: for each node, the integer bits of cells that nothing reads."""
    read, found = _read(model), {}
    for node in _recurrent(model):
        bits = quantizing(node.op_type).unusual_bits(node, ranges)
        if bits is not None and node.name not in excluded and node.output[2] not in read:
            found[node.name] = bits
    return found


def _read(model: onnx.ModelProto) -> set[str]:
    """Values that a node reads, and outputs."""
    inputs = {name for node in model.graph.node for name in node.input}
    return inputs | {value.name for value in model.graph.output}


def _recurrent(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    return (node for node in model.graph.node if quantizing(node.op_type).matrices)


def _between(node: onnx.NodeProto, stop: int | str) -> str:
    return f"{node.name}/cells before {stop}"


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs and results; 0 for an axis that is not known."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    return {
        value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in (*graph.input, *graph.value_info)
    }
