# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Fuse a clamp (Relu, Relu6, Clip) into the layer before it."""

from __future__ import annotations

from dataclasses import replace

from tinyml.ir import Graph
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.passes.editor import Editor


def fuse_activation(graph: Graph) -> Graph:
    """Any operator that can limit its output (``Op.limited``) takes the clamp over."""
    edit = Editor(graph)
    for node in edit.sweep():
        if not isinstance(node.op, Clamp):
            continue
        before = edit.producer(node.inputs[0])
        if before is None or edit.only_reader(node.inputs[0]) is not node or len(before.outputs) != 1:
            continue
        if edit.tensors[before.outputs[0]].quant != edit.tensors[node.outputs[0]].quant:
            continue
        fused = before.op.limited(node.op.low, node.op.high)
        if fused is not None:
            edit.replace([before, node], [replace(before, op=fused, outputs=node.outputs)])
    return edit.graph()
