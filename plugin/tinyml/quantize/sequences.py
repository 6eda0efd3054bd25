# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models that keep state between runs: the samples of a sequence run in order, with the state passed on.

For onnxruntime, a state is an input and an output. The float model runs through every sequence once; its
states become ordinary calibration inputs. The int8 model keeps its own states when it is measured, so the
figures include the rounding errors that accumulate in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.datasets.reader import Samples
from tinyml.importers.states import Remembered
from tinyml.ir import Array
from tinyml.reference.session import Session

States = Sequence[Remembered]


def runs(
    session: Session, samples: Samples, states: States
) -> Iterator[tuple[Mapping[str, Array], dict[str, Array]]]:
    """For each sample the inputs, states among them, and what the session computes.

    States are reset at the start of each sequence.
    """
    state: Mapping[str, Array] = {}
    for index, sample in enumerate(samples.inputs):
        if index in samples.starts:
            state = {s.input: s.initial for s in states if s.initial is not None}
        inputs = {**sample, **state}
        found = session.run(inputs)
        state = {s.input: found[s.output] for s in states}
        yield inputs, found


def unrolled(model: onnx.ModelProto, samples: Samples, states: States) -> Sequence[Mapping[str, Array]]:
    """The samples with the states of the float model among them."""
    return [inputs for inputs, _ in runs(Session(model), samples, states)] if states else samples.inputs


def store_integers(model: onnx.ModelProto, states: States) -> list[Remembered]:
    """Keep states as integers if a run ends with integers, or if the next run starts by quantising them.

    Either way the same numbers are rounded once, as before.
    """
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    result = []
    for state in states:
        readers = [node for node in graph.node if state.input in node.input]
        source = next(node for node in graph.node if state.output in node.output)
        border = source if source.op_type == "DequantizeLinear" else _only_meaning(readers, constants)
        if not readers or border is None:
            result.append(state)
            continue
        scale, zero = (numpy_helper.to_array(constants[name]) for name in border.input[1:3])
        _store(graph, state.output, source, border)
        _read(graph, state.input, readers, border)
        for value in (*graph.input, *graph.output):
            if value.name in (state.input, state.output):
                value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(zero.dtype)
        limits = np.iinfo(zero.dtype)
        assert state.initial is not None
        steps = np.rint(state.initial / scale) + zero
        first = np.clip(steps, limits.min, limits.max).astype(zero.dtype)
        result.append(Remembered(state.input, state.output, first))
    return result


def _only_meaning(
    readers: Sequence[onnx.NodeProto], constants: Mapping[str, TensorProto]
) -> onnx.NodeProto | None:
    """One of the readers, if all quantise in the same way."""
    if not readers or any(node.op_type != "QuantizeLinear" for node in readers):
        return None
    found = {
        tuple(numpy_helper.to_array(constants[name]).tobytes() for name in node.input[1:3])
        for node in readers
    }
    return readers[0] if len(found) == 1 else None


def _store(graph: onnx.GraphProto, output: str, source: onnx.NodeProto, border: onnx.NodeProto) -> None:
    """The output becomes integers; readers inside the model still get real numbers."""
    real = f"{output}/real"
    others = [node for node in graph.node if output in node.input]
    for node in others:
        node.input[:] = [real if name == output else name for name in node.input]
    source.output[:] = [real if name == output else name for name in source.output]
    name = f"{output}/stored"
    if source is border:
        graph.node.append(helper.make_node("Identity", [source.input[0]], [output], name))
        if not others:
            graph.node.remove(source)
    else:
        graph.node.append(_like(border, "QuantizeLinear", real, output, name))
    infos = [info for info in graph.value_info if info.name != output]
    del graph.value_info[:]
    graph.value_info.extend(infos)


def _read(
    graph: onnx.GraphProto, name: str, readers: Sequence[onnx.NodeProto], border: onnx.NodeProto
) -> None:
    """The input becomes integers; its readers get the dequantised numbers."""
    real = f"{name}/real"
    for node in readers:
        node.input[:] = [real if given == name else given for given in node.input]
    graph.node.insert(0, _like(border, "DequantizeLinear", name, real, real))


def _like(border: onnx.NodeProto, op_type: str, x: str, y: str, name: str) -> onnx.NodeProto:
    """A node with the scale and the zero point of ``border``, from the same set of operators."""
    return helper.make_node(op_type, [x, *border.input[1:3]], [y], name, domain=border.domain)
