# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers on dequantised int8 whose result nothing quantises add up integers and scale the sums.

The last layer of a model that was trained for quantisation is mostly one. Sums of integers are exact, so the
result is nearer to the real one than that of a float layer.
"""

from __future__ import annotations

from dataclasses import replace

from tinyml.ir import DType, Graph, Node, Tensor
from tinyml.ops.quantization.quantize import Dequantize
from tinyml.ops.weighted.weighted import Weighted
from tinyml.passes.editor import Editor
from tinyml.passes.remove_dead_code import remove_dead_code


def sum_integers(graph: Graph) -> Graph:
    """Convolutions and dense layers with constant int8 weights."""
    edit = Editor(graph)
    for node in edit.sweep():
        if isinstance(node.op, Weighted) and not node.op.real:
            _convert(edit, node, node.op)
    return remove_dead_code(edit.graph())


def _convert(edit: Editor, node: Node, op: Weighted) -> None:
    sources = [edit.producer(name) for name in node.inputs[:2]]
    if any(source is None or not isinstance(source.op, Dequantize) for source in sources):
        return
    x, stored = (edit.tensors[source.inputs[0]] for source in sources if source is not None)
    w = _folded(edit, stored)
    form = op.integer_sums(x, w)
    if form is None or edit.tensors[node.outputs[0]].dtype is not DType.FLOAT32:
        return
    if w is not stored:
        w = edit.constant(w.name, w.value, w.quant)
    edit.replace(node, [replace(node, op=form, inputs=(x.name, w.name, *node.inputs[2:]))])
    for source in sources:
        if source is not None:
            edit.remove_unread(source)


def _folded(edit: Editor, stored: Tensor) -> Tensor:
    """The tensor as a constant, if operators that move elements make it of one: weights are transposed."""
    source = edit.producer(stored.name)
    if source is None or not source.op.movement:
        return stored
    before = _folded(edit, edit.tensors[source.inputs[0]])
    layer = edit.layer(source)
    known = replace(layer, inputs=(before, *layer.inputs[1:])).folded()
    return stored if known is None else known[0]
