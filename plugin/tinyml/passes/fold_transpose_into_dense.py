# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Fold a transpose before or after a Dense layer, with a reshape between them, into its weights."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, Graph, Node, Quant
from tinyml.ops.dense.dense import Dense
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose
from tinyml.passes.editor import Editor


def fold_transpose_into_dense(graph: Graph) -> Graph:
    """Columns in another order for a transposed input, rows in another order for a transposed output."""
    edit = Editor(graph)
    for node in edit.sweep():
        if isinstance(node.op, Dense):
            _fold(edit, node)
        elif isinstance(node.op, Transpose):
            _fold_after(edit, node)
    return edit.graph()


def _fold(edit: Editor, dense: Node) -> None:
    """dense(reshape(transpose(x)))"""
    weights = edit.tensors[dense.inputs[1]]
    flat = edit.producer(dense.inputs[0])
    if flat is None or not isinstance(flat.op, Reshape) or not weights.is_constant:
        return
    turned = edit.producer(flat.inputs[0])
    if (
        turned is None
        or not isinstance(turned.op, Transpose)
        or edit.only_reader(dense.inputs[0]) is not dense
    ):
        return
    source = edit.tensors[turned.inputs[0]]
    rows = edit.tensors[flat.outputs[0]].elements // weights.shape[1]
    perm = turned.op.perm
    if perm[0] != 0 or source.shape[0] != rows:  # each row must be one whole item of the batch
        return
    permuted_shape = tuple(source.shape[p] for p in perm[1:])
    columns = weights.value.reshape(weights.shape[0], *permuted_shape)
    back = (0, *(1 + int(i) for i in np.argsort([p - 1 for p in perm[1:]])))
    ordered = np.transpose(columns, back).reshape(weights.shape)
    new_weights = edit.constant(f"{weights.name}/columns", ordered, weights.quant)
    shape = edit.tensors[flat.outputs[0]].shape
    reshape, x = edit.make(flat.name, Reshape(shape), [source], edit.tensors[flat.outputs[0]].type)
    edit.replace(
        dense,
        [reshape, Node(dense.name, dense.op, (x.name, new_weights.name, *dense.inputs[2:]), dense.outputs)],
    )
    for node in (flat, turned):
        edit.remove_unread(node)


def _fold_after(edit: Editor, turn: Node) -> None:
    """transpose(reshape(dense(x))), for a single row"""
    assert isinstance(turn.op, Transpose)
    shaped = edit.producer(turn.inputs[0])
    if shaped is None or not isinstance(shaped.op, Reshape) or edit.only_reader(turn.inputs[0]) is not turn:
        return
    dense = edit.producer(shaped.inputs[0])
    if dense is None or not isinstance(dense.op, Dense) or edit.only_reader(shaped.inputs[0]) is not shaped:
        return
    layer = edit.layer(dense)
    y, constants = layer.output, [t for t in layer.inputs[1:] if t is not None]
    if y.elements != y.shape[-1] or any(not t.is_constant or t.shape[0] != y.elements for t in constants):
        return
    rows = np.transpose(np.arange(y.elements).reshape(edit.tensors[turn.inputs[0]].shape), turn.op.perm)
    order = rows.reshape(-1)
    names = [
        edit.constant(f"{t.name}/rows", t.value[order], _reordered(t.quant, order)).name for t in constants
    ]
    turned = edit.tensor(f"{y.name}/rows", y.type)
    final = edit.tensors[turn.outputs[0]]
    edit.replace(
        [dense, shaped, turn],
        [
            Node(dense.name, dense.op, (dense.inputs[0], *names), (turned.name,)),
            Node(shaped.name, Reshape(final.shape), (turned.name,), turn.outputs),
        ],
    )


def _reordered(quant: Quant | None, order: Array) -> Quant | None:
    """Per-row parameters follow their rows."""
    if quant is None or quant.axis is None:
        return quant
    return Quant(
        tuple(quant.scales[i] for i in order), tuple(quant.zero_points[i] for i in order), quant.axis
    )
