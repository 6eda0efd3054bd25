# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Drop operators that do nothing, and join reshapes that follow one another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyml.ir import Graph, Layer, Node
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.quantization.requantize import Requantize
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose
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
    index = _identity_of(layer)
    same = index is not None and layer.input(index).type == layer.output.type
    return index is not None and same and edit.bypass(node, index)


def _identity_of(layer: Layer) -> int | None:
    """The input that the output is the same as, if the operator does nothing else."""
    op = layer.op
    if isinstance(op, Reshape | Requantize):
        return 0
    if isinstance(op, Transpose):
        return 0 if op.perm == tuple(range(len(op.perm))) else None
    if isinstance(op, Clamp):
        return 0 if op.low == -np.inf and op.high == np.inf else None
    if isinstance(op, Binary) and layer.output.quant is None and op.clamp == (-np.inf, np.inf):
        return _neutral(layer, op.function)
    return None


def _neutral(layer: Layer, function: str) -> int | None:
    """The variable operand of x * 1, x / 1, x + 0 or x - 0."""
    neutral = {"add": 0, "sub": 0, "mul": 1, "div": 1}.get(function)
    for index in (1, 0) if function in ("add", "mul") else (1,):
        constant = layer.input(index)
        if neutral is None or not constant.is_constant or layer.input(1 - index).is_constant:
            continue
        if np.all(constant.value == neutral):
            return 1 - index
    return None


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
