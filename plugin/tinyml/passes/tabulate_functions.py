# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Several element-wise layers that depend on the bytes of one tensor alone become one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.ir import Array, Graph, Layer, Node, Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.lookup import BYTES, from_integers, stored_values, takes
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.passes.editor import Editor
from tinyml.passes.tabulate_bytes import EXACT

MOST = 32
"""Layers of one table: what exporters write for one function has fewer, and the search stays short."""


def tabulate_functions(graph: Graph) -> Graph:
    """x / sqrt(2) → erf → + 1 → · x → / 2 on int8, as exporters write GELU: one byte in, one byte out.

    The table has what the layers compute, with all their roundings.
    """
    edit = Editor(graph)
    for node in reversed(edit.nodes):  # from the last layer on, so that regions are as large as they can be
        if edit.has(node) and _joins(edit, node):
            _tabulate(edit, node)
    return edit.graph()


def _tabulate(edit: Editor, last: Node) -> None:
    found = _region(edit, last)
    if found is None:
        return
    x, region = found
    y = edit.tensors[last.outputs[0]]
    values = _values(edit, region, x)
    if values is None:
        return
    op = from_integers(last.op.label(), x, y, values)
    edit.replace(region, [Node(last.name, op, (x.name,), last.outputs)])


def _region(edit: Editor, last: Node) -> tuple[Tensor, list[Node]] | None:
    """The layers from one tensor of bytes to ``last``, in order, if there are several; and the tensor."""
    y = edit.tensors[last.outputs[0]]
    region = [last]
    best: tuple[Tensor, list[Node]] | None = None
    while len(region) <= MOST:
        leaves = {name for node in region for name in node.inputs if not edit.tensors[name].is_constant}
        leaves -= {name for node in region for name in node.outputs}
        if len(leaves) == 1:
            (leaf,) = (edit.tensors[name] for name in leaves)
            if takes(leaf, y) and leaf.shape == y.shape and len(region) > 1:
                best = leaf, sorted(region, key=edit.order)
        before = [node for name in leaves if (node := edit.producer(name)) is not None]
        if not before:
            return best
        node = max(before, key=edit.order)
        if not _joins(edit, node) or not _read_inside(edit, node, region):
            return best
        region.append(node)
    return best


def _read_inside(edit: Editor, node: Node, region: Sequence[Node]) -> bool:
    (name,) = node.outputs
    return not edit.is_kept(name) and all(any(r is n for n in region) for r in edit.readers(name))


def _joins(edit: Editor, node: Node) -> bool:
    """Whether a result depends on the elements at its place and on single numbers, the same on every CPU."""
    if not node.op.elementwise or len(node.outputs) != 1 or "" in node.inputs:
        return False
    layer = edit.layer(node)
    tensors = [*layer.inputs, layer.output]
    if any(t is None or (t.quant is not None and t.quant.per_channel) for t in tensors):
        return False
    inputs = [t for t in layer.inputs if t is not None]
    computed = [t for t in inputs if not t.is_constant]
    if not computed or any(t.is_constant and t.elements != 1 for t in inputs):
        return False
    if any(t.shape != layer.output.shape for t in computed):
        return False
    if all(t is not None and t.dtype in BYTES and t.quant is not None for t in tensors):
        return True
    op = node.op
    exact = isinstance(op, Quantize | Dequantize | Clamp) or (isinstance(op, Binary) and op.function in EXACT)
    return exact and all(t is not None and (t.dtype.is_float or t.dtype in BYTES) for t in tensors)


def _values(edit: Editor, region: Sequence[Node], x: Tensor) -> Array | None:
    """What each byte becomes, from the smallest on; None if some are NaN, which no byte stands for."""
    known: dict[str, Array] = {x.name: stored_values(x.dtype).astype(x.dtype.numpy)}
    for node in region:
        layer = edit.layer(node)
        line = Layer(
            "", node.op, tuple(_line(t) for t in layer.inputs if t is not None), (_line(layer.output),)
        )
        operands = [t.data if t.is_constant else known[t.name] for t in line.inputs if t is not None]
        (found,) = line.computed(operands)
        if found.dtype.kind == "f" and np.isnan(found).any():
            return None
        known[node.outputs[0]] = found
    return known[region[-1].outputs[0]].astype(stored_values(x.dtype).dtype)


def _line(tensor: Tensor) -> Tensor:
    if tensor.data is None:
        return replace(tensor, shape=(256,))
    return replace(tensor, shape=(1,), data=tensor.data.reshape(1))
