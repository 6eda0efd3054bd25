# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Graphs inside the nodes of an ONNX graph, and the names that they read from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy

import onnx

from tinyml.base.errors import ModelError


def graphs_inside(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph itself, and all that are inside its nodes."""
    yield graph
    for node in graph.node:
        for body in bodies(node):
            yield from graphs_inside(body)


def bodies(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]


def outside_names(node: onnx.NodeProto) -> tuple[str, ...]:
    """What the graphs inside a node read that they do not have themselves, each name once."""
    found: dict[str, None] = {}
    for body in bodies(node):
        own = {value.name for value in (*body.input, *body.initializer)}
        own |= {name for inner in body.node for name in inner.output}
        reads = [name for inner in body.node for name in (*inner.input, *outside_names(inner)) if name]
        reads += [value.name for value in body.output]
        found.update(dict.fromkeys(name for name in reads if name not in own))
    return tuple(found)


def drop_unread(graph: onnx.GraphProto) -> None:
    """Remove constants that nothing reads."""
    read = {value.name for value in graph.output}
    for node in graph.node:
        read.update(node.input, outside_names(node))
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def keep_reads_of_bodies(model: onnx.ModelProto, before: onnx.ModelProto) -> None:
    """What graphs inside nodes read is there, and before them.

    onnxruntime's quantiser does not look into them: it drops constants that only they read, and sorts nodes.
    """
    graph = model.graph
    read = {name for node in graph.node for name in outside_names(node)}
    if not read:
        return
    read -= {tensor.name for tensor in graph.initializer}
    graph.initializer.extend(tensor for tensor in before.graph.initializer if tensor.name in read)
    nodes = in_order(list(graph.node))
    del graph.node[:]
    graph.node.extend(nodes)


def renamed(graph: onnx.GraphProto, new: Callable[[str], str]) -> onnx.GraphProto:
    """A copy with other names of tensors, inside its nodes too; without types of tensors between nodes."""
    result = deepcopy(graph)
    for inner in graphs_inside(result):
        for node in inner.node:
            node.input[:] = [new(name) if name else "" for name in node.input]
            node.output[:] = [new(name) if name else "" for name in node.output]
        for value in (*inner.input, *inner.output, *inner.initializer):
            value.name = new(value.name)
        del inner.value_info[:]
    return result


def in_order(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Each node after those that compute what it reads, inside its graphs too."""
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    reads = [(*node.input, *outside_names(node)) for node in nodes]
    placed: dict[int, onnx.NodeProto] = {}
    waiting = list(range(len(nodes)))
    while waiting:
        ready = [i for i in waiting if all(makers.get(name, i) in {*placed, i} for name in reads[i])]
        placed.update((i, nodes[i]) for i in ready)
        waiting = [i for i in waiting if i not in placed]
        if not ready:
            raise ModelError("the quantised model has a cycle; please report this")
    return list(placed.values())
