# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A loop as ONNX: a Scan if it reads sequences, else a Loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper

from tinyml.ir import Graph, Layer, Node, State, Tensor
from tinyml.ops.framework.loop import Loop
from tinyml.ops.framework.writing import OnnxWriter, element_type


def write_loop(
    op: Loop,
    layer: Layer,
    names: Sequence[str],
    out: OnnxWriter,
    write: Callable[[Graph, OnnxWriter], None],
) -> None:
    """``write`` adds the nodes of the body."""
    scope, count = out.scope, len(op.body.states)
    name = out.fresh(scope)  # before those of the body
    captured = names[count + op.sequences :]
    body = _with_new_names(op, captured, out)
    inner = out.inside()
    write(body, inner)
    out.since(inner.opset)
    parts = [_info(body, name) for name in body.inputs[: op.sequences]]
    states = [_info(body, state.tensor) for state in body.states]
    ends = _apart(body, inner)
    updates, rows = ends[:count], ends[count:]
    results = [tensor.name for tensor in layer.outputs]
    out.scope = scope
    if op.sequences:
        graph = helper.make_graph(inner.nodes, scope, [*states, *parts], [*updates, *rows])
        out.named_node(
            name,
            "Scan",
            names[: count + op.sequences],
            results,
            body=graph,
            num_scan_inputs=op.sequences,
            scan_input_directions=[int(i in op.last_first) for i in range(op.sequences)],
            **(
                {"scan_output_directions": [int(i in op.rows_last_first) for i in range(len(rows))]}
                if rows
                else {}
            ),
        )
        return
    number, go = (out.fresh(f"{scope}/{word}") for word in ("turn", "go"))
    numbered = helper.make_tensor_value_info(number, onnx.TensorProto.INT64, [])
    steps = out.constant(np.asarray(op.steps, np.int64), "steps")
    if op.asks:  # the first state says whether there is another turn
        graph = helper.make_graph(inner.nodes, scope, [numbered, *states], [*updates, *rows])
        out.named_node(name, "Loop", [steps, *names[:count]], results[1:], body=graph)
        return
    again = out.fresh(f"{scope}/again")
    inner.node("Identity", [go], again)
    before, after = (helper.make_tensor_value_info(x, onnx.TensorProto.BOOL, []) for x in (go, again))
    graph = helper.make_graph(inner.nodes, scope, [numbered, before, *states], [after, *updates, *rows])
    out.named_node(name, "Loop", [steps, "", *names[:count]], results, body=graph)


def _apart(body: Graph, inner: OnnxWriter) -> list[onnx.ValueInfoProto]:
    """What a turn computes, each under a name of its own: with one name twice onnxruntime is wrong."""
    given = [*body.inputs, *(state.tensor for state in body.states)]
    seen, found = set(given), []
    for end in (*(state.update for state in body.states), *body.outputs):
        name = inner.node("Identity", [end], inner.fresh(f"{end}/end")) if end in seen else end
        seen.add(name)
        found.append(_info(body, end, name))
    return found


def _with_new_names(op: Loop, captured: Sequence[str], out: OnnxWriter) -> Graph:
    """ONNX has no name twice, not even inside; what the body reads from outside has its name there."""
    body = op.body
    names: dict[str, str] = dict(zip(body.inputs[op.sequences :], captured, strict=True))
    used = [name for node in body.nodes for name in (*node.inputs, *node.outputs) if name]
    ends = [name for state in body.states for name in (state.tensor, state.update)]
    for name in (*body.inputs, *ends, *used):
        if name not in names:
            names[name] = out.fresh(name)
    return _renamed(body, names)


def _renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    def new(found: Sequence[str]) -> tuple[str, ...]:
        return tuple(names[name] if name else "" for name in found)

    def tensor(name: str) -> Tensor:
        return replace(graph.tensors[name], name=names[name])

    return replace(
        graph,
        tensors={names[name]: tensor(name) for name in names},
        nodes=tuple(Node(n.name, n.op, new(n.inputs), new(n.outputs)) for n in graph.nodes),
        inputs=new(graph.inputs),
        outputs=new(graph.outputs),
        states=tuple(State(names[s.tensor], names[s.update], s.initial) for s in graph.states),
    )


def _info(graph: Graph, name: str, written: str = "") -> onnx.ValueInfoProto:
    tensor = graph.tensors[name]
    return helper.make_tensor_value_info(written or name, element_type(tensor.dtype), tensor.shape)
