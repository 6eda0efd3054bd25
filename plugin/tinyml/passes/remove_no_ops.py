# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Drop operators that do nothing, and join reshapes that follow one another."""

from __future__ import annotations

from dataclasses import replace

from tinyml.ir import Graph, Node
from tinyml.ops.reshape import Reshape
from tinyml.passes.editor import Editor, sweep_until_stable


def remove_no_ops(graph: Graph) -> Graph:
    """Reshape to the same shape, requantise to the same parameters, times one, plus zero, …"""
    edit = Editor(graph)
    sweep_until_stable(edit, lambda e, node: _drop(e, node) or _join_reshapes(e, node))
    return edit.graph()


def _drop(edit: Editor, node: Node) -> bool:
    if len(node.outputs) != 1:
        return False
    layer = edit.layer(node)
    index = node.op.identity_of(layer)
    if index is None or layer.input(index).type != layer.output.type:
        return False
    if edit.bypass(node, index):
        return True
    if isinstance(node.op, Reshape):
        return False
    # both are results of the graph, or one that it got: what is left is a copy
    edit.replace(node, [Node(node.name, Reshape(layer.output.shape), (node.inputs[index],), node.outputs)])
    return True


def _join_reshapes(edit: Editor, node: Node) -> bool:
    """reshape(reshape(x))"""
    if not isinstance(node.op, Reshape):
        return False
    before = edit.producer(node.inputs[0])
    if before is None or not isinstance(before.op, Reshape):
        return False
    first, middle, last = (edit.tensors[n] for n in (before.inputs[0], node.inputs[0], node.outputs[0]))
    if not first.quant == middle.quant == last.quant:
        return False
    edit.replace(node, [replace(node, inputs=before.inputs)])
    edit.remove_unread(before)
    return True
