# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dense layers compute only what a slice reads: values, but no queries and keys that nothing needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.ir import Array, Graph, Node, Quant, Shape, TensorType
from tinyml.ops.dense.dense import Dense
from tinyml.ops.reshape import Reshape
from tinyml.ops.slice import Slice
from tinyml.passes.editor import Editor


def narrow_dense(graph: Graph) -> Graph:
    """slice(reshape(dense(x))) → reshape(dense with fewer rows of weights(x))"""
    edit = Editor(graph)
    for node in edit.sweep():
        if isinstance(node.op, Slice):
            _narrow(edit, node)
    return edit.graph()


def _narrow(edit: Editor, last: Node) -> None:
    path = [last]
    dense = edit.producer(last.inputs[0])
    while dense is not None and isinstance(dense.op, Reshape) and _reads_alone(edit, path[-1]):
        path.append(dense)
        dense = edit.producer(dense.inputs[0])
    if dense is None or not isinstance(dense.op, Dense) or not _reads_alone(edit, path[-1]):
        return
    layer = edit.layer(dense)
    y, result = layer.output, edit.tensors[last.outputs[0]]
    constants = [t for t in layer.inputs[1:] if t is not None]
    if any(edit.tensors[node.outputs[0]].quant != y.quant for node in path):
        return
    if not all(t.is_constant and (t.quant is None or t.quant.axis in (None, 0)) for t in constants):
        return
    kept = _columns(edit, path, y.shape)
    if kept is None:
        return
    names = [edit.constant(f"{t.name}/read", t.value[kept], _part(t.quant, kept)).name for t in constants]
    edit.retype(y.name, TensorType((*y.shape[:-1], len(kept)), y.dtype, y.quant))
    edit.replace(dense, [replace(dense, inputs=(dense.inputs[0], *names))])
    edit.replace(path[::-1], [Node(last.name, Reshape(result.shape), (y.name,), last.outputs)])


def _reads_alone(edit: Editor, node: Node) -> bool:
    return edit.only_reader(node.inputs[0]) is node


def _columns(edit: Editor, path: Sequence[Node], shape: Shape) -> Array | None:
    """What the slice reads of each row, in its order; None if rows are read differently."""
    columns = shape[-1]
    rows = int(np.prod(shape[:-1]))
    places: Array = np.arange(rows * columns).reshape(shape)
    for node in reversed(path):
        (places,) = node.op.evaluate(edit.layer(node), [places])
    if places.size % rows or not 0 < places.size < rows * columns:
        return None
    places = places.reshape(rows, -1)
    kept = places[0]
    same = np.array_equal(places, kept + columns * np.arange(rows)[:, None])
    return kept if same and kept.max() < columns else None


def _part(quant: Quant | None, kept: Array) -> Quant | None:
    if quant is None or quant.axis is None:
        return quant
    return Quant(tuple(quant.scales[i] for i in kept), tuple(quant.zero_points[i] for i in kept), quant.axis)
