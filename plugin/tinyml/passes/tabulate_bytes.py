# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic between bytes and their quantisation becomes a table: normalisation of images, mostly."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, DType, Graph, Node, Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import Cast
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.lookup import BYTES, from_integers, stored_values
from tinyml.ops.quantization.quantize import Quantize
from tinyml.passes.editor import Editor

EXACT = ("add", "sub", "mul", "div", "min", "max")
"""Functions that IEEE 754 defines to the last bit, so that numpy computes what the cores would."""


def tabulate_bytes(graph: Graph) -> Graph:
    """cast(bytes) / 255 - mean …, quantised: one byte in, one byte out, whatever is between."""
    edit = Editor(graph)
    for node in edit.sweep():
        if isinstance(node.op, Quantize) and node.op.dtype in BYTES and node.op.quant.axis is None:
            _tabulate(edit, node)
    return edit.graph()


def _tabulate(edit: Editor, border: Node) -> None:
    """Walk up from a Quantize to a Cast of bytes, as long as all operands but one are single numbers."""
    path = [border]
    while not _casts_bytes(edit, path[-1]):
        (name,) = _computed(edit, path[-1]) or ("",)
        before = edit.producer(name)
        if before is None or not _is_exact(edit, before) or edit.only_reader(name) is not path[-1]:
            return
        path.append(before)
    x, y = edit.tensors[path[-1].inputs[0]], edit.tensors[border.outputs[0]]
    if x.shape != y.shape:
        return
    values: Array = stored_values(x.dtype).astype(x.dtype.numpy)
    for node in reversed(path):
        (values,) = node.op.evaluate(
            edit.layer(node), [_operand(edit.tensors[n], values) for n in node.inputs]
        )
    table = from_integers("normalize", x, y, values.astype(np.int64))
    edit.replace(border, [Node(border.name, table, (x.name,), border.outputs)])
    for node in path[1:]:
        edit.remove_unread(node)


def _casts_bytes(edit: Editor, node: Node) -> bool:
    """Whether it makes real numbers of bytes that have no quantisation."""
    x = edit.tensors[node.inputs[0]]
    return (
        isinstance(node.op, Cast) and node.op.dtype is DType.FLOAT32 and x.dtype in BYTES and x.quant is None
    )


def _is_exact(edit: Editor, node: Node) -> bool:
    op = node.op
    known = isinstance(op, Cast | Clamp) or (isinstance(op, Binary) and op.function in EXACT)
    y = edit.tensors[node.outputs[0]]
    return known and y.dtype is DType.FLOAT32 and y.quant is None and _computed(edit, node) is not None


def _computed(edit: Editor, node: Node) -> tuple[str] | None:
    """The only operand that is not a single number; None if there are others."""
    names = [name for name in node.inputs if not edit.tensors[name].is_constant]
    constants = [edit.tensors[name] for name in node.inputs if edit.tensors[name].is_constant]
    return (names[0],) if len(names) == 1 and all(c.elements == 1 for c in constants) else None


def _operand(tensor: Tensor, values: Array) -> Array:
    return tensor.value.reshape(()) if tensor.is_constant else values
