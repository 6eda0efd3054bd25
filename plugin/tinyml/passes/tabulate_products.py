# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Products of int8 with a single number, as in attention to one key, become a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyml.ir import Array, Graph, Layer, Node, Shape, Tensor
from tinyml.ops.dense.matmul import MatMul
from tinyml.ops.elementwise.lookup import from_integers, stored_values, takes
from tinyml.passes.editor import Editor


def tabulate_products(graph: Graph) -> Graph:
    """softmax over one score is 1 → 1 · values: one byte in, one byte out, with all roundings."""
    edit = Editor(graph)
    for node in edit.sweep():
        if isinstance(node.op, MatMul):
            _tabulate(edit, node)
    return edit.graph()


def _tabulate(edit: Editor, node: Node) -> None:
    layer = edit.layer(node)
    a, b, y = layer.input(0), layer.input(1), layer.output
    if a.is_constant == b.is_constant or a.shape[-1] != 1:
        return
    x, number, line, one = (b, a, (1, 256), (1, 1)) if a.is_constant else (a, b, (256, 1), (1, 1))
    if x.shape != y.shape or not takes(x, y) or number.quant is None or number.quant.per_channel:
        return
    if np.ptp(number.value) != 0:
        return
    numbers = _shaped(number, one)
    operands = [numbers, _shaped(x, line)] if a.is_constant else [_shaped(x, line), numbers]
    made = Layer("", node.op, tuple(operands), (_shaped(y, line),))
    values = [t.data if t.data is not None else _every(x, line) for t in operands]
    (found,) = made.computed(values)
    op = from_integers("product", x, y, found.reshape(-1).astype(np.int64))
    edit.replace(node, [Node(node.name, op, (x.name,), node.outputs)])


def _shaped(tensor: Tensor, shape: Shape) -> Tensor:
    """One matrix; of a constant, its only number."""
    data = None if tensor.data is None else tensor.data.reshape(-1)[:1].reshape(shape)
    return replace(tensor, shape=shape, data=data)


def _every(x: Tensor, shape: Shape) -> Array:
    return stored_values(x.dtype).astype(x.dtype.numpy).reshape(shape)
