# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A float graph as an ONNX model, so that TFLite models can be quantised, too."""

from __future__ import annotations

import onnx
from onnx import helper

from tinyml.base.errors import ConfigError, TinymlError, UnsupportedError
from tinyml.importers.states import Remembered, with_states
from tinyml.ir import Graph, State, Tensor
from tinyml.ops.framework.loop import Loop
from tinyml.ops.framework.writing import ONNX_WRITERS, OnnxWriter, element_type
from tinyml.quantize.export_loops import write_loop


def to_onnx(graph: Graph) -> onnx.ModelProto:
    """The model; an error if it has integers inside or operators that cannot be written as ONNX."""
    _refuse(graph)
    out = OnnxWriter()
    out.names |= set(graph.tensors)
    _write(graph, out)
    states = [_state(state, out, _is_changed_state(graph, state)) for state in graph.states]
    tensors = {**graph.tensors, **{s.output: graph.tensors[s.input] for s in states}}
    proto = helper.make_graph(
        out.nodes,
        graph.name,
        [_info(name, tensors[name]) for name in (*graph.inputs, *(s.input for s in states))],
        [_info(name, tensors[name]) for name in (*graph.outputs, *(s.output for s in states))],
        list(out.constants.values()),
    )
    opsets = [helper.make_opsetid("", out.opset)]
    model = helper.make_model(proto, opset_imports=opsets, ir_version=_ir_version(out.opset))
    with_states(model, states)
    onnx.checker.check_model(model)
    return model


def _write(graph: Graph, out: OnnxWriter) -> None:
    for node in graph.nodes:
        if not node.outputs:
            continue  # a loop of which nothing is read
        layer = graph.layer(node)
        out.scope = node.name.split(";")[0]  # TFLite joins the names of fused layers
        names = []
        for tensor in layer.inputs:
            if tensor is not None and tensor.is_constant:
                out.add_constant(tensor.name, tensor.value)
            names.append(tensor.name if tensor is not None else "")
        if isinstance(node.op, Loop):
            write_loop(node.op, layer, names, out, _write)
        else:
            ONNX_WRITERS[type(node.op)](node.op, layer, names, layer.output.name, out)


def _ir_version(opset: int) -> int:
    """Old runtimes read old versions, so it is no later than it has to be."""
    return max(8, int(helper.find_min_ir_version_for([helper.make_opsetid("", opset)])))


def can_write(graph: Graph) -> bool:
    """Whether all operators can be written as ONNX, and nothing is quantised."""
    return not _is_quantized(graph) and not _unwritten(graph)


def written(graph: Graph) -> onnx.ModelProto | None:
    """The model; None if an operator, or one with these attributes, cannot be written."""
    try:
        return to_onnx(graph) if can_write(graph) else None
    except TinymlError:
        return None


def _is_quantized(graph: Graph) -> bool:
    inside = [node.op.inner_graph for node in graph.nodes if node.op.inner_graph is not None]
    return any(t.quant is not None for t in graph.tensors.values()) or any(map(_is_quantized, inside))


def _unwritten(graph: Graph) -> set[str]:
    """Operators that cannot be written."""
    found = set[str]()
    for node in graph.nodes:
        if isinstance(node.op, Loop) and not node.op.bounded:
            found |= _unwritten(node.op.body)
        elif type(node.op) not in ONNX_WRITERS:
            found.add(node.op.kind)
    return found


def _refuse(graph: Graph) -> None:
    if _is_quantized(graph):
        raise ConfigError(
            "the model is quantised already", "compile it as it is, or quantise the float model"
        )
    missing = sorted(_unwritten(graph))
    if missing:
        raise UnsupportedError(
            f"quantising this model would need to write {', '.join(missing)} as ONNX",
            "convert the model to ONNX from its source, or quantise it when it is converted to TFLite",
        )


def _is_changed_state(graph: Graph, state: State) -> bool:
    """Whether the next value is the state with new rows, and nothing else: it needs no copy."""
    node = graph.producers().get(state.update)
    updates = [*graph.outputs, *(other.update for other in graph.states)]
    return node is not None and node.inputs[0] == state.tensor and updates.count(state.update) == 1


def _state(state: State, out: OnnxWriter, in_place: bool) -> Remembered:
    """The next value of a state is a separate output, unless it is the state with new rows."""
    if in_place:
        return Remembered(state.tensor, state.update, state.initial)
    out.scope = state.tensor
    result = out.node("Identity", [state.update], out.fresh(f"{state.tensor}/next"))
    return Remembered(state.tensor, result, state.initial)


def _info(name: str, tensor: Tensor) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type(tensor.dtype), tensor.shape)
