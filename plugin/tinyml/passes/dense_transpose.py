"""A flattened transpose in front of a Dense layer moves into its weights."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Graph, Node
from tinyml.ops.dense import Dense
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose
from tinyml.passes.editor import Editor


def fold_transpose_into_dense(graph: Graph) -> Graph:
    """dense(reshape(transpose(x)), w) = dense(reshape(x), w with its columns in another order)."""
    edit = Editor(graph)
    for node in edit.sweep():
        if isinstance(node.op, Dense):
            _fold(edit, node)
    return edit.graph()


def _fold(edit: Editor, dense: Node) -> None:
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
