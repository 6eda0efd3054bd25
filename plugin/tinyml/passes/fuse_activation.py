# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Fuse a clamp (Relu, Relu6, Clip) into the layer before it."""

from __future__ import annotations

from dataclasses import fields, replace

from tinyml.ir import Graph, Op
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.passes.editor import Editor


def fuse_activation(graph: Graph) -> Graph:
    """Any operator with a ``clamp`` attribute takes it over."""
    edit = Editor(graph)
    for node in edit.sweep():
        if not isinstance(node.op, Clamp):
            continue
        before = edit.producer(node.inputs[0])
        if before is None or edit.only_reader(node.inputs[0]) is not node or not _has_clamp(before.op):
            continue
        if edit.tensors[before.outputs[0]].quant != edit.tensors[node.outputs[0]].quant:
            continue
        low, high = before.op.clamp  # type: ignore[attr-defined]
        limits = (min(max(low, node.op.low), node.op.high), max(min(high, node.op.high), node.op.low))
        fused = replace(before.op, clamp=limits)  # type: ignore[call-arg]
        edit.replace([before, node], [replace(before, op=fused, outputs=node.outputs)])
    return edit.graph()


def _has_clamp(op: Op) -> bool:
    return any(f.name == "clamp" for f in fields(op))
